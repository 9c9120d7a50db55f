#include "kizzasi/signal/constraint_text.h"

#include <fmt/format.h>

#include <cmath>

#include "kizzasi/base/suggest.h"

namespace kizzasi {
namespace {

Result<ConstraintText> constraint_from(const Json& json, std::string_view where) {
  static const std::vector<std::string> kKeys{"name", "that", "else", "priority", "soft", "weight", "where"};
  const auto bad = [&](std::string what, std::string expected, std::string hint = "") {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), std::move(hint)});
  };
  if (!json.is_object()) return bad(fmt::format("a constraint is of kind {}", json.kind()), "an object with 'that'");
  ConstraintText text;
  for (const auto& [key, value] : json.members()) {
    const auto wrong = [&](std::string expected) { return bad(fmt::format("'{}' is of kind {}", key, value.kind()), std::move(expected)); };
    std::string* words = key == "name"    ? &text.name
                         : key == "that"  ? &text.that
                         : key == "else"  ? &text.otherwise
                         : key == "where" ? &text.where
                                          : nullptr;
    if (words != nullptr) {
      if (!value.is_string()) return wrong("a text");
      *words = value.string();
    } else if (key == "priority") {
      if (!value.is_integer()) return wrong("a whole number");
      text.priority = value.integer();
    } else if (key == "soft") {
      if (!value.is_bool()) return wrong("true or false");
      text.soft = value.boolean();
    } else if (key == "weight") {
      if (!value.is_number() || !(value.number() > 0) || !std::isfinite(value.number())) return wrong("a number above 0");
      text.weight = value.number();
    } else {
      return bad(fmt::format("key '{}' is not known", key), fmt::to_string(fmt::join(kKeys, ", ")), did_you_mean(key, kKeys));
    }
  }
  if (text.that.empty()) return bad("a constraint says nothing", "a text under 'that', such as \"0 <= x <= 1\"");
  static const std::vector<std::string> kOtherwise{"project", "reject", "hold", "warn"};
  for (const std::string& one : kOtherwise) {
    if (text.otherwise == one) return text;
  }
  return bad(fmt::format("'{}' is nothing that can be done else", text.otherwise), "project, reject, hold or warn",
             did_you_mean(text.otherwise, kOtherwise));
}

}  // namespace

Json to_json(std::span<const ConstraintText> constraints) {
  Json list = Json::array();
  for (const ConstraintText& one : constraints) {
    list.push_back(Json::Object{{"name", one.name},
                                {"that", one.that},
                                {"else", one.otherwise},
                                {"priority", one.priority},
                                {"soft", one.soft},
                                {"weight", one.weight},
                                {"where", one.where}});
  }
  return list;
}

Result<std::vector<ConstraintText>> constraints_from_json(const Json& json, std::string_view where) {
  if (!json.is_array()) {
    return fail({Fault::kBadInput, fmt::format("the constraints are of kind {}", json.kind()), std::string(where), "a list", ""});
  }
  std::vector<ConstraintText> list;
  for (std::size_t i = 0; i < json.items().size(); ++i) {
    auto one = constraint_from(json.items()[i], fmt::format("{}: constraint {}", where, i + 1));
    if (!one) return fail(one.error());
    list.push_back(std::move(*one));
  }
  return list;
}

}  // namespace kizzasi
