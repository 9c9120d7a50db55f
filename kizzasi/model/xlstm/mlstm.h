// mLSTM of xLSTM (Beck et al. 2024) in the form of its large model (Beck et al. 2025): a matrix a head behind exponential gates.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Names as published: q, k, v, ogate_preact, igate_preact, fgate_preact (with biases), multihead_norm, out_proj. Heads: config.n_heads (0:
// d_model / head_dim), each with config.d_state keys. mixer_norm_eps: added to what a read is divided by.
extern const LayerKind kMlstm;
extern const StackForm kXlstm;

}  // namespace kizzasi
