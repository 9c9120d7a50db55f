#include "kizzasi/base/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "kizzasi/base/suggest.h"

namespace kizzasi::detail {
namespace {

std::string range_text(const FieldInfo& info) {
  if (!info.choices.empty()) return fmt::format("one of {}", fmt::join(info.choices, ", "));
  const bool low = std::isfinite(info.min), high = std::isfinite(info.max);
  if (low && high) return fmt::format("{} to {}", info.min, info.max);
  if (low) return fmt::format("at least {}", info.min);
  if (high) return fmt::format("at most {}", info.max);
  return "";
}

// One visitor with the same treatment for every type.
template <typename Derived>
class Each : public FieldVisitor {
 public:
  void field(const FieldInfo& info, bool& value) override { derived().each(info, value); }
  void field(const FieldInfo& info, std::int64_t& value) override { derived().each(info, value); }
  void field(const FieldInfo& info, double& value) override { derived().each(info, value); }
  void field(const FieldInfo& info, std::string& value) override { derived().each(info, value); }
  void field(const FieldInfo& info, std::vector<double>& value) override { derived().each(info, value); }
  void field(const FieldInfo& info, std::vector<std::string>& value) override { derived().each(info, value); }

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }
};

template <typename T>
Json as_json(const T& value) {
  return value;
}
template <typename T>
Json as_json(const std::vector<T>& values) {
  return Json::list(values);
}

struct ToJson : Each<ToJson> {
  Json out = Json::object();
  template <typename T>
  void each(const FieldInfo& info, T& value) {
    out[info.name] = as_json(value);
  }
};

const char* kind_of(bool) { return "yes/no"; }
const char* kind_of(std::int64_t) { return "whole number"; }
const char* kind_of(double) { return "number"; }
const char* kind_of(const std::string&) { return "text"; }
const char* kind_of(const std::vector<double>&) { return "list of numbers"; }
const char* kind_of(const std::vector<std::string>&) { return "list of texts"; }

struct Describe : Each<Describe> {
  std::vector<FieldDoc> out;
  template <typename T>
  void each(const FieldInfo& info, T& value) {
    out.push_back({std::string(info.name), std::string(info.help), kind_of(value), as_json(value).dump(), range_text(info)});
  }
};

struct Check : Each<Check> {
  std::string_view where;
  std::optional<Error> error;
  void refuse(const FieldInfo& info, std::string value) {
    if (error) return;
    const std::string prefix = where.empty() ? "" : fmt::format("{}: ", where);
    error = Error{Fault::kBadUse, fmt::format("{} is out of range", value), fmt::format("{}field '{}'", prefix, info.name),
                  range_text(info), ""};
    if (error->expected.empty()) error->expected = "a finite number";
  }
  void number(const FieldInfo& info, double value) {
    if (!std::isfinite(value) || value < info.min || value > info.max) refuse(info, fmt::format("{}", value));
  }
  void text(const FieldInfo& info, const std::string& value) {
    if (!info.choices.empty() && std::find(info.choices.begin(), info.choices.end(), value) == info.choices.end()) {
      refuse(info, fmt::format("'{}'", value));
      const std::vector<std::string> names(info.choices.begin(), info.choices.end());
      if (error && error->hint.empty()) error->hint = did_you_mean(value, names);
    }
  }
  void each(const FieldInfo&, bool&) {}
  void each(const FieldInfo& info, std::int64_t& value) { number(info, static_cast<double>(value)); }
  void each(const FieldInfo& info, double& value) { number(info, value); }
  void each(const FieldInfo& info, std::string& value) { text(info, value); }
  void each(const FieldInfo& info, std::vector<double>& values) {
    for (const double value : values) number(info, value);
  }
  void each(const FieldInfo& info, std::vector<std::string>& values) {
    for (const std::string& value : values) text(info, value);
  }
};

bool take(const Json& json, bool& value) { return json.is_bool() ? (value = json.boolean(), true) : false; }
bool take(const Json& json, std::int64_t& value) { return json.is_integer() ? (value = json.integer(), true) : false; }
bool take(const Json& json, double& value) { return json.is_number() ? (value = json.number(), true) : false; }
bool take(const Json& json, std::string& value) { return json.is_string() ? (value = json.string(), true) : false; }
template <typename T>
bool take(const Json& json, std::vector<T>& values) {
  if (!json.is_array()) return false;
  std::vector<T> taken(json.items().size());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (!take(json.items()[i], taken[i])) return false;
  }
  values = std::move(taken);
  return true;
}

