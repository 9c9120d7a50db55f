// Hierarchically gated recurrent networks: HGRN (Qin, Yang and Zhong 2023) and HGRN2 (Qin et al. 2024), in the form of
// flash-linear-attention.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// f = b + (1 - b) sigmoid(f_proj x), with bounds b that rise from block to block (lower_bound.h): what a gate may forget at most.
//
// HGRN:   h = f h + (1 - f) silu(i_proj x);   out = o_proj (silu(g_proj x) rms_norm(h))
// HGRN2:  S = diag(f) S + (1 - f) (i_proj x)^T;   o = S^T silu(q_proj x) / sqrt(d_state);   out = o_proj rms_norm(o), over all heads
//
// HGRN uses d_model, n_layers, expand or d_inner, and norm_eps. HGRN2 also d_state (keys a head) and head_dim (values a head; as published
// both are the expansion, with inner width d_model). Every other field is ignored. No step size: a lane's dt changes nothing.
// State: HGRN h (inner); HGRN2 S (heads, d_state, head_dim).
extern const LayerKind kHgrnLayer, kHgrn2Layer;

}  // namespace kizzasi
