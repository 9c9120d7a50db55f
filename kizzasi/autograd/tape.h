// Reverse-mode differentiation on a tape of coarse operations, the same in f32 (training) and f64 (the truth that f32 is tested against).
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

namespace kizzasi::autograd {

using Dims = std::vector<std::size_t>;
std::size_t elements(const Dims& dims);

template <typename T>
class Tape;

// A node on a tape. Cheap to copy; belongs to the tape that made it.
template <typename T>
struct Var {
  Tape<T>* tape = nullptr;
  std::size_t id = 0;

  const Dims& dims() const;
  std::span<const T> value() const;  // row-major
};

// Records operations as they are computed; `backward` then runs their adjoints in reverse.
// Buffers are kept for the next recording: after the first pass a training step takes no memory from the system.
// Thread: one at a time; use one tape a thread.
template <typename T>
class Tape {
 public:
  // Receives the tape and the node's own id; reads grad(id) and adds into grad() of its inputs.
  using Adjoint = std::function<void(Tape&, std::size_t id)>;

  // A leaf that wants a gradient, or a constant that does not.
  Var<T> leaf(Dims dims, std::span<const T> values, bool wants_gradient = true);
  Var<T> constant(Dims dims, std::span<const T> values) { return leaf(std::move(dims), values, false); }

  // For operations: a new node with an uninitialised value, to be filled through `mutable_value` before anything else is recorded.
  // It wants a gradient when one of its inputs does; only then is `adjoint` kept.
  Var<T> record(Dims dims, std::span<const Var<T>> inputs, Adjoint adjoint);

  const Dims& dims(std::size_t id) const { return nodes_[id].dims; }
  std::span<const T> value(std::size_t id) const { return nodes_[id].value; }
  std::span<T> mutable_value(std::size_t id) { return nodes_[id].value; }
  bool wants_gradient(std::size_t id) const { return nodes_[id].wants_gradient; }
  // Zero until something flowed into it. Only for nodes that want a gradient.
  std::span<T> grad(std::size_t id);
  std::span<const T> grad(Var<T> v) { return grad(v.id); }

  // d(loss)/d(everything); loss must have one element. seed: the gradient put into the loss.
  void backward(Var<T> loss, T seed = T{1});
  // d(sum(v * cotangent))/d(everything).
  void backward(Var<T> v, std::span<const T> cotangent);

  // Forgets the recording, keeps the memory.
  void clear();
  std::size_t size() const { return used_; }

 private:
  struct Node {
    Dims dims;
    std::vector<T> value, grad;
    Adjoint adjoint;
    bool wants_gradient = false;
    bool has_grad = false;
  };
  Node& next(Dims dims);
  void sweep();
  std::deque<Node> nodes_;  // nodes_[0, used_) are recorded; the rest keep their buffers
  std::size_t used_ = 0;
};

template <typename T>
const Dims& Var<T>::dims() const {
  return tape->dims(id);
}
template <typename T>
std::span<const T> Var<T>::value() const {
  return tape->value(id);
}

extern template class Tape<float>;
extern template class Tape<double>;

}  // namespace kizzasi::autograd
