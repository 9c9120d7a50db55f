// Arithmetic of complex numbers on a tape, each kept as a real and an imaginary node.
#pragma once

#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

template <typename T>
struct Planes {
  Var<T> re, im;
};

template <typename T>
Planes<T> operator+(Planes<T> a, Planes<T> b) {
  return {add(a.re, b.re), add(a.im, b.im)};
}
template <typename T>
Planes<T> operator-(Planes<T> a, Planes<T> b) {
  return {sub(a.re, b.re), sub(a.im, b.im)};
}
template <typename T>
Planes<T> operator*(Planes<T> a, Planes<T> b) {
  return {sub(mul(a.re, b.re), mul(a.im, b.im)), add(mul(a.re, b.im), mul(a.im, b.re))};
}
template <typename T>
Planes<T> operator*(Planes<T> a, Var<T> real) {
  return {mul(a.re, real), mul(a.im, real)};
}
template <typename T>
Planes<T> scale(Planes<T> a, T factor) {
  return {scale(a.re, factor), scale(a.im, factor)};
}
template <typename T>
Planes<T> add_scalar(Planes<T> a, T term) {
  return {add_scalar(a.re, term), a.im};
}
template <typename T>
Planes<T> conj(Planes<T> a) {
  return {a.re, scale(a.im, T{-1})};
}
// 1 / a
template <typename T>
Planes<T> inverse(Planes<T> a) {
  const Var<T> square_of = add(square(a.re), square(a.im));
  return {div(a.re, square_of), scale(div(a.im, square_of), T{-1})};
}
template <typename T>
Planes<T> exp(Planes<T> a) {
  const Var<T> radius = exp(a.re);
  return {mul(radius, cos(a.im)), mul(radius, sin(a.im))};
}
// (..., 2) as it is stored: re, im beside each other.
template <typename T>
Planes<T> planes_of(Var<T> interleaved) {
  const Dims dims = interleaved.dims(), parts = leading(dims);
  const std::size_t last = dims.size() - 1;
  return {reshape(slice(interleaved, last, 0, 1), parts), reshape(slice(interleaved, last, 1, 2), parts)};
}

}  // namespace kizzasi::autograd
