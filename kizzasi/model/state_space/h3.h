// H3 (Fu et al. 2023, "Hungry hungry hippos"): a shift register and a diagonal system between products.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   q, k, v = projections of u;   k = shift(k) + ssm_k_D k, a causal filter over d_state frames, shift(k)[t] = sum_j (sum_n C[n + j] B[n])
//   k[t - j] m[i][j] = k[i] v[j] within each head of head_dim channels;   y = diagonal system of the head (m) + D m out =
//   output_linear(sum_i q[i] y[i][j])
// As HazyResearch/H3, between the norm and the residual sum of a stack. d_state counts the frames of the register, and twice the complex
// states of the diagonal system. A lane's dt multiplies the step of the diagonal system; the register counts frames.
// Uses d_model, d_state, head_dim, discretization, dt_min, dt_max; ignores every other field.
// State: conv (d_state, d_model), the last inputs of the register, newest last; ssm (2, d_state / 2, d_model head_dim).
extern const LayerKind kH3Layer;

}  // namespace kizzasi
