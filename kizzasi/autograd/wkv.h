// The recurrence of RWKV-4 on the tape, and the shift of all of them.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// From the state before the first row. k, v: (batch, time, C); w = -exp(time_decay), u = time_first: (C). -> (batch, time, C)
template <typename T>
Var<T> wkv4(Var<T> k, Var<T> v, Var<T> w, Var<T> u);

// x[t - 1] in the place of x[t], zeros first: (batch, time, C).
template <typename T>
Var<T> shifted(Var<T> x);

// exp(-exp(x)), elementwise and rounded once: decays that stand for every step, of which a last digit lost is lost as often as they are
// used.
template <typename T>
Var<T> decay_of(Var<T> x);

}  // namespace kizzasi::autograd
