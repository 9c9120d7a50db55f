// Mamba (Gu and Dao 2023), and the forms that norm dt, B and C: FalconMamba (Zuo et al. 2024) and Jamba (Lieber et al. 2024).
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   x, z = in_proj u;   x = silu(conv1d x);   dt, B, C = x_proj x;   delta = softplus(dt_proj dt + bias)
//   h = exp(delta A) h + delta B x;   y = C h + D x;   out = out_proj (y silu(z)),   A = -exp(A_log)
// FalconMamba puts dt, B and C through an RMS norm without gain (mixer_norm_eps) before their use, Jamba through norms with gains
// (dt_layernorm, b_layernorm, c_layernorm).
// State: conv (d_conv, E), ssm (d_state, E), E the inner width.
extern const LayerKind kMambaLayer;
extern const LayerKind kFalconMambaLayer;
extern const LayerKind kJambaMambaLayer;

}  // namespace kizzasi
