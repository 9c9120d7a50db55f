// DSS (Gupta, Gu and Berant 2022, "Diagonal state spaces are as effective as structured state spaces"), in its form DSS-exp.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   Lambda = -exp(Lambda_log_re) + i Lambda_im, the same for all channels,   step = exp(log_dt), one a channel
//   s = exp(step Lambda) s + u,   y = Re(sum W (exp(step Lambda) - 1) / Lambda s) + D u,   out = GLU(output_linear gelu(y))
// between the norm and the residual sum of a stack: s4d with shared eigenvalues, zoh, and without the conjugate half. The other form of the
// paper, DSS-softmax, divides by a sum over the whole sequence: no stream knows it (published_dss.h computes it for `verify`).
// d_state / 2 complex numbers a channel. Uses d_model, d_state, dt_min, dt_max; ignores every other field.
// State: ssm (2, d_state / 2, d_model), real plane then imaginary plane.
extern const LayerKind kDssLayer;

}  // namespace kizzasi
