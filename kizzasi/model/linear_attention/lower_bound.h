// Lower bounds of forget gates that rise with depth (Qin et al. 2023, HGRN, section 3.2): blocks further up remember longer.
#pragma once

#include <string>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/model/layer.h"

namespace kizzasi::matrix_heads {

// The tensor of a block: its row of the published parameter (blocks, channels). The softmax of the rows over the blocks, added up from the
// second block to the layer's own, is the bound: zero for the first block.
inline constexpr const char* kLowerBound = "lower_bound";

// For steps. The layer's prefix has the number of its block in it.
std::vector<float> lower_bounds(const LayerWeights& weights, std::size_t blocks);

// For training: (channels), or no value for the first block.
template <typename T>
autograd::Var<T> lower_bounds(const WeightVars<T>& weights, const std::string& prefix, std::size_t blocks);

}  // namespace kizzasi::matrix_heads
