// sLSTM of xLSTM (Beck et al. 2024): a cell a channel behind exponential gates, with a full recurrence inside each head.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Names as published: igate, fgate, zgate, ogate (heads, P, P), conv1d.conv, slstm_cell._recurrent_kernel_ (heads, 4 P, P) and _bias_ (4 d,
// slots i, f, z, o), group_norm. As published the layer feeds what is called fgate into slot i and igate into slot f; these two see the
// frame through the convolution where config.slstm_conv. Heads: config.n_heads (0: d_model / head_dim).
extern const LayerKind kSlstm;
extern const StackForm kSlstmStack;

}  // namespace kizzasi
