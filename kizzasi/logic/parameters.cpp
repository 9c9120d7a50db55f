#include "kizzasi/logic/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/lexer.h"
#include "kizzasi/logic/units.h"

namespace kizzasi {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// The words of a text that stand for a number or a channel.
std::vector<logic::Token> names_in(std::string_view text) {
  std::vector<logic::Token> names;
  const auto tokens = logic::tokenize({text, ""});
  if (!tokens) return names;
  for (std::size_t i = 0; i + 1 < tokens->size(); ++i) {
    const logic::Token &token = (*tokens)[i], &next = (*tokens)[i + 1];
    if (token.kind != logic::Token::Kind::kWord) continue;
    if (next.kind == logic::Token::Kind::kSign && next.text == "(") continue;
    names.push_back(token);
  }
  return names;
}

std::string written(const Parameter& parameter) {
  std::string text = logic::number_text(parameter.value);
  if (!parameter.unit.empty()) text.append(" [").append(parameter.unit).append("]");
  if (parameter.value < 0) text.insert(text.begin(), ' ');  // "<-3" would be another sign
  return text;
}

}  // namespace

Result<Parameter> parameter_from(std::string_view name, std::string_view value, std::string_view where) {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (logic::quoted_name(name) != name) {
    return bad(fmt::format("a parameter is called '{}'", name), "a plain word that the language does not use itself, such as v_max");
  }
  Parameter parameter{std::string(name), 0, ""};
  std::string_view rest = trimmed(value);
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), parameter.value);
  if (error != std::errc() || !std::isfinite(parameter.value)) {
    return bad(fmt::format("the parameter '{}' is '{}'", name, value), "a number, such as 3.5, or one with a unit, such as 3 m/s");
  }
  std::string_view unit = trimmed(rest.substr(static_cast<std::size_t>(end - rest.data())));
  if (unit.starts_with('[') && unit.ends_with(']')) unit = trimmed(unit.substr(1, unit.size() - 2));
  if (!unit.empty() && !logic::measure_of(unit)) {
    return bad(fmt::format("the unit of the parameter '{}' is '{}'", name, unit), "a unit, such as m/s");
  }
  parameter.unit = unit;
  return parameter;
}

Result<Parameter> parameter_from_option(std::string_view assignment, std::string_view option) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos) {
    return fail({Fault::kBadUse, fmt::format("'{}' sets nothing", assignment), std::string(option), "NAME=VALUE, such as v_max=2", ""});
  }
  auto parameter = parameter_from(trimmed(assignment.substr(0, equals)), assignment.substr(equals + 1), option);
  if (!parameter) parameter.error().fault = Fault::kBadUse;
  return parameter;
}

bool names_parameter(std::string_view text, std::string_view name) {
  const auto names = names_in(text);
  return std::any_of(names.begin(), names.end(), [&](const logic::Token& token) { return token.text == name; });
}

bool put_parameters(ConstraintText& text, std::span<const Parameter> parameters) {
  std::string out;
  std::size_t done = 0;
  bool any = false;
  for (const logic::Token& token : names_in(text.that)) {
    const auto parameter = std::find_if(parameters.begin(), parameters.end(), [&](const Parameter& p) { return p.name == token.text; });
    if (parameter == parameters.end()) continue;
    out.append(text.that, done, token.offset - done).append(written(*parameter));
    done = token.end;
    any = true;
  }
  if (!any) return false;
  out.append(text.that, done);
  text.that = std::move(out);
  if (text.line > 0) text.where = fmt::format("{}:{}", text.where, text.line);
  text.where += ", with its parameters put in";
  text.line = 0;
  text.column = 1;
  return true;
}

}  // namespace kizzasi
