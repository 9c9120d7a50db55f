#include "kizzasi/model/config_checkpoint.h"

#include <fmt/format.h>

#include "kizzasi/tensor/files.h"

namespace kizzasi {
namespace {

tl::unexpected<Error> broken(std::string what, std::string_view where, std::string expected) {
  return fail({Fault::kBroken, std::move(what), std::string(where), std::move(expected), ""});
}

}  // namespace

Json to_json(const ConfigCheckpoint& checkpoint) {
  Json json = Json::object(), metadata = Json::object();
  metadata["created_at"] = checkpoint.created_at;
  if (!checkpoint.description.empty()) metadata["description"] = checkpoint.description;
  metadata["step_count"] = checkpoint.step_count;
  if (!checkpoint.custom.is_null()) metadata["custom"] = checkpoint.custom;
  json["version"] = kConfigCheckpointVersion;
  json["config"] = to_json(checkpoint.config);
  json["metadata"] = std::move(metadata);
  return json;
}

Result<ConfigCheckpoint> config_checkpoint_from_json(const Json& json, std::string_view where) {
  const Json *version = json.find("version"), *config = json.find("config"), *metadata = json.find("metadata");
  if (version == nullptr || !version->is_integer() || config == nullptr || metadata == nullptr || !metadata->is_object()) {
    return broken("this is no configuration checkpoint", where, "an object with version, config and metadata");
  }
  if (version->integer() != kConfigCheckpointVersion) {
    return broken(fmt::format("the version is {}", version->integer()), where, fmt::format("version {}", kConfigCheckpointVersion));
  }
  ConfigCheckpoint checkpoint;
  if (auto taken = apply_fields(checkpoint.config, *config, where); !taken) return fail(taken.error());
  if (auto good = checkpoint.config.check(where); !good) return fail(good.error());
  for (const auto& [key, value] : metadata->members()) {
    if (key == "created_at" && value.is_integer()) {
      checkpoint.created_at = value.integer();
    } else if (key == "step_count" && value.is_integer() && value.integer() >= 0) {
      checkpoint.step_count = value.integer();
    } else if (key == "description" && (value.is_string() || value.is_null())) {
      checkpoint.description = value.is_string() ? value.string() : "";
    } else if (key == "custom") {
      checkpoint.custom = value;
    } else {
      return broken(fmt::format("metadata '{}' is {}", key, value.dump()), where, "created_at, description, step_count and custom");
    }
  }
  return checkpoint;
}

Result<void> write_config_checkpoint(const std::string& path, const ConfigCheckpoint& checkpoint) {
  return replace_file(path, to_json(checkpoint).dump(2) + "\n");
}

Result<ConfigCheckpoint> read_config_checkpoint(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto json = Json::parse(*text, path);
  if (!json) return fail(json.error());
  return config_checkpoint_from_json(*json, path);
}

}  // namespace kizzasi