struct Apply : Each<Apply> {
  const Json* values = nullptr;
  std::string_view where;
  std::optional<Error> error;
  std::vector<std::string> names;
  template <typename T>
  void each(const FieldInfo& info, T& value) {
    names.emplace_back(info.name);
    const Json* given = values->find(info.name);
    if (given == nullptr || error || take(*given, value)) return;
    error = Error{Fault::kBadUse, fmt::format("{} is no {}", given->dump(), kind_of(value)),
                  fmt::format("{}: field '{}'", where, info.name), fmt::format("a {}", kind_of(value)), ""};
  }
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <typename N>
bool read_number(std::string_view text, N& value) {
  text = trimmed(text);
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc{} && end == text.data() + text.size();
}

bool read(std::string_view text, bool& value) {
  const std::string_view word = trimmed(text);
  const bool yes = word == "true" || word == "yes" || word == "on" || word == "1";
  const bool no = word == "false" || word == "no" || word == "off" || word == "0";
  value = yes;
  return yes || no;
}
bool read(std::string_view text, std::int64_t& value) { return read_number(text, value); }
bool read(std::string_view text, double& value) { return read_number(text, value); }
bool read(std::string_view text, std::string& value) {
  value = std::string(text);
  return true;
}
template <typename T>
bool read(std::string_view text, std::vector<T>& values) {
  values.clear();
  while (!trimmed(text).empty()) {
    const std::size_t comma = text.find(',');
    T value{};
    if (!read(trimmed(text.substr(0, comma)), value)) return false;
    values.push_back(value);
    text = comma == text.npos ? std::string_view{} : text.substr(comma + 1);
  }
  return true;
}

Error no_such_field(std::string_view name, std::string_view where, const std::vector<std::string>& names) {
  return Error{Fault::kBadUse, fmt::format("there is no field '{}'", name), std::string(where),
               fmt::format("one of {}", fmt::join(names, ", ")), did_you_mean(name, names)};
}

struct Assign : Each<Assign> {
  std::string_view name, text, where;
  bool found = false;
  std::optional<Error> error;
  std::vector<std::string> names;
  template <typename T>
  void each(const FieldInfo& info, T& value) {
    names.emplace_back(info.name);
    if (info.name != name) return;
    found = true;
    if (read(text, value)) return;
    error = Error{Fault::kBadUse, fmt::format("'{}' is no {}", text, kind_of(value)), std::string(where),
                  fmt::format("a {}", kind_of(value)), ""};
  }
};

}  // namespace

Json to_json(void* config, Walk walk) {
  ToJson visit;
  walk(config, visit);
  return std::move(visit.out);
}

std::vector<FieldDoc> describe(void* config, Walk walk) {
  Describe visit;
  walk(config, visit);
  return std::move(visit.out);
}

Result<void> check(void* config, Walk walk, std::string_view where) {
  Check visit;
  visit.where = where;
  walk(config, visit);
  if (visit.error) return fail(*visit.error);
  return {};
}

Result<void> apply(void* config, Walk walk, const Json& values, std::string_view where) {
  if (!values.is_object())
    return fail({Fault::kBadUse, fmt::format("found a JSON {}", values.kind()), std::string(where), "a table of fields", ""});
  Apply visit;
  visit.values = &values;
  visit.where = where;
  walk(config, visit);
  if (visit.error) return fail(*visit.error);
  for (const auto& [key, value] : values.members()) {
    if (std::find(visit.names.begin(), visit.names.end(), key) != visit.names.end()) continue;
    return fail(no_such_field(key, where, visit.names));
  }
  return check(config, walk, where);
}

Result<Json> value(void* config, Walk walk, std::string_view name, std::string_view where) {
  const Json all = to_json(config, walk);
  if (const Json* found = all.find(name)) return *found;
  std::vector<std::string> names;
  for (const auto& [key, each] : all.members()) names.push_back(key);
  return fail(no_such_field(name, where, names));
}

Result<void> assign(void* config, Walk walk, std::string_view name, std::string_view text, std::string_view where) {
  Assign visit;
  visit.name = name;
  visit.text = text;
  visit.where = where;
  walk(config, visit);
  if (visit.error) return fail(*visit.error);
  if (!visit.found) return fail(no_such_field(name, where, visit.names));
  return check(config, walk, where);
}

}  // namespace kizzasi::detail
