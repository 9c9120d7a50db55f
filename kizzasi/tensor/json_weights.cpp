#include "kizzasi/tensor/json_weights.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "kizzasi/base/suggest.h"
#include "kizzasi/tensor/files.h"

namespace kizzasi {
namespace {

// The double that prints with the float's own few digits: 0.1f prints as 0.1, and reading 0.1 back gives 0.1f.
double shortest(float value) {
  const std::string text = fmt::format("{}", value);
  double same = value;
  std::from_chars(text.data(), text.data() + text.size(), same);
  return same;
}

}  // namespace

Result<Json> weights_to_json(const NamedTensors& weights) {
  Json json = Json::object();
  for (const auto& [name, tensor] : weights) {
    Json::Array values;
    values.reserve(tensor.values.size());
    for (const float value : tensor.values) {
      if (!std::isfinite(value)) {
        return fail(
            {Fault::kBadInput, fmt::format("{} cannot be written as JSON", value), fmt::format("tensor '{}'", name), "finite weights", ""});
      }
      values.emplace_back(shortest(value));
    }
    json.members().emplace_back(name, std::move(values));
  }
  return json;
}

Result<NamedTensors> weights_from_json(const Json& json, const NamedTensors& like, std::string_view where) {
  if (!json.is_object())
    return fail({Fault::kBadInput, fmt::format("found a JSON {}", json.kind()), std::string(where), "lists by name", ""});
  NamedTensors weights;
  for (const auto& [name, values] : json.members()) {
    const std::string at = fmt::format("{}: tensor '{}'", where, name);
    const auto wanted = like.find(name);
    if (wanted == like.end()) {
      std::vector<std::string> names;
      for (const auto& [known, tensor] : like) names.push_back(known);
      return fail({Fault::kBadInput, "this model has no such tensor", at, "", did_you_mean(name, names)});
    }
    const Shape& shape = wanted->second.shape;
    if (!values.is_array() || values.items().size() != elements(shape)) {
      const std::string found =
          values.is_array() ? fmt::format("{} numbers", values.items().size()) : fmt::format("a JSON {}", values.kind());
      return fail(
          {Fault::kBadInput, "found " + found, at, fmt::format("{} numbers, for shape {}", elements(shape), shape_text(shape)), ""});
    }
    Tensor tensor(shape);
    for (std::size_t i = 0; i < tensor.values.size(); ++i) {
      const Json& value = values.items()[i];
      if (!value.is_number()) return fail({Fault::kBadInput, fmt::format("value {} is a JSON {}", i, value.kind()), at, "a number", ""});
      tensor.values[i] = static_cast<float>(value.number());
    }
    weights.emplace(name, std::move(tensor));
  }
  for (const auto& [name, tensor] : like) {
    if (weights.count(name) == 0) {
      return fail({Fault::kBadInput, fmt::format("tensor '{}' is missing", name), std::string(where),
                   fmt::format("shape {}", shape_text(tensor.shape)), ""});
    }
  }
  return weights;
}

Result<void> write_json_weights(const std::string& path, const NamedTensors& weights) {
  const auto json = weights_to_json(weights);
  if (!json) return fail(json.error());
  return replace_file(path, json->dump() + "\n");
}

Result<NamedTensors> read_json_weights(const std::string& path, const NamedTensors& like) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto json = Json::parse(*text, path);
  if (!json) return fail(json.error());
  return weights_from_json(*json, like, path);
}

}  // namespace kizzasi
