// Checkpoints of Jamba, Bamba and Qwen3-Next as Hugging Face names them.
#pragma once

#include "kizzasi/model/published.h"

namespace kizzasi {

// Which blocks attend and which have experts is read from the names of the tensors; a model without any attention is refused. Biases in
// some projections and not in others are refused.
bool is_published_jamba(const NamedTensors& tensors);
Result<PublishedModel> published_jamba(const NamedTensors& tensors, const Json& config, std::string_view where);

// Several groups of B and C are refused: its gated norm takes all channels together.
bool is_published_bamba(const NamedTensors& tensors);
Result<PublishedModel> published_bamba(const NamedTensors& tensors, const Json& config, std::string_view where);

// Experts whose weights are not made to sum to one are refused.
bool is_published_qwen3_next(const NamedTensors& tensors);
Result<PublishedModel> published_qwen3_next(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
