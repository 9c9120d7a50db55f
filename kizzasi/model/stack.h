// The stack of every backbone here: blocks of sublayers, each between a norm and a residual sum, then a last norm.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "kizzasi/model/backbone.h"
#include "kizzasi/model/layer.h"

namespace kizzasi {

enum class NormKind { kRms, kLayer };  // a layer norm has a bias beside its gain

// x += layer(norm(x))
struct Sublayer {
  std::string_view norm, name;  // tensors "layers.3.<norm>.weight" and "layers.3.<name>.<the layer's own>"
  // Which layer stands there in block `layer`: blocks of a hybrid differ.
  const LayerKind& (*kind)(const BackboneConfig&, std::int64_t layer);
};

struct StackForm {
  std::span<const Sublayer> sublayers;  // of each block, in this order
  NormKind norm = NormKind::kRms;       // of all norms, with config.norm_eps
  const LayerKind* entry = nullptr;     // x = entry(x) before the first block, tensors "entry.*"; a norm or positions
};

// Every tensor of a stack by name: "layers.0.norm.weight", "layers.0.mixer.<the layer's own>", ..., "norm_f.weight".
std::map<std::string, Shape> stack_shapes(const StackForm& form, const BackboneConfig& config);
// How many numbers those are.
std::size_t stack_parameters(const StackForm& form, const BackboneConfig& config);

// Each tensor is drawn from a generator of its own name: a change of one leaves the others as they were.
NamedTensors initial_stack(const StackForm& form, const BackboneConfig& config, Rng rng);

Result<std::unique_ptr<Backbone>> load_stack(const StackForm& form, const BackboneConfig& config, const NamedTensors& weights);

// What must fit together, asked of every layer.
Result<void> check_stack(const StackForm& form, const BackboneConfig& config, std::string_view where);

}  // namespace kizzasi
