#include "kizzasi/logic/constraint_file.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/base/suggest.h"
#include "kizzasi/logic/formula.h"

namespace kizzasi {
namespace {

class Reader {
 public:
  Reader(std::string_view file, const PlaceOf& place) : file_(file), place_(place) {}

  Result<std::vector<Parameter>> parameters(const Json& json) {
    std::vector<Parameter> list;
    const Json* table = json.find("parameters");
    if (table == nullptr) return list;
    if (!table->is_object()) {
      return fail(error("/parameters", fmt::format("parameters is {}", article(*table)), "a table such as v_max = \"3 m/s\"", ""));
    }
    for (const auto& [name, value] : table->members()) {
      const std::string at = fmt::format("/parameters/{}", name);
      if (!value.is_number() && !value.is_string()) {
        return fail(error(at, fmt::format("the parameter '{}' is {}", name, article(value)), "a number, or a text such as \"3 m/s\"", ""));
      }
      auto parameter =
          parameter_from(name, value.is_string() ? value.string() : logic::number_text(value.number()), error(at, "", "", "").where);
      if (!parameter) return tl::unexpected(parameter.error());
      list.push_back(*std::move(parameter));
    }
    return list;
  }

  Result<std::vector<ConstraintText>> run(const Json& json, std::span<const Parameter> set) {
    if (!json.is_object())
      return fail(error("", fmt::format("the file holds {}, not a table", article(json)), "[[constraint]] tables", ""));
    const Json* list = nullptr;
    for (const auto& [key, value] : json.members()) {
      if (key == "parameters") continue;
      if (key != "constraint") {
        return fail(error(fmt::format("/{}", key), fmt::format("there is no key '{}'", key), "constraint or parameters",
                          did_you_mean(key, names({"constraint", "parameters"}))));
      }
      list = &value;
    }
    if (list == nullptr || !list->is_array()) {
      return fail(error(list == nullptr ? "" : "/constraint",
                        list == nullptr ? "there is no constraint" : fmt::format("constraint is {}", article(*list)),
                        "a list of [[constraint]] tables", "In TOML each begins with [[constraint]], in two brackets."));
    }
    auto known = parameters(json);
    if (!known) return tl::unexpected(known.error());
    std::vector<Parameter> all(set.begin(), set.end());  // the first of a name counts
    all.insert(all.end(), known->begin(), known->end());
    std::vector<ConstraintText> constraints;
    for (std::size_t i = 0; i < list->items().size(); ++i) {
      auto one = constraint(list->items()[i], fmt::format("/constraint/{}", i), i);
      if (!one) return tl::unexpected(one.error());
      (void)put_parameters(*one, all);
      constraints.push_back(*std::move(one));
    }
    return constraints;
  }

 private:
  Result<ConstraintText> constraint(const Json& json, const std::string& at, std::size_t position) {
    if (!json.is_object()) return fail(error(at, fmt::format("constraint {} is {}", position + 1, article(json)), "a table", ""));
    ConstraintText c;
    for (const auto& [key, value] : json.members()) {
      const std::string here = fmt::format("{}/{}", at, key);
      if (auto done = member(c, key, value, here); !done) return tl::unexpected(done.error());
    }
    if (json.find("that") == nullptr) {
      return fail(error(at, fmt::format("constraint {} has no 'that'", position + 1), "that = \"x >= 0\"", ""));
    }
    if (c.name.empty()) c.name = c.that;
    c.where = file_;
    const std::string pointer = fmt::format("{}/that", at);
    const TextPlace place = place_ ? place_(pointer) : TextPlace{};
    if (place.line > 0) {
      c.line = place.line;
      c.column = place.column;
    } else {
      c.where = fmt::format("{}: constraint {}", file_, position + 1);
    }
    return c;
  }

  Result<void> member(ConstraintText& c, const std::string& key, const Json& value, const std::string& at) {
    const auto wrong = [&](std::string_view expected) {
      return fail(error(at, fmt::format("{} is {}", key, article(value)), std::string(expected), ""));
    };
    if (key == "name" || key == "that" || key == "else") {
      if (!value.is_string()) return wrong("a text in quotes");
      if (key == "else") return otherwise(c, value.string(), at);
      (key == "name" ? c.name : c.that) = value.string();
    } else if (key == "priority") {
      if (!value.is_integer()) return wrong("a whole number, such as 1");
      c.priority = value.integer();
    } else if (key == "soft") {
      if (!value.is_bool()) return wrong("true or false");
      c.soft = value.boolean();
    } else if (key == "weight") {
      if (!value.is_number()) return wrong("a number, such as 1.0");
      c.weight = value.number();
      if (!(c.weight > 0) || std::isinf(c.weight)) return fail(error(at, fmt::format("weight is {}", c.weight), "a number above 0", ""));
    } else {
      const std::string hint = did_you_mean(key, names({"name", "that", "else", "priority", "soft", "weight"}));
      return fail(error(at, fmt::format("there is no key '{}'", key), "name, that, else, priority, soft or weight", hint));
    }
    return {};
  }

  Result<void> otherwise(ConstraintText& c, const std::string& word, const std::string& at) {
    for (const std::string_view known : {"project", "reject", "hold", "warn"}) {
      if (word != known) continue;
      c.otherwise = word;
      return {};
    }
    return fail(error(at, fmt::format("else is '{}'", word), "project, reject, hold or warn",
                      did_you_mean(word, names({"project", "reject", "hold", "warn"}))));
  }

  static std::vector<std::string> names(std::initializer_list<const char*> list) { return {list.begin(), list.end()}; }

  static std::string article(const Json& json) {
    const std::string kind = json.kind();
    if (kind == "null") return "empty";
    const bool vowel = kind.starts_with('i') || kind.starts_with('a') || kind.starts_with('o');
    return fmt::format("{} {}", vowel ? "an" : "a", kind);
  }

  Error error(std::string_view pointer, std::string what, std::string expected, std::string hint) const {
    const TextPlace place = place_ ? place_(pointer) : TextPlace{};
    std::string where = place.line > 0 ? fmt::format("{}:{}:{}", file_, place.line, place.column) : std::string(file_);
    return {Fault::kBadInput, std::move(what), std::move(where), std::move(expected), std::move(hint)};
  }

  std::string_view file_;
  const PlaceOf& place_;
};

}  // namespace

Result<std::vector<Parameter>> read_parameters(const Json& json, std::string_view file, const PlaceOf& place) {
  return Reader(file, place).parameters(json);
}

Result<std::vector<ConstraintText>> read_constraints(const Json& json, std::string_view file, const PlaceOf& place,
                                                     std::span<const Parameter> set) {
  return Reader(file, place).run(json, set);
}

ConstraintText constraint_from_option(std::string_view text, std::string_view option) {
  ConstraintText c;
  c.name = c.that = text;
  c.where = option;
  return c;
}

}  // namespace kizzasi
