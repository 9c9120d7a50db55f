// RWKV-4 (Peng et al. 2023): an average of all values so far, weighted by keys and by age, gated by the receptance.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Time mix with the published names: time_decay, time_first, time_mix_k|v|r, key, value, receptance, output.
extern const LayerKind kRwkv4TimeMix;
extern const StackForm kRwkv4;

}  // namespace kizzasi
