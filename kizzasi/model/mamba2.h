// Mamba-2 (Dao and Gu 2024): a scalar decay a head, an outer-product state, a gated norm before the output projection.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   z, x, B, C, dt = in_proj u;   x, B, C = silu(conv1d(x, B, C));   delta = clamp(softplus(dt + dt_bias), limits)
//   S = exp(delta A) S + delta x B^T;   y = S C + D x;   out = out_proj rms_norm_groups(y silu(z)),   A = -exp(A_log)
// d_inner E = heads * head_dim; n_groups pairs (B, C) are shared by heads / n_groups heads each.
// State: conv (d_conv, E + 2 n_groups d_state), ssm (heads, d_state, head_dim).
extern const LayerKind kMamba2Layer;

}  // namespace kizzasi
