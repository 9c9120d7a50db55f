// The table of architectures: a name gives that architecture, everywhere the same name.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/model/backbone.h"

namespace kizzasi {

struct Architecture {
  std::string_view name;     // "mamba2"
  std::string_view summary;  // one line for help
  // What must fit together beyond the ranges of the fields; BackboneConfig::check asks it.
  Result<void> (*check)(const BackboneConfig&, std::string_view where);
  // Every weight by name; the names are the published ones below "backbone." ("layers.0.mixer.in_proj.weight", "norm_f.weight").
  std::map<std::string, Shape> (*shapes)(const BackboneConfig&);
  // How many numbers those are.
  std::size_t (*parameters)(const BackboneConfig&);
  // Weights at the start of training, as the papers draw them.
  NamedTensors (*initial_weights)(const BackboneConfig&, Rng);
  // Checks names and shapes; a missing, surplus or misshapen tensor is an error that names it.
  Result<std::unique_ptr<Backbone>> (*load)(const BackboneConfig&, const NamedTensors&);
  // Its recurrence runs in time: a lane's dt changes its step size, and a stream may be sampled at another rate than the training data.
  bool in_time = false;
};

std::span<const Architecture> architectures();
Result<const Architecture*> find_architecture(std::string_view name);

// Weights of a stack of this configuration, without making one: what the parameter cap looks at. The configuration must be within its
// ranges.
std::size_t parameter_count(const BackboneConfig& config);

// Sizes by name: tiny, small, base, large, xlarge of an architecture; an unknown one is an error.
Result<BackboneConfig> sized(std::string_view architecture, std::string_view size);

}  // namespace kizzasi
