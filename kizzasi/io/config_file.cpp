#include "kizzasi/io/config_file.h"

#include <fmt/format.h>

#include "kizzasi/io/config_formats.h"
#include "kizzasi/io/file.h"

namespace kizzasi::io {
namespace {

constexpr std::size_t kMostBytes = 16U << 20U;

}  // namespace

std::string ConfigFile::place(std::string_view pointer) const {
  while (true) {
    if (const auto found = places.find(pointer); found != places.end()) {
      return fmt::format("{}:{}:{}", name, found->second.first, found->second.second);
    }
    const auto slash = pointer.find_last_of('/');
    if (slash == pointer.npos || pointer.empty()) return name;
    pointer = pointer.substr(0, slash);
  }
}

Result<ConfigFile> parse_config(std::string_view text, ConfigFormat format, std::string_view name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  ConfigFile file;
  file.name = std::string(name);
  switch (format) {
    case ConfigFormat::kToml:
      if (auto done = detail::parse_toml(text, file); !done) return fail(done.error());
      break;
    case ConfigFormat::kYaml:
      if (auto done = detail::parse_yaml(text, file); !done) return fail(done.error());
      break;
    case ConfigFormat::kJson: {
      auto values = Json::parse(text, name);
      if (!values) return fail(values.error());
      file.values = std::move(*values);
      break;
    }
  }
  if (!file.values.is_object()) {
    return fail({Fault::kBadInput, fmt::format("the top level is a {}", file.values.kind()), file.name, "keys with values",
                 "For example: epochs = 10 in TOML, epochs: 10 in YAML, {\"epochs\": 10} in JSON."});
  }
  return file;
}

Result<ConfigFile> read_config_file(const std::string& path) {
  const std::string end = extension(path);
  ConfigFormat format{};
  if (end == "toml") {
    format = ConfigFormat::kToml;
  } else if (end == "yaml" || end == "yml") {
    format = ConfigFormat::kYaml;
  } else if (end == "json") {
    format = ConfigFormat::kJson;
  } else {
    return fail({Fault::kBadUse,
                 end.empty() ? std::string("a configuration file needs an extension") : fmt::format("'.{}' is no configuration file", end),
                 path, "a file named *.toml, *.yaml, *.yml or *.json", "Rename the file after what is in it."});
  }
  auto text = read_file(path, kMostBytes);
  if (!text) return fail(text.error());
  return parse_config(*text, format, path);
}

}  // namespace kizzasi::io
