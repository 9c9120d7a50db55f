// Checkpoints of RWKV-4 to 7: names of BlinkDL's .pth files ("blocks.0.att.key.weight"), and of Hugging Face's RWKV-4.
#pragma once

#include "kizzasi/model/published.h"

namespace kizzasi {

bool is_published_rwkv(const NamedTensors& tensors);
// The version follows from the names of the tensors, heads and ranks from their shapes; an attention width other than d_model is refused.
Result<PublishedModel> published_rwkv(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
