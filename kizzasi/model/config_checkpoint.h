// A configuration kept beside a model as a small JSON file: {"version": 1, "config": {...}, "metadata": {created_at, description,
// step_count, custom}}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kizzasi/base/json.h"
#include "kizzasi/model/config.h"

namespace kizzasi {

// Readers of every later version read this one; a file of a later version is refused.
inline constexpr std::int64_t kConfigCheckpointVersion = 1;

struct ConfigCheckpoint {
  ModelConfig config;
  std::int64_t created_at = 0;  // seconds since 1970, UTC; the caller's clock
  std::string description;      // empty: none
  std::int64_t step_count = 0;  // training steps behind the model
  Json custom;                  // whatever the user adds; null: none

  friend bool operator==(const ConfigCheckpoint&, const ConfigCheckpoint&) = default;
};

Json to_json(const ConfigCheckpoint& checkpoint);
// Unknown fields of the configuration are errors; fields that are absent keep their defaults.
Result<ConfigCheckpoint> config_checkpoint_from_json(const Json& json, std::string_view where);

Result<void> write_config_checkpoint(const std::string& path, const ConfigCheckpoint& checkpoint);
Result<ConfigCheckpoint> read_config_checkpoint(const std::string& path);

}  // namespace kizzasi
