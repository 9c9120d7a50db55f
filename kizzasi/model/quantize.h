// A model in fewer bits: which of its weights are rounded, and to what.
#pragma once

#include "kizzasi/model/layer_weights.h"

namespace kizzasi {

// Rounds the weights that `packed` names, all of those a model multiplies by, and leaves the others (norms, decays, convolutions, biases,
// the linear short-cut, states) in f32. Weights that stand in another precision than f32 already are an error: rounding twice adds up.
Result<NamedTensors> quantized(const NamedTensors& weights, const PackedNames& packed, kernels::Precision precision);

}  // namespace kizzasi
