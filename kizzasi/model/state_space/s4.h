// S4 (Gu, Goel and Re 2022): a system a channel, diagonal plus low rank, that starts as HiPPO-LegS.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   A = diag(Lambda) - P P^*,   Lambda = -exp(A_real) - i A_imag,   step = exp(inv_dt), discretised by the bilinear rule
//   s = A_bar s + B_bar u,   y = 2 Re(C s) + D u,   out = GLU(output_linear gelu(y))
// As S4Block of s4.py in dplr mode, between the norm and the residual sum of a stack, with C as it was before the reference turned it into
// C (I - A_bar^L). d_state counts conjugate pairs twice: N = d_state / 2 complex numbers a channel. Training and stepping run one and the
// same recurrence, of O(N) a step through the low-rank form. A lane's dt multiplies the step.
// Uses d_model, d_state, dt_min, dt_max; ignores every other field.
// State: ssm (2, d_state / 2, d_model), real plane then imaginary plane.
extern const LayerKind kS4Layer;

}  // namespace kizzasi
