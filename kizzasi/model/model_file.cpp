#include "kizzasi/model/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kizzasi/base/suggest.h"
#include "kizzasi/signal/duration.h"
#include "kizzasi/tensor/quantized.h"

namespace kizzasi {
namespace {

constexpr const char* kFormatName = "kizzasi";

tl::unexpected<Error> broken(std::string what, std::string_view where, std::string expected, std::string hint = "") {
  return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected), std::move(hint)});
}

// What must agree between the parts of a model, whether it is read or about to be written.
Result<void> check_parts(const ModelFile& m, std::string_view where) {
  const ChannelCounts counts = channel_counts(m.schema);
  if (counts.targets == 0) return broken("no channel is a target", where, "at least one channel to predict");
  if (m.normalizer.channels() != m.schema.size()) {
    return broken(fmt::format("the normaliser has {} channels", m.normalizer.channels()), where,
                  fmt::format("{}, as the schema", m.schema.size()));
  }
  if (!m.calibration.empty() && m.calibration.targets != counts.targets) {
    return broken(fmt::format("the calibration has {} targets", m.calibration.targets), where,
                  fmt::format("{}, as the schema", counts.targets));
  }
  for (const auto& [name, tensor] : m.weights) {
    const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(), [](float x) { return !std::isfinite(x); });
    if (bad != tensor.values.end()) {
      return broken(fmt::format("weight '{}' is {} at position {}", name, *bad, bad - tensor.values.begin()), where, "finite weights",
                    "Training went astray; use an earlier checkpoint.");
    }
  }
  return {};
}

// The earliest format that can hold these weights: integers came with the second.
std::int64_t format_of(const NamedTensors& weights) { return quantization_record(weights).is_null() ? 1 : 2; }

std::map<std::string, std::string> metadata_of(const ModelFile& m) {
  return {{"format", kFormatName},
          {"format_version", std::to_string(format_of(m.weights))},
          {"config", to_json(m.config).dump()},
          {"schema", to_json(m.schema).dump()},
          {"normalizer", m.normalizer.to_json().dump()},
          {"calibration", to_json(m.calibration).dump()},
          {"constraints", to_json(m.constraints).dump()},
          {"training", m.training.dump()},
          {"extra", m.extra.dump()}};
}

constexpr std::array<const char*, 9> kKeys{"format",      "format_version", "config",   "schema", "normalizer",
                                           "calibration", "constraints",    "training", "extra"};

// Takes the JSON under `key` of the metadata; one that a former version did not write is null.
Result<Json> member(const SafetensorsFile& file, const char* key, std::string_view where, bool required) {
  const auto found = file.metadata.find(key);
  if (found != file.metadata.end()) return Json::parse(found->second, fmt::format("{}: {}", where, key));
  if (!required) return Json();
  return broken(fmt::format("the model has no '{}'", key), where, "a file that train has written");
}

Result<void> check_version(const SafetensorsFile& file, std::string_view where) {
  if (!is_model_file(file)) {
    return fail({Fault::kBadInput, "this is no model of this program", std::string(where), "a file that `kizzasi train` has written",
                 "`kizzasi inspect` lists what is in it."});
  }
  const auto found = file.metadata.find("format_version");
  auto version = Json::parse(found == file.metadata.end() ? "" : found->second, where);
  if (!version || !version->is_integer() || version->integer() < 1) {
    return broken("the model does not say its format version", where, fmt::format("a number from 1 to {}", kModelFormat));
  }
  if (version->integer() > kModelFormat) {
    return fail({Fault::kBadInput, fmt::format("the model has format version {}", version->integer()), std::string(where),
                 fmt::format("at most {}", kModelFormat), "A newer kizzasi wrote it; use that one or a later one."});
  }
  for (const auto& [key, value] : file.metadata) {
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
      return broken(fmt::format("the metadata has an unknown key '{}'", key), where, fmt::to_string(fmt::join(kKeys, ", ")),
                    "Additions of your own belong under 'extra'.");
    }
  }
  return {};
}

}  // namespace

bool is_model_file(const SafetensorsFile& file) {
  const auto format = file.metadata.find("format");
  return format != file.metadata.end() && format->second == kFormatName;
}

