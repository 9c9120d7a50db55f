// Training on sequences of unequal length in one batch.
#pragma once

#include "kizzasi/autograd/sequences.h"
#include "kizzasi/model/backbone.h"

namespace kizzasi {

// x (total rows, d_model): sequences packed one after another -> the same, each from reset state, none seeing another. They run padded with
// zeros to the longest, which no row of a causal backbone sees: cheapest where lengths differ little. No rows at all: x itself.
template <typename T>
autograd::Var<T> packed_forward(const Backbone& backbone, const WeightVars<T>& weights, autograd::Var<T> x,
                                const autograd::Lengths& lengths) {
  const std::size_t time = autograd::longest(lengths);
  return time == 0 ? x : autograd::pack(backbone.forward(weights, autograd::unpack(x, lengths, time)), lengths);
}

}  // namespace kizzasi
