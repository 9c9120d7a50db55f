#include "apps/cli/constraint_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "kizzasi/base/suggest.h"
#include "kizzasi/io/config_file.h"
#include "kizzasi/io/file.h"
#include "kizzasi/logic/constraint_file.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kLargestFile = 16 * 1024 * 1024;

// The place of a value is that of its quote; the text begins behind it.
TextPlace behind_quotes(std::string_view file, TextPlace place) {
  std::size_t at = 0;
  for (std::size_t line = 1; line < place.line && at < file.size(); ++line) at = std::min(file.find('\n', at), file.size() - 1) + 1;
  for (std::size_t column = 1; column < place.column && at < file.size(); ++at) {
    const bool inside_character = at + 1 < file.size() && (static_cast<unsigned char>(file[at + 1]) & 0xC0U) == 0x80U;
    if (!inside_character) ++column;
  }
  const std::string_view rest = file.substr(std::min(at, file.size()));
  for (const std::string_view triple : {"\"\"\"", "'''"}) {
    if (!rest.starts_with(triple)) continue;
    if (rest.substr(3).starts_with('\n') || rest.substr(3).starts_with("\r\n")) return {place.line + 1, 1};
    return {place.line, place.column + 3};
  }
  if (rest.starts_with('"') || rest.starts_with('\'')) ++place.column;
  return place;
}

// A name of --set that nothing knows is a slip of the pen.
Result<void> all_used(std::span<const Parameter> set, std::span<const Parameter> of_file, const std::vector<std::string>& limits) {
  for (const Parameter& one : set) {
    const bool known = std::any_of(of_file.begin(), of_file.end(), [&](const Parameter& p) { return p.name == one.name; });
    const bool used = std::any_of(limits.begin(), limits.end(), [&](const std::string& limit) { return names_parameter(limit, one.name); });
    if (known || used) continue;
    std::vector<std::string> names;
    for (const Parameter& p : of_file) names.push_back(p.name);
    return fail({Fault::kBadUse, fmt::format("there is no parameter '{}'", one.name), "--set",
                 names.empty() ? std::string("a name under [parameters] of the file, or in a --limit")
                               : fmt::format("one of {}", fmt::join(names, ", ")),
                 did_you_mean(one.name, names)});
  }
  return {};
}

}  // namespace

Result<std::vector<ConstraintText>> read_constraint_source(const std::string& file, const std::vector<std::string>& limits,
                                                           const std::vector<std::string>& sets) {
  std::vector<ConstraintText> constraints;
  std::vector<Parameter> parameters;
  for (const std::string& one : sets) {
    auto parameter = parameter_from_option(one, "--set");
    if (!parameter) return fail(parameter.error());
    const auto same = [&](const Parameter& p) { return p.name == parameter->name; };
    if (std::any_of(parameters.begin(), parameters.end(), same)) {
      return fail({Fault::kBadUse, fmt::format("'{}' is set twice", parameter->name), "--set", "one value for each name", ""});
    }
    parameters.push_back(*std::move(parameter));
  }
  const std::size_t given = parameters.size();
  if (!file.empty()) {
    const auto config = io::read_config_file(file);
    if (!config) return fail(config.error());
    const auto text = io::read_file(file, kLargestFile);
    if (!text) return fail(text.error());
    const auto place = [&](std::string_view pointer) -> TextPlace {
      const auto found = config->places.find(pointer);
      if (found == config->places.end()) return {};
      return behind_quotes(*text, {found->second.first, found->second.second});
    };
    auto read = read_constraints(config->values, file, place, parameters);
    if (!read) return fail(read.error());
    constraints = std::move(*read);
    const auto known = read_parameters(config->values, file, place);
    if (!known) return fail(known.error());
    parameters.insert(parameters.end(), known->begin(), known->end());
  }
  if (auto used = all_used(std::span(parameters).first(given), std::span(parameters).subspan(given), limits); !used)
    return fail(used.error());
  for (const std::string& limit : limits) {
    constraints.push_back(constraint_from_option(limit, "--limit"));
    (void)put_parameters(constraints.back(), parameters);
  }
  return constraints;
}

void name_channels(const logic::Formula& formula, Schema& schema) {
  const bool named = formula.op == logic::Op::kChannel || formula.op == logic::Op::kProposition;
  if (named && !schema.index_of(formula.text)) schema.channels.push_back({formula.text, "", Role::kTarget});
  for (const logic::Formula& operand : formula.operands) name_channels(operand, schema);
}

}  // namespace kizzasi::cli
