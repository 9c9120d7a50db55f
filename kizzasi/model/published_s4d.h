// Published S4D layers: of s4d.py ("kernel.log_dt", ...), and as S4Block of s4.py in diagonal mode ("layer.kernel.inv_dt", ...).
#pragma once

#include "kizzasi/model/published_layer.h"

namespace kizzasi {

bool is_published_s4d(const NamedTensors& tensors);
// config: "disc", the discretisation.
Result<PublishedLayer> published_s4d(const NamedTensors& tensors, const Json& config, std::string_view where);

}  // namespace kizzasi
