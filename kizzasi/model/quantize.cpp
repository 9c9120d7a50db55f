#include "kizzasi/model/quantize.h"

#include <fmt/format.h>

#include "kizzasi/tensor/quantized.h"

namespace kizzasi {

Result<NamedTensors> quantized(const NamedTensors& weights, const PackedNames& packed, kernels::Precision precision) {
  NamedTensors rounded = weights;
  for (const auto& [name, axis] : packed) {
    Tensor& tensor = rounded.at(name);
    if (tensor.storage.precision != kernels::Precision::kF32) {
      return fail({Fault::kBadInput, fmt::format("it stands in {} already", kernels::precision_name(tensor.storage.precision)),
                   fmt::format("weight '{}'", name), "weights in f32", "Round the model that training wrote."});
    }
    if (weights.count(name + ".scale") != 0) {
      return fail({Fault::kBadInput, fmt::format("the model has a weight '{}.scale'", name), fmt::format("weight '{}'", name),
                   "that name free for the scales of its integers", ""});
    }
    if (auto done = set_precision(tensor, precision, axis, name); !done) return fail(done.error());
  }
  return rounded;
}

}  // namespace kizzasi
