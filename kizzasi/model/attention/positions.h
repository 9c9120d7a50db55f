// Learned positions, added to each frame before the first block: GPT-2's "wpe".
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Tensor "weight" (window, d_model). A stream longer than that stays at the last position, with attention over the last `window` frames.
extern const LayerKind kLearnedPositions;

}  // namespace kizzasi
