#include "kizzasi/autograd/tape.h"

#include <algorithm>
#include <cassert>

namespace kizzasi::autograd {

namespace {

// At least `count` elements; what was in them is lost.
template <typename T>
void grow(AlignedVector<T>& buffer, std::size_t count) {
  if (buffer.size() < count) buffer = AlignedVector<T>(count);
}

}  // namespace

template <typename T>
typename Tape<T>::Node& Tape<T>::next(Dims dims, std::size_t own_values) {
  if (used_ == nodes_.size()) nodes_.emplace_back();
  Node& node = nodes_[used_];
  node.dims = dims;
  node.count = own_values;
  grow(node.value, own_values);
  node.data = node.value.data();
  node.root = used_;
  node.call = nullptr;
  node.destroy = nullptr;
  node.wants_gradient = false;
  node.has_grad = false;
  ++used_;
  return node;
}

template <typename T>
Var<T> Tape<T>::leaf(Dims dims, std::span<const T> values, bool wants_gradient) {
  assert(values.size() == elements(dims));
  Node& node = next(dims, values.size());
  std::copy(values.begin(), values.end(), node.value.begin());
  node.wants_gradient = wants_gradient;
  return {this, used_ - 1};
}

template <typename T>
Var<T> Tape<T>::borrow(Dims dims, std::span<const T> values, bool wants_gradient) {
  assert(values.size() == elements(dims));
  Node& node = next(dims, 0);
  node.count = values.size();
  node.data = values.data();
  node.wants_gradient = wants_gradient;
  return {this, used_ - 1};
}

template <typename T>
Var<T> Tape<T>::alias(Var<T> of, Dims dims) {
  assert(elements(dims) == elements(of.dims()));
  Node& node = next(dims, 0);
  const Node& source = nodes_[of.id];
  node.count = source.count;
  node.data = source.data;
  node.root = source.root;
  node.wants_gradient = source.wants_gradient;
  return {this, used_ - 1};
}

template <typename T>
std::size_t Tape<T>::keep(std::size_t count) {
  next({count}, count);
  return used_ - 1;
}

template <typename T>
typename Tape<T>::Flow Tape<T>::flow(std::size_t id) {
  Node& node = nodes_[nodes_[id].root];
  if (!node.wants_gradient) return {};
  const bool first = !node.has_grad;
  if (first) grow(node.gradient, node.count);
  node.has_grad = true;
  return {{node.gradient.data(), node.count}, first};
}

template <typename T>
std::span<T> Tape<T>::grad(std::size_t id) {
  const Flow to = flow(id);
  if (to.first) std::fill(to.grad.begin(), to.grad.end(), T{0});
  return to.grad;
}

template <typename T>
void Tape<T>::sweep(std::size_t from) {
  for (std::size_t id = from + 1; id-- > 0;) {
    Node& node = nodes_[id];
    if (node.has_grad && node.call != nullptr) node.call(node.adjoint, *this, id);
  }
}

template <typename T>
void Tape<T>::backward(Var<T> loss, T seed) {
  if (!wants_gradient(loss.id)) return;
  grad(loss.id)[0] += seed;
  sweep(loss.id);
}

template <typename T>
void Tape<T>::backward(Var<T> v, std::span<const T> cotangent) {
  if (!wants_gradient(v.id)) return;
  const std::span<T> g = grad(v.id);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] += cotangent[i];
  sweep(v.id);
}

template <typename T>
void Tape<T>::zero_grads() {
  for (std::size_t id = 0; id < used_; ++id) nodes_[id].has_grad = false;
}

template <typename T>
void Tape<T>::clear() {
  for (std::size_t id = 0; id < used_; ++id) {
    if (nodes_[id].destroy != nullptr) nodes_[id].destroy(nodes_[id].adjoint);
  }
  used_ = 0;
  arena_.clear();
}

template class Tape<float>;
template class Tape<double>;

}  // namespace kizzasi::autograd
