// A layer norm before the first block: the ln0 of the RWKVs.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Tensors "weight" and "bias"; config.norm_eps.
extern const LayerKind kLayerNormEntry;

}  // namespace kizzasi
