// Checkpoints of xLSTM: the large model as Hugging Face names it, and the blocks of the first release.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

bool is_published_xlstm(const NamedTensors& tensors);
// Both weight modes, single and fused. Another cap of the gates than 15 is refused.
Result<PublishedModel> published_xlstm(const NamedTensors& tensors, const Json& config, std::string_view where);

// x + mlstm(norm(x)), and where the file holds one the feed-forward block after it. Norms are stored minus one.
bool is_published_mlstm(const NamedTensors& tensors);
Result<PublishedLayer> published_mlstm(const NamedTensors& tensors, const Json& config, std::string_view where);

bool is_published_slstm(const NamedTensors& tensors);
// x + group_norm(cell(norm(x))), and where the file holds one the feed-forward block after it. Norms are stored minus one.
Result<PublishedLayer> published_slstm(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
