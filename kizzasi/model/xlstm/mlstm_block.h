// The mLSTM block of xLSTM's first release (Beck et al. 2024): the cell between projections up and down, behind a short convolution.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// x, z = proj_up u;   c = silu(conv x);   q, k = block-diagonal maps of c, v of x;   gates i, f from q, k and v side by side
// out = proj_down ((cell(q, k / sqrt(P), v) + learnable_skip c) silu(z)),   P = inner / heads channels of keys and of values a head
//
// Names as published: proj_up, conv1d.conv, q_proj, k_proj, v_proj (blocks of config.qkv_block channels), mlstm_cell.igate, .fgate,
// .outnorm, learnable_skip, proj_down; biases of the projections where proj_bias. Heads: config.n_heads (0: inner / head_dim).
// State: conv (d_conv, inner), C and m of the cell.
extern const LayerKind kMlstmInner;
extern const StackForm kMlstmStack;

}  // namespace kizzasi
