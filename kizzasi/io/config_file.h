// TOML, YAML and JSON files as one kind of value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi::io {

enum class ConfigFormat { kToml, kYaml, kJson };

// What a configuration file says, and where in the file it says it.
struct ConfigFile {
  Json values;       // an object; keys in the order of the file
  std::string name;  // the file, for messages

  // "limits.toml:7:12" of the value at `pointer`, such as "/constraint/0/expr" (keys and positions from 0); of the nearest enclosing value
  // where that one is not in the file; the file's name alone where nothing is known.
  std::string place(std::string_view pointer) const;

  std::map<std::string, std::pair<std::uint32_t, std::uint32_t>, std::less<>> places;  // pointer -> line and column, from 1
};

// Format by extension: .toml, .yaml or .yml, .json; any other extension is an error. At most 16 MiB.
// Errors name the file, line and column: bad syntax, a key that stands twice, a top level that is no table.
// Dates of TOML become text; plain YAML scalars follow the core schema of YAML 1.2 ("yes" is text, "true" is a boolean).
Result<ConfigFile> read_config_file(const std::string& path);

Result<ConfigFile> parse_config(std::string_view text, ConfigFormat format, std::string_view name);

}  // namespace kizzasi::io
