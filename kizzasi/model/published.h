// Checkpoints as others publish them: their names and configurations turned into ours.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "kizzasi/base/json.h"
#include "kizzasi/model/config.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// A language-model checkpoint of the Mamba family. The shapes of the tensors decide every size; the configuration gives what shapes cannot
// tell (groups, epsilons, limits, tied heads).
struct PublishedModel {
  BackboneConfig config;
  NamedTensors weights;  // of the backbone, under the names of the table of architectures
  Tensor embedding;      // (vocabulary, d_model); no values where the file has none
  Tensor head;           // (vocabulary, d_model); no values where it is the embedding
};

// Names and keys of Hugging Face (mamba, falcon_mamba, mamba2) and of mamba_ssm ("original"). What the checkpoint or its configuration asks
// for and this program does not compute (another activation, layer norm in place of RMS norm, attention layers) is an error.
Result<PublishedModel> published_model(const NamedTensors& tensors, const Json& config, std::string_view where);
// Whether this looks like one.
bool is_published_model(const NamedTensors& tensors);

// JSON as Python writes it: Infinity, -Infinity and NaN as bare words, or as {"__float__": "Infinity"}; both read as the latter.
Result<Json> parse_python_json(std::string_view text, std::string_view where);
// A number in any of these forms, or `otherwise`.
double python_number(const Json* json, double otherwise);

}  // namespace kizzasi
