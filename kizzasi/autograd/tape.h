// Reverse-mode differentiation on a tape of coarse operations, the same in f32 (training) and f64 (the truth that f32 is tested against).
#pragma once

#include <cstddef>
#include <deque>
#include <initializer_list>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kizzasi/autograd/arena.h"
#include "kizzasi/autograd/dims.h"
#include "kizzasi/base/aligned.h"

namespace kizzasi::autograd {

template <typename T>
class Tape;

// A node on a tape. Cheap to copy; belongs to the tape that made it, until that is cleared.
template <typename T>
struct Var {
  Tape<T>* tape = nullptr;  // nullptr: no value, for optional arguments
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
  Tape() = default;
  ~Tape() { clear(); }
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // A leaf that wants a gradient, or a constant that does not. The values are copied.
  Var<T> leaf(Dims dims, std::span<const T> values, bool wants_gradient = true);
  Var<T> constant(Dims dims, std::span<const T> values) { return leaf(dims, values, false); }
  // The same without the copy, for weights: `values` must outlive the recording and stay as they are.
  Var<T> borrow(Dims dims, std::span<const T> values, bool wants_gradient = true);

  // For operations: a new node with an uninitialised value, to be filled through `mutable_value` before anything else is recorded.
  // It wants a gradient when one of its inputs does (inputs without a tape are passed over); only then is `adjoint` kept.
  // adjoint: called as adjoint(Tape&, id) with the node's own id; reads grad(id) and adds to the gradients of its inputs.
  template <typename Adjoint>
  Var<T> record(Dims dims, std::span<const Var<T>> inputs, Adjoint adjoint) {
    Node& node = next(dims, elements(dims));
    for (const Var<T>& input : inputs) node.wants_gradient |= input.tape != nullptr && wants_gradient(input.id);
    if (node.wants_gradient) keep_adjoint(node, std::move(adjoint));
    return {this, used_ - 1};
  }
  template <typename Adjoint>
  Var<T> record(Dims dims, std::initializer_list<Var<T>> inputs, Adjoint adjoint) {
    return record(dims, std::span<const Var<T>>(inputs.begin(), inputs.size()), std::move(adjoint));
  }
  // A node that is another one under other dims: value and gradient are one and the same.
  Var<T> alias(Var<T> of, Dims dims);
  // A buffer of that many uninitialised numbers that lives as long as the recording, for what an adjoint needs again: its node's id.
  std::size_t keep(std::size_t count);

  const Dims& dims(std::size_t id) const { return nodes_[id].dims; }
  std::span<const T> value(std::size_t id) const { return {nodes_[id].data, nodes_[id].count}; }
  std::span<T> mutable_value(std::size_t id) { return {nodes_[id].value.data(), nodes_[id].count}; }
  bool wants_gradient(std::size_t id) const { return nodes_[id].wants_gradient; }
  // Zero until something flowed into it. Only for nodes that want a gradient.
  std::span<T> grad(std::size_t id);
  std::span<const T> grad(Var<T> v) { return grad(v.id); }

  // The gradient of a node as an adjoint should use it: where `first`, it holds nothing yet and the adjoint writes all of it, otherwise it
  // adds. Saves a fill with zeros and a read. An empty span where the node wants no gradient.
  struct Flow {
    std::span<T> grad;
    bool first = false;
  };
  Flow flow(std::size_t id);
  // gradient[i] += term(i) for all i, where the node wants one.
  template <typename Term>
  void add_to_grad(std::size_t id, Term term) {
    const Flow to = flow(id);
    T* grad = to.grad.data();
    const std::size_t count = to.grad.size();
    if (to.first) {
      for (std::size_t i = 0; i < count; ++i) grad[i] = term(i);
    } else {
      for (std::size_t i = 0; i < count; ++i) grad[i] += term(i);
    }
  }

  // d(loss)/d(everything); loss must have one element. seed: the gradient put into the loss. Once a recording, or after zero_grads.
  void backward(Var<T> loss, T seed = T{1});
  // d(sum(v * cotangent))/d(everything).
  void backward(Var<T> v, std::span<const T> cotangent);
  // As if no gradient had flowed yet.
  void zero_grads();

  // Forgets the recording, keeps the memory.
  void clear();
  std::size_t size() const { return used_; }

 private:
  struct Node {
    Dims dims;
    std::size_t count = 0;      // elements of the value
    const T* data = nullptr;    // the value: own, borrowed, or that of `root`
    AlignedVector<T> value;     // may be longer than count: what earlier recordings needed
    AlignedVector<T> gradient;  // the same
    std::size_t root = 0;       // the node that holds the gradient: itself, or what it is an alias of
    void* adjoint = nullptr;    // in arena_
    void (*call)(void*, Tape&, std::size_t) = nullptr;
    void (*destroy)(void*) = nullptr;
    bool wants_gradient = false;
    bool has_grad = false;
  };

  template <typename Adjoint>
  void keep_adjoint(Node& node, Adjoint adjoint) {
    static_assert(alignof(Adjoint) <= alignof(std::max_align_t));
    node.adjoint = new (arena_.take(sizeof(Adjoint), alignof(Adjoint))) Adjoint(std::move(adjoint));
    node.call = [](void* f, Tape& tape, std::size_t id) { (*static_cast<Adjoint*>(f))(tape, id); };
    if constexpr (!std::is_trivially_destructible_v<Adjoint>) node.destroy = [](void* f) { static_cast<Adjoint*>(f)->~Adjoint(); };
  }
  Node& next(Dims dims, std::size_t own_values);
  void sweep(std::size_t from);

  std::deque<Node> nodes_;  // nodes_[0, used_) are recorded; the rest keep their buffers
  std::size_t used_ = 0;
  Arena arena_;
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
