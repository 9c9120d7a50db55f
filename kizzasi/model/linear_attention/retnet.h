// Retention (Sun et al. 2023), in the form of torchscale's multi-scale retention.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// q, k (heads d_state), v, g (inner) = projections of x, q and k / sqrt(d_state) turned by their position: pairs (2i, 2i + 1) by angles
// 10000^-linspace(0, 1) a step
// S = gamma S + k v^T;   o = S^T q, gamma = 1 - 2^(-5 - head);   out = out_proj (silu(g) n(o))
// with n(o) = o / sqrt(mean(o^2) + norm_eps scale), scale = 1 + gamma + ... + gamma^t: the published recurrent form. Its parallel form
// divides by sums of all scores as well, which no state of fixed size holds; the two differ by what norm_eps is worth.
//
// Uses d_model, d_state (keys a head: d_model / heads as published), head_dim (values a head), expand or d_inner, and norm_eps; ignores
// every other field. No step size: a lane's dt changes nothing. State: S (heads, d_state, head_dim), scale (heads), position.
extern const LayerKind kRetNetLayer;

}  // namespace kizzasi
