// Checkpoints of transformers as Hugging Face names them: Llama, Mistral, Mixtral, and GPT-2.
#pragma once

#include "kizzasi/model/published.h"

namespace kizzasi {

bool is_published_llama(const NamedTensors& tensors);
// Attention sees sliding_window frames, or where that is null max_position_embeddings. Another activation and scaled positions are refused.
Result<PublishedModel> published_llama(const NamedTensors& tensors, const Json& config, std::string_view where);

bool is_published_gpt2(const NamedTensors& tensors);
Result<PublishedModel> published_gpt2(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
