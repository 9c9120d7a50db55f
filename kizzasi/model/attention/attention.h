// Causal attention over a window of the last frames, as layers: grouped queries, rotary positions, a ring of keys and values as state.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Names: q_proj, k_proj, v_proj, o_proj. Heads: config.n_heads (0: d_model / head_dim) and n_kv_heads (0: as many); window frames.
// kRotaryAttention: Llama's, rotary positions over whole heads, biases where proj_bias. kLocalAttention: Griffin's, over half of each head,
// a bias on the way out. kPlainAttention: GPT-2's, no positions of its own, biases everywhere.
extern const LayerKind kRotaryAttention, kLocalAttention, kPlainAttention;

}  // namespace kizzasi
