// The rest of the usual activations, for heads and for reading what others trained. Values and derivatives are worked out in double.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

template <typename T>
Var<T> expm1(Var<T> x);
template <typename T>
Var<T> erf(Var<T> x);
template <typename T>
Var<T> leaky_relu(Var<T> x, T slope = T(0.01));  // slope below 0
template <typename T>
Var<T> elu(Var<T> x);  // x, or e^x - 1 below 0
template <typename T>
Var<T> selu(Var<T> x);  // Klambauer et al. 2017
template <typename T>
Var<T> mish(Var<T> x);  // x tanh(log(1 + e^x))
template <typename T>
Var<T> softplus(Var<T> x, T beta, T threshold);  // log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold
template <typename T>
Var<T> log_sigmoid(Var<T> x);
template <typename T>
Var<T> softsign(Var<T> x);  // x / (1 + |x|)
template <typename T>
Var<T> relu6(Var<T> x);  // clamped to [0, 6]; derivatives 0 on the bounds
template <typename T>
Var<T> hard_tanh(Var<T> x);  // clamped to [-1, 1]; derivatives 0 on the bounds
template <typename T>
Var<T> hard_sigmoid(Var<T> x);  // x / 6 + 1/2 within (-3, 3)
template <typename T>
Var<T> hard_swish(Var<T> x);  // x times that
template <typename T>
Var<T> quick_gelu(Var<T> x);  // x sigmoid(1.702 x)
template <typename T>
Var<T> relu_squared(Var<T> x);

template <typename T>
Var<T> log_softmax(Var<T> x);  // over the last dimension
// y_i = log(e^x_0 + ... + e^x_i) along the last dimension.
template <typename T>
Var<T> cumulative_log_sum_exp(Var<T> x);

}  // namespace kizzasi::autograd
