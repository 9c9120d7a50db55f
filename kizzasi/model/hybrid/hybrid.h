// Stacks that mix attention with layers of fixed state: Jamba (Lieber et al. 2024), Bamba (Chen et al. 2024), Qwen3-Next (2025).
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Whether block `layer` has attention: as config.attention_layers says; where that is empty every fourth block, of fewer blocks the last.
bool has_attention(const BackboneConfig& config, std::int64_t layer);
// Whether its feed-forward half is a mixture of experts: as config.expert_layers says; where that is empty every second block.
bool has_experts(const BackboneConfig& config, std::int64_t layer);

// x += mixer(norm(x));   x += ffn(ffn_norm(x)), RMS norms. Heads of attention have config.attention_head_dim channels (0: head_dim).
// kJamba: Mamba with normed dt, B and C, or attention without positions; SwiGLU, or experts where n_experts > 1.
// kBamba: Mamba-2, or attention with rotary positions; SwiGLU.
// kQwen3Next: Gated DeltaNet, or gated attention with normed queries and keys; SwiGLU, or where n_experts > 1 experts beside a shared one.
extern const StackForm kJamba, kBamba, kQwen3Next;

}  // namespace kizzasi
