// Fused recurrences with a matrix state a head, from S = 0: forward through the kernels, adjoint by hand.
#pragma once

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// Linear attention with decay (kernels/linear_attention.h): q, k (batch, time, heads, K); v (batch, time, heads, V) -> dims of v.
// decay: one a key channel (batch, time, heads, K), or one a head (batch, time, heads), or the same at every step: (heads, K) or (heads).
// bonus: (heads, K): the read comes before the update and sees the present step by it (RWKV); {}: the read comes after.
template <typename T>
Var<T> linear_attention(Var<T> q, Var<T> k, Var<T> v, Var<T> decay, Var<T> bonus = {});

// The delta rule S (diag(decay) + a b^T) + v k^T (kernels/delta_rule.h): q, k, a, b (batch, time, heads, K); v (batch, time, heads, V) ->
// dims of v. decay: as above, or {} for ones.
template <typename T>
Var<T> delta_rule(Var<T> q, Var<T> k, Var<T> v, Var<T> a, Var<T> b, Var<T> decay = {});

}  // namespace kizzasi::autograd
