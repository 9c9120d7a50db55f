// The recurrences of xLSTM (Beck et al. 2024) that no other layer has.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// m[t] = max(m[t - 1] + decay[t], in[t]) from m = 0: the running exponent of gates that are exponentials. decay, in: (batch, time, H).
template <typename T>
Var<T> log_max_scan(Var<T> decay, Var<T> in);

// sLSTM from zero: x (batch, time, 4 D), W x + b of the slots i, f, z, o in this order; r (heads, 4 P, P), the recurrence of each head with
// itself, D = heads P. With raw gates x + R h: m' = max(log sigmoid(f) + m, i), the first frame m' = i; i' = e^(i - m'),
// f' = e^(log sigmoid(f) + m - m');  c = f' c + i' tanh(z), n = f' n + i', h = sigmoid(o) c / n. -> h of every step, (batch, time, D).
template <typename T>
Var<T> slstm(Var<T> x, Var<T> r);

}  // namespace kizzasi::autograd
