// The feed-forward halves of transformer blocks.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Inner width config.d_ffn (0: 4 d_model without a gate, 8/3 of it in whole 8s with one).
// kSwiGlu: down_proj(silu(gate_proj x) * up_proj x) (Shazeer 2020), biases where proj_bias. kGeGlu: the same with the tanh form of GELU and
// biases; kExactGeGlu: with GELU itself, biases where proj_bias. kGelu: down_proj(gelu(up_proj x)) with biases, GELU in its tanh form.
extern const LayerKind kSwiGlu, kGeGlu, kExactGeGlu, kGelu;
// Mixtral's (Jiang et al. 2024): config.n_experts SwiGLUs "experts.0.w1|w2|w3" (gate, down, up), of which the experts_used that `gate`
// rates highest are weighted by its softmax over those. kJambaExperts: weighted by its softmax over all; names `router`,
// "experts.0.gate_proj|down_proj|up_proj". kQwenExperts: Mixtral's weights, names `gate` and as Jamba's experts, and one `shared_expert`
// for every row, times sigmoid of `shared_expert_gate`. Inner widths: config.d_expert (0: d_ffn) and d_shared_expert (0: as the others).
extern const LayerKind kMixtureOfExperts, kJambaExperts, kQwenExperts;

}  // namespace kizzasi
