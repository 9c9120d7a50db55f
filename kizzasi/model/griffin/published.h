// Checkpoints of RecurrentGemma as Hugging Face names them, and its recurrent block alone.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

bool is_published_griffin(const NamedTensors& tensors);
// Blocks other than recurrent, recurrent, attention in turn (or all recurrent) are refused, and another activation.
Result<PublishedModel> published_griffin(const NamedTensors& tensors, const Json& config, std::string_view where);

bool is_published_rglru(const NamedTensors& tensors);
Result<PublishedLayer> published_rglru(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
