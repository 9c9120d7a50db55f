// S4D (Gu et al. 2022): a diagonal complex linear system a channel, then GELU and a gated linear map.
#pragma once

#include <memory>

#include "kizzasi/autograd/diagonal_discretize.h"
#include "kizzasi/model/layer.h"

namespace kizzasi {

//   s = a s + u,   y = Re(sum c s) + D u,   out = GLU(output_linear gelu(y)),   (a, c) discretised from log_dt, A = -exp(log_A_real) + i
//   A_imag, C
// As published in s4d.py, between the norm and the residual sum of a stack. d_state counts conjugate pairs twice: d_state / 2 complex
// numbers a channel. A lane whose dt is not 1 discretises anew in every call: the same system, sampled at another rate, which may change
// from call to call. Ignores expand, d_inner, d_conv, dt_rank, head_dim, n_groups, chunk, dt limits, mixer_norm_eps and the bias switches.
// State: ssm (2, d_state / 2, d_model), real plane then imaginary plane, B not in it.
extern const LayerKind kS4dLayer;

autograd::Discretization discretization_of(const BackboneConfig& config);

}  // namespace kizzasi
