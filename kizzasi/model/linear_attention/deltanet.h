// DeltaNet (Yang et al. 2024) and Gated DeltaNet (Yang, Kautz and Hatamizadeh 2025), in the form of flash-linear-attention.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// q, k, v = silu(conv1d(projections of x));   q, k of unit length a head, q / sqrt(d_state);   beta = sigmoid(b_proj x), one a head
// S = alpha S + beta k (v - alpha S^T k)^T;   o = S^T q
// DeltaNet:        alpha = 1;                                                       out = o_proj rms_norm(o)
// Gated DeltaNet:  alpha = exp(-exp(A_log) softplus(a_proj x + dt_bias)), one a head;   out = o_proj (silu(g_proj x) rms_norm(o))
// The norm is over each head, with one gain for all.
//
// Uses d_model, d_state (keys a head), head_dim (values a head), expand or d_inner, d_conv and norm_eps; Gated DeltaNet also n_key_heads
// (heads of q and k, each for as many heads of v; 0: as many) and, for the start of training, dt_min and dt_max. Ignores every other field;
// the convolutions have no bias. No step size: a lane's dt changes nothing.
// State: conv (d_conv, q k v), the last inputs of the convolutions; S (heads, d_state, head_dim).
extern const LayerKind kDeltaNetLayer, kGatedDeltaNetLayer;

}  // namespace kizzasi
