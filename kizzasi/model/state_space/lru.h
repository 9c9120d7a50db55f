// LRU (Orvieto et al. 2023, "Resurrecting recurrent neural networks for long sequences"): linear, stable by construction.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   h = lambda h + gamma (B u),   lambda = exp(-exp(nu_log) + i exp(theta_log)),   gamma = exp(gamma_log)
//   y = Re(C h) + D u,   out = ssm_activation(y), by default (out1 g) * sigmoid(out2 g) with g = gelu_tanh(y)
// As in minimal-LRU, between the norm and the residual sum of a stack; lru_layer there is ssm_activation none. d_inner / 2 complex numbers
// of state, rounded up (d_hidden there). Where dt is not 1, lambda^dt and the input gain that an input held between samples gives: a step
// of 2 is two steps of 1. Uses d_model, expand or d_inner, ssm_activation; ignores every other field. State: h (2, N), real, then imaginary
// parts.
extern const LayerKind kLruLayer;

}  // namespace kizzasi
