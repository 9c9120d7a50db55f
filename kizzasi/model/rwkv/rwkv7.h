// RWKV-7 "Goose" (Peng et al. 2025): a matrix a head under a generalised delta rule, with learning rates and decays that follow the frame.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// The first layer hands its values on; the others mix theirs with them (v0, v1, v2).
extern const LayerKind kRwkv7FirstTimeMix, kRwkv7TimeMix;
extern const StackForm kRwkv7;

}  // namespace kizzasi
