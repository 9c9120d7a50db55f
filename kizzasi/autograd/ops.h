// The primitives of the tape. Everything here exists for T = float and double; trailing dimensions are contiguous (row-major).
#pragma once

#include <span>
#include <vector>

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// y[..., o] = sum_k x[..., k] w[o, k] (+ bias[o]). x: any leading dimensions; w: (outputs, k) as published; bias optional (tape == nullptr:
// none).
template <typename T>
Var<T> linear(Var<T> x, Var<T> w, Var<T> bias = {});

// Elementwise. b has the dims of a, or those of a trailing part of a (broadcast over the leading dimensions), or one element.
template <typename T>
Var<T> add(Var<T> a, Var<T> b);
template <typename T>
Var<T> sub(Var<T> a, Var<T> b);
template <typename T>
Var<T> mul(Var<T> a, Var<T> b);
template <typename T>
Var<T> div(Var<T> a, Var<T> b);
template <typename T>
Var<T> scale(Var<T> a, T factor);
template <typename T>
Var<T> add_scalar(Var<T> a, T term);

// y[..., i] = s[...] x[..., i]: s has the leading dims of x.
template <typename T>
Var<T> scale_rows(Var<T> x, Var<T> s);

template <typename T>
Var<T> exp(Var<T> x);
template <typename T>
Var<T> log(Var<T> x);
template <typename T>
Var<T> sqrt(Var<T> x);
template <typename T>
Var<T> sin(Var<T> x);
template <typename T>
Var<T> cos(Var<T> x);
template <typename T>
Var<T> square(Var<T> x);
template <typename T>
Var<T> abs(Var<T> x);  // derivative 0 at 0
template <typename T>
Var<T> sigmoid(Var<T> x);
template <typename T>
Var<T> tanh(Var<T> x);
template <typename T>
Var<T> silu(Var<T> x);
template <typename T>
Var<T> gelu(Var<T> x);  // exact
template <typename T>
Var<T> gelu_tanh(Var<T> x);  // the tanh form
template <typename T>
Var<T> relu(Var<T> x);
template <typename T>
Var<T> softplus(Var<T> x);  // linear above 20
template <typename T>
Var<T> clamp(Var<T> x, T low, T high);  // derivative 1 inside and on the bounds, 0 outside
template <typename T>
Var<T> softmax(Var<T> x);  // over the last dimension
template <typename T>
Var<T> log_sum_exp(Var<T> x);  // over the last dimension, which goes

// Norms over the last dimension; gain (and bias) of its size, or {} for none.
template <typename T>
Var<T> rms_norm(Var<T> x, Var<T> gain, T epsilon);
template <typename T>
Var<T> rms_norm_groups(Var<T> x, std::size_t groups, Var<T> gain, T epsilon);
template <typename T>
Var<T> layer_norm(Var<T> x, Var<T> gain, Var<T> bias, T epsilon);

// Shape.
template <typename T>
Var<T> reshape(Var<T> x, Dims dims);
template <typename T>
Var<T> permute(Var<T> x, Dims order);  // axis i of the result is axis order[i] of x
template <typename T>
Var<T> slice(Var<T> x, std::size_t axis, std::size_t begin, std::size_t end);
template <typename T>
Var<T> concat(std::span<const Var<T>> parts, std::size_t axis);
// Rows of a matrix-like x (first dimension indexed): out[i] = x[index[i]]; an index may repeat. Embedding and choice of positions.
template <typename T>
Var<T> gather(Var<T> x, std::vector<std::size_t> index);

template <typename T>
Var<T> sum(Var<T> x);  // one element
template <typename T>
Var<T> mean(Var<T> x);  // one element
template <typename T>
Var<T> sum_last(Var<T> x);  // over the last dimension, which goes

}  // namespace kizzasi::autograd
