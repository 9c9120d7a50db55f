// Lone layers as others publish them, turned into ours: what `verify` needs of each kind.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/json.h"
#include "kizzasi/model/layer.h"
#include "kizzasi/model/published.h"

namespace kizzasi {

// A published layer, or several in a chain with nothing between them, as layers of this program. Inputs narrower than d_model are followed
// by zeros.
struct PublishedLayer {
  const LayerKind* kind = nullptr;
  BackboneConfig config;
  std::size_t layers = 1;
  bool streams = true;  // false: the published form needs whole sequences, and only forward is compared
  // Published weights as ours, those of layer i under "<i>." ("0.D"), through the tape: so gradients come back under the published names.
  std::function<WeightVars<float>(const WeightVars<float>&)> ours;
  std::function<WeightVars<double>(const WeightVars<double>&)> ours64;
  // The states after the last frame as the reference's tensor of that name; nothing where it is no state. Fields of layer i begin with
  // "layer<i>.".
  std::function<std::optional<std::vector<float>>(const std::string& name, const StateBatch&)> state;
  // Other tensors of the reference that follow from the weights (a convolution kernel of so many frames); may be empty.
  std::function<std::optional<std::vector<float>>(const std::string& name, std::size_t frames)> derived;
};

struct LayerFormat {
  std::string_view name;
  bool (*recognises)(const NamedTensors&);
  // config: the published one. What does not fit together is an error that names it.
  Result<PublishedLayer> (*read)(const NamedTensors&, const Json& config, std::string_view where);
};

// Every format known here, one a line.
std::span<const LayerFormat> layer_formats();

// Each tensor has the shape wanted of it, none is missing and none more than wanted.
Result<void> check_published(const NamedTensors& tensors, std::map<std::string, Shape> wanted, std::string_view format,
                             std::string_view where);

}  // namespace kizzasi
