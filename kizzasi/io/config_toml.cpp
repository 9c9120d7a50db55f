#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <sstream>
#include <vector>

#include "kizzasi/io/config_formats.h"

namespace kizzasi::io::detail {
namespace {

void remember(const toml::node& node, const std::string& pointer, ConfigFile& file) {
  const toml::source_position& at = node.source().begin;
  if (at.line > 0) file.places.emplace(pointer, std::pair{at.line, at.column});
}

template <typename T>
std::string text_of(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

Json convert(const toml::node& node, const std::string& pointer, ConfigFile& file);

Json convert_table(const toml::table& table, const std::string& pointer, ConfigFile& file) {
  // The library sorts by name; the file's order is what people expect to see again.
  std::vector<std::pair<const toml::key*, const toml::node*>> members;
  for (auto&& [key, value] : table) members.emplace_back(&key, &value);
  const auto position = [](const auto& member) {
    const toml::source_position& at = member.first->source().begin;
    return std::pair{at.line, at.column};
  };
  std::sort(members.begin(), members.end(), [&](const auto& a, const auto& b) { return position(a) < position(b); });
  Json out = Json::object();
  for (const auto& [key, value] : members) {
    const std::string name(key->str());
    std::string below = pointer;
    below.append("/").append(name);
    out.members().emplace_back(name, convert(*value, below, file));
  }
  return out;
}

Json convert(const toml::node& node, const std::string& pointer, ConfigFile& file) {
  remember(node, pointer, file);
  if (const auto* table = node.as_table()) return convert_table(*table, pointer, file);
  if (const auto* array = node.as_array()) {
    Json out = Json::array();
    for (std::size_t i = 0; i < array->size(); ++i) out.push_back(convert((*array)[i], fmt::format("{}/{}", pointer, i), file));
    return out;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* whole = node.as_integer()) return whole->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* date = node.as_date()) return text_of(date->get());
  if (const auto* time = node.as_time()) return text_of(time->get());
  if (const auto* moment = node.as_date_time()) return text_of(moment->get());
  return {};
}

}  // namespace

Result<void> parse_toml(std::string_view text, ConfigFile& file) {
  try {
    const toml::table table = toml::parse(text, file.name);
    file.values = convert_table(table, "", file);
    return {};
  } catch (const toml::parse_error& problem) {
    const toml::source_position& at = problem.source().begin;
    return fail({Fault::kBadInput, std::string(problem.description()), fmt::format("{}:{}:{}", file.name, at.line, at.column), "valid TOML",
                 "Texts stand in quotes, and each key stands once."});
  }
}

}  // namespace kizzasi::io::detail
