// The stack of every backbone here: x += layer(rms_norm(x)) for each layer, then a last rms_norm.
#pragma once

#include <memory>
#include <string_view>

#include "kizzasi/model/backbone.h"
#include "kizzasi/model/layer.h"

namespace kizzasi {

// Every tensor of a stack by name: "layers.0.norm.weight", "layers.0.mixer.<the layer's own>", ..., "norm_f.weight".
std::map<std::string, Shape> stack_shapes(const LayerKind& kind, const BackboneConfig& config);

// Each tensor is drawn from a generator of its own name: a change of one leaves the others as they were.
NamedTensors initial_stack(const LayerKind& kind, const BackboneConfig& config, Rng rng);

Result<std::unique_ptr<Backbone>> load_stack(const LayerKind& kind, const BackboneConfig& config, const NamedTensors& weights);

}  // namespace kizzasi
