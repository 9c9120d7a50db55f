#include "kizzasi/autograd/tape.h"

#include <algorithm>
#include <numeric>

namespace kizzasi::autograd {

std::size_t elements(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>()); }

template <typename T>
typename Tape<T>::Node& Tape<T>::next(Dims dims) {
  if (used_ == nodes_.size()) nodes_.emplace_back();
  Node& node = nodes_[used_++];
  node.value.resize(elements(dims));
  node.dims = std::move(dims);
  node.adjoint = nullptr;
  node.has_grad = false;
  node.wants_gradient = false;
  return node;
}

template <typename T>
Var<T> Tape<T>::leaf(Dims dims, std::span<const T> values, bool wants_gradient) {
  Node& node = next(std::move(dims));
  std::copy(values.begin(), values.end(), node.value.begin());
  node.wants_gradient = wants_gradient;
  return {this, used_ - 1};
}

template <typename T>
Var<T> Tape<T>::record(Dims dims, std::span<const Var<T>> inputs, Adjoint adjoint) {
  Node& node = next(std::move(dims));
  node.wants_gradient = std::any_of(inputs.begin(), inputs.end(), [this](Var<T> v) { return wants_gradient(v.id); });
  if (node.wants_gradient) node.adjoint = std::move(adjoint);
  return {this, used_ - 1};
}

template <typename T>
std::span<T> Tape<T>::grad(std::size_t id) {
  Node& node = nodes_[id];
  if (!node.has_grad) {
    node.grad.assign(node.value.size(), T{0});
    node.has_grad = true;
  }
  return node.grad;
}

template <typename T>
void Tape<T>::sweep() {
  for (std::size_t id = used_; id-- > 0;) {
    Node& node = nodes_[id];
    if (node.has_grad && node.adjoint) node.adjoint(*this, id);
  }
}

template <typename T>
void Tape<T>::backward(Var<T> loss, T seed) {
  grad(loss.id)[0] += seed;
  sweep();
}

template <typename T>
void Tape<T>::backward(Var<T> v, std::span<const T> cotangent) {
  const std::span<T> g = grad(v.id);
  for (std::size_t i = 0; i < g.size(); ++i) g[i] += cotangent[i];
  sweep();
}

template <typename T>
void Tape<T>::clear() {
  used_ = 0;
}

template class Tape<float>;
template class Tape<double>;

}  // namespace kizzasi::autograd
