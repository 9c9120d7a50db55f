// Published names of H3 (HazyResearch/H3, mode diag).
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// Where heads have more than one channel the reference hands y to output_linear with the heads within the channels, (j, h), and takes q, k
// and v the other way, (h, j); the columns of its output_linear are reordered here.
bool is_published_h3(const NamedTensors& tensors);
Result<PublishedLayer> published_h3(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
