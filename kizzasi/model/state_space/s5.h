// S5 (Smith, Warrington and Linderman 2023): one diagonal system in continuous time for all channels.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

//   h = a h + b (B u),   (a, b) discretised from Lambda and exp(log_step);   y = 2 Re(C h) + D u,   out = ssm_activation(y)
// As in lindermanlab/S5 with conj_sym and clip_eigs (Re Lambda at most -1e-4), between the norm and the residual sum of a stack. N =
// d_inner / 2 complex numbers of state, rounded up (P there); their conjugates are counted in. A lane's dt multiplies the step. Uses
// d_model, expand or d_inner, discretization, s5_blocks, dt_min, dt_max, ssm_activation; ignores every other field. bidirectional (a second
// scan from the end, C1 and C2) is computed by forward alone and refused by check: a stream has no end. State: h (2, N), real, then
// imaginary parts.
extern const LayerKind kS5Layer;

inline constexpr float kS5LargestReal = -1e-4f;  // of Lambda

}  // namespace kizzasi