Result<ModelFile> model_from_safetensors(SafetensorsFile file, std::string_view where) {
  if (auto version = check_version(file, where); !version) return fail(version.error());
  const auto place = [&](const char* key) { return fmt::format("{}: {}", where, key); };
  ModelFile model;
  {
    const auto config = member(file, "config", where, true);
    if (!config) return fail(config.error());
    auto done = apply_fields(model.config, *config, place("config"));
    if (done) done = model.config.check(place("config"));
    if (!done) {  // what stands in a file is no wrong use of the program
      Error error = done.error();
      error.fault = Fault::kBadInput;
      return fail(std::move(error));
    }
  }
  const auto schema = member(file, "schema", where, true);
  if (!schema) return fail(schema.error());
  auto read_schema = schema_from_json(*schema, place("schema"));
  if (!read_schema) return fail(read_schema.error());
  model.schema = std::move(*read_schema);

  const auto normalizer = member(file, "normalizer", where, true);
  if (!normalizer) return fail(normalizer.error());
  auto read_normalizer = Normalizer::from_json(*normalizer, place("normalizer"));
  if (!read_normalizer) return fail(read_normalizer.error());
  model.normalizer = std::move(*read_normalizer);

  const auto calibration = member(file, "calibration", where, false);
  if (!calibration) return fail(calibration.error());
  if (!calibration->is_null()) {
    auto read = calibration_from_json(*calibration, place("calibration"));
    if (!read) return fail(read.error());
    model.calibration = std::move(*read);
  }
  const auto constraints = member(file, "constraints", where, false);
  if (!constraints) return fail(constraints.error());
  if (!constraints->is_null()) {
    auto read = constraints_from_json(*constraints, place("constraints"));
    if (!read) return fail(read.error());
    model.constraints = std::move(*read);
  }
  for (const auto& [key, target] : {std::pair{"training", &model.training}, {"extra", &model.extra}}) {
    auto read = member(file, key, where, false);
    if (!read) return fail(read.error());
    *target = std::move(*read);
  }
  model.weights = std::move(file.tensors);
  if (auto good = check_parts(model, where); !good) return fail(good.error());
  return model;
}

Result<ModelFile> read_model_file(const std::string& path) {
  auto file = read_safetensors(path);
  if (!file) return fail(file.error());
  return model_from_safetensors(std::move(*file), path);
}

Result<ModelFile> parse_model_file(std::span<const std::byte> bytes, std::string_view where) {
  auto file = parse_safetensors(bytes, where);
  if (!file) return fail(file.error());
  return model_from_safetensors(std::move(*file), where);
}

Result<void> write_model_file(const std::string& path, const ModelFile& model) {
  if (auto good = check_parts(model, path); !good) return good;
  if (auto good = model.config.check(path); !good) return good;
  return write_safetensors(path, model.weights, metadata_of(model));
}

Result<std::vector<std::byte>> model_file_bytes(const ModelFile& model) {
  if (auto good = check_parts(model, "model"); !good) return fail(good.error());
  if (auto good = model.config.check("model"); !good) return fail(good.error());
  return safetensors_bytes(model.weights, metadata_of(model));
}

std::vector<std::size_t> channel_order(const Schema& schema) {
  std::vector<std::size_t> order;
  for (const Role role : {Role::kTarget, Role::kObserved, Role::kKnownFuture}) {
    for (const std::size_t channel : schema.with_role(role)) order.push_back(channel);
  }
  return order;
}

ChannelCounts channel_counts(const Schema& schema) {
  return {schema.with_role(Role::kTarget).size(), schema.with_role(Role::kObserved).size(), schema.with_role(Role::kKnownFuture).size()};
}

Result<Series> select_for_model(const Schema& model, const Series& data, std::string_view where) {
  const auto bad = [&](std::string what, std::string expected, std::string hint) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), std::move(hint)});
  };
  const std::vector<std::string> names = data.schema.names();
  for (const Channel& wanted : model.channels) {
    const auto found = data.schema.index_of(wanted.name);
    if (!found) {
      return bad(fmt::format("the model's channel '{}' is not in the data", wanted.name),
                 fmt::format("every channel of the model: {}", fmt::join(model.names(), ", ")), did_you_mean(wanted.name, names));
    }
    const std::string& unit = data.schema.channels[*found].unit;
    if (!unit.empty() && !wanted.unit.empty() && unit != wanted.unit) {
      return bad(fmt::format("channel '{}' is in {}", wanted.name, unit), fmt::format("{}, as the model learned it", wanted.unit),
                 "Convert the column, or correct its unit.");
    }
  }
  if (model.step_ns != 0 && data.schema.step_ns != 0 && model.step_ns != data.schema.step_ns) {
    return bad(
        fmt::format("the data has a frame every {}", duration_text(data.schema.step_ns)),
        fmt::format("one every {}, as the model learned it", duration_text(model.step_ns)),
        "Resample the data to that step (--resample); forecast, stream and backtest can also be told how they are sampled (--sampling).");
  }
  auto selected = data.select(model.names());
  if (!selected) return selected;
  selected->schema.channels = model.channels;
  if (selected->schema.step_ns == 0) selected->schema.step_ns = model.step_ns;
  return selected;
}

}  // namespace kizzasi
