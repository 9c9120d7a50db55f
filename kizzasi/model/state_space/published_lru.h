// Published names of LRU (minimal-LRU), alone and in its block.
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

// lru_layer (nu_log, B_re, ...) and the block with a layer norm around it (normalization.*, seq.*, out1.*, out2.*).
bool is_published_lru(const NamedTensors& tensors);
Result<PublishedLayer> published_lru(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
