// Fused recurrences with a full matrix from step to step: LSTM and GRU, with their adjoints through time.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// LSTM (Hochreiter and Schmidhuber 1997; torch.nn.LSTM) from h = c = 0. x: (batch, time, 4 H), W x + b of the gates i, f, g, o in this
// order; u: (4 H, H). -> h of every step, (batch, time, H).
template <typename T>
Var<T> lstm(Var<T> x, Var<T> u);

// GRU (Cho et al. 2014, the form of torch.nn.GRU) from h = 0. x: (batch, time, 3 H), W x + b of r, z, n; u: (3 H, H); c: (3 H), the biases
// inside the reset, or {}. n = tanh(x_n + r (U_n h + c_n)), h = (1 - z) n + z h. -> (batch, time, H).
template <typename T>
Var<T> gru(Var<T> x, Var<T> u, Var<T> c);

}  // namespace kizzasi::autograd
