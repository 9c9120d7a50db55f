// Causal attention over a window of the last frames, as layers: grouped queries, rotary positions, a ring of keys and values as state.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Names: q_proj, k_proj, v_proj, o_proj. Heads of attention_head_dim channels (0: head_dim): config.n_heads (0: as d_model holds) and
// n_kv_heads (0: as many); window frames. kRotaryAttention: Llama's, rotary positions over rope_fraction of each head, biases where
// proj_bias. kGatedAttention: Qwen3-Next's, the same with queries and keys in RMS norms a head (q_norm, k_norm) and every output times
// sigmoid of a gate; q_proj holds of each head the query, then the gate. kUnplacedAttention: Jamba's, without positions, biases where
// proj_bias. kLocalAttention: Griffin's, positions over half of each head, a bias on the way out. kPlainAttention: GPT-2's, no positions of
// its own, biases everywhere.
extern const LayerKind kRotaryAttention, kGatedAttention, kUnplacedAttention, kLocalAttention, kPlainAttention;

}  // namespace kizzasi
