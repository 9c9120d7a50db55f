// Causal attention and rotary positions on the tape.
#pragma once

#include "kizzasi/autograd/sequences.h"
#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

// softmax(q k^T / sqrt(D)) v, each query over its own frame and the window - 1 before it: q (batch, time, heads, D); k, v (batch, time,
// kv_heads, D), each read by heads / kv_heads query heads. -> dims of q. Tiles of queries at a time: memory grows with time, not with its
// square; the adjoint works the weights out again (Dao et al. 2022).
// packed: the lengths of sequences that stand one after another along time, of which none sees another; empty: one sequence.
template <typename T>
Var<T> attention(Var<T> q, Var<T> k, Var<T> v, std::size_t window, const Lengths& packed = {});

// Rotary positions (Su et al. 2021) in the halves form of Llama: the first `rotated` channels of each head, in pairs (i, i + rotated / 2),
// turn by t theta^(-2 i / rotated) at time t. x: (batch, time, heads, D); rotated even, at most D.
// Time begins again with each of packed sequences.
template <typename T>
Var<T> rotary(Var<T> x, double theta, std::size_t rotated, const Lengths& packed = {});

// The turns a frame of each pair, rounded to float as published code has them.
std::vector<double> rotary_frequencies(double theta, std::size_t rotated);

}  // namespace kizzasi::autograd
