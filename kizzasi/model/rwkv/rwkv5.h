// RWKV-5 "Eagle" and RWKV-6 "Finch" (Peng et al. 2024): a matrix a head that decays, takes in key times value, and is read by the
// receptance.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// 5.0 and 5.1: one decay and one bonus a head, 5.1 with a gate; 5.2: a decay and a bonus a channel; 6: decay and mixing depend on the
// frame.
extern const LayerKind kRwkv50TimeMix, kRwkv51TimeMix, kRwkv52TimeMix, kRwkv6TimeMix;
extern const StackForm kRwkv50, kRwkv51, kRwkv52, kRwkv6;

}  // namespace kizzasi
