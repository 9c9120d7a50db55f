// Gated linear attention (Yang et al. 2023), in the form of flash-linear-attention.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// q, k (heads d_state), v, g (inner) = projections of x;  a = sigmoid(gk_proj.1 gk_proj.0 x)^(1/16), one a key channel
// S = diag(a) S + k v^T;   o = S^T q / sqrt(d_state);   out = o_proj (silu(g) rms_norm(o)), the norm over each head, one gain for all
//
// Uses d_model, d_state (keys a head), head_dim (values a head), expand or d_inner, dt_rank (rank of the gate, 0: 16) and norm_eps; ignores
// every other field. No step size: a lane's dt changes nothing. State: S (heads, d_state, head_dim).
extern const LayerKind kGlaLayer;

}  // namespace kizzasi
