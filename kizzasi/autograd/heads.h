// Within heads: outer products and what undoes them (H3), and maps of each head onto itself (xLSTM, Griffin).
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// a, b: (..., H W), heads of `width` -> (..., H W W): out[h, i, j] = a[h, i] b[h, j].
template <typename T>
Var<T> head_outer(Var<T> a, Var<T> b, std::size_t width);

// q: (..., H W), m: (..., H W W) -> (..., H W): out[h, j] = sum_i q[h, i] m[h, i, j].
template <typename T>
Var<T> head_contract(Var<T> q, Var<T> m, std::size_t width);

// x: (batch, time, H P), w: (H, P, P) -> dims of x: y[h, o] = sum_k w[h, o, k] x[h, k].
template <typename T>
Var<T> headwise_linear(Var<T> x, Var<T> w);

}  // namespace kizzasi::autograd
