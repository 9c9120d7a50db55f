// Checkpoints as others publish them: their names and configurations turned into ours.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/aligned.h"
#include "kizzasi/base/json.h"
#include "kizzasi/model/backbone.h"
#include "kizzasi/model/config.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// The state of one stream, and those of a batch of streams with where everything stands in them.
using StateBlock = AlignedVector<std::byte>;
struct StateBatch {
  const StateLayout& layout;
  std::span<const StateBlock> blocks;
  // Field `name` of stream b.
  std::span<const float> floats(std::size_t b, const std::string& name) const;
  // That field of every stream, one after the other; nothing where there is no such field.
  std::optional<std::vector<float>> all(const std::string& name) const;
  // The same with the last two axes of each exchanged.
  std::optional<std::vector<float>> with_last_axes_swapped(const std::string& name) const;
};

// A whole model, most often of language. The shapes of the tensors decide every size; the configuration gives what shapes cannot tell
// (groups, epsilons, limits, tied heads).
struct PublishedModel {
  BackboneConfig config;
  // Published weights as those of the backbone, under the names of the table of architectures, through the tape: so gradients come back
  // under the published names.
  std::function<WeightVars<float>(const WeightVars<float>&)> ours;
  std::function<WeightVars<double>(const WeightVars<double>&)> ours64;
  // Tensors of the file, (vocabulary, d_model) each; empty where it has none. Of a model whose head is its embedding the same name twice.
  std::string embedding, head;
  double logit_cap = 0;  // logits are cap tanh(logits / cap); 0: as they are
  // The states after some frames as the reference's field of that name ("layer0.conv"); nothing where it is none.
  std::function<std::optional<std::vector<float>>(const std::string& field, const StateBatch&)> state;
};

// One way of taking weights over for both types of tape.
template <typename Published, typename Way>
void set_ours(Published& published, Way way) {
  published.ours = [way](const WeightVars<float>& theirs) { return way(theirs); };
  published.ours64 = [way](const WeightVars<double>& theirs) { return way(theirs); };
}

// names: published to ours.
template <typename T>
WeightVars<T> renamed(const WeightVars<T>& theirs, const std::map<std::string, std::string>& names) {
  WeightVars<T> ours;
  for (const auto& [published, name] : names) ours.add(name, theirs.at(published));
  return ours;
}

// What a reader of checkpoints answers to what it cannot read.
tl::unexpected<Error> refused(std::string what, std::string_view where, std::string expected = "");
// Axis of that tensor; 0 where there is none.
std::int64_t size_of(const NamedTensors& tensors, const std::string& name, std::size_t axis);

struct ModelFormat {
  std::string_view name;
  bool (*recognises)(const NamedTensors&);
  // config: the published one. What the checkpoint or its configuration asks for and this program does not compute is an error.
  Result<PublishedModel> (*read)(const NamedTensors&, const Json& config, std::string_view where);
};

// Every format of whole models known here, one a line.
std::span<const ModelFormat> model_formats();

// Published tensors taken through `ours`, in double.
NamedTensors taken_over(const NamedTensors& published, const std::function<WeightVars<double>(const WeightVars<double>&)>& ours);

// JSON as Python writes it: Infinity, -Infinity and NaN as bare words, or as {"__float__": "Infinity"}; both read as the latter.
Result<Json> parse_python_json(std::string_view text, std::string_view where);
// A number in any of these forms, or `otherwise`.
double python_number(const Json* json, double otherwise);

}  // namespace kizzasi
