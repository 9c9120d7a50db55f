// Configuration declared once: one line a field gives its default, its check, its key in TOML, YAML and JSON, its command-line option,
// its help text and its line in the documentation.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi {

struct FieldInfo {
  std::string_view name;  // "d_model": the key in files; the option is --d-model
  std::string_view help;  // one sentence
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices{};  // for text: what it may be; empty: anything
};

// Sees every field of a configuration in turn. A configuration is a struct whose members have defaults in place and that has
//   void fields(FieldVisitor& visit) { visit.field({"d_model", "Width of the residual stream.", 1, 65536}, d_model); ... }
class FieldVisitor {
 public:
  virtual ~FieldVisitor() = default;
  virtual void field(const FieldInfo&, bool&) = 0;
  virtual void field(const FieldInfo&, std::int64_t&) = 0;
  virtual void field(const FieldInfo&, double&) = 0;
  virtual void field(const FieldInfo&, std::string&) = 0;
  virtual void field(const FieldInfo&, std::vector<double>&) = 0;
  virtual void field(const FieldInfo&, std::vector<std::string>&) = 0;
};

template <typename C>
concept Declared = std::copyable<C> && requires(C& config, FieldVisitor& visit) { config.fields(visit); };

// One field as documentation and options see it.
struct FieldDoc {
  std::string name, help, kind;  // kind: "yes/no", "whole number", "number", "text", "list of numbers", "list of texts"
  std::string default_text;      // as it would be written in JSON
  std::string allowed;           // "1 to 65536", "one of mamba, mamba2"; empty: anything
};

namespace detail {
// A visitor over any configuration, type-erased so that the work stands in one .cpp.
using Walk = void (*)(void* config, FieldVisitor&);
Json to_json(void* config, Walk);
std::vector<FieldDoc> describe(void* config, Walk);
Result<void> check(void* config, Walk, std::string_view where);
Result<void> apply(void* config, Walk, const Json& values, std::string_view where);
Result<void> assign(void* config, Walk, std::string_view name, std::string_view text, std::string_view where);
Result<Json> value(void* config, Walk, std::string_view name, std::string_view where);
template <Declared C>
void walk(void* config, FieldVisitor& visit) {
  static_cast<C*>(config)->fields(visit);
}
}  // namespace detail

template <Declared C>
Json to_json(C config) {
  return detail::to_json(&config, &detail::walk<C>);
}

// The fields of C with their defaults, in order of declaration.
template <Declared C>
std::vector<FieldDoc> describe(C defaults = {}) {
  return detail::describe(&defaults, &detail::walk<C>);
}

// Every value inside its range and choices, else an error that names the field.
template <Declared C>
Result<void> check_fields(C config, std::string_view where = "") {
  return detail::check(&config, &detail::walk<C>, where);
}

// Takes the members of `values` (an object); unknown keys are errors that name the nearest field. On an error `config` is unchanged.
template <Declared C>
Result<void> apply_fields(C& config, const Json& values, std::string_view where) {
  C changed = config;
  if (auto done = detail::apply(&changed, &detail::walk<C>, values, where); !done) return done;
  config = changed;
  return {};
}

// Sets one field from text ("--d-model 64"); lists are separated by commas. On an error `config` is unchanged.
template <Declared C>
Result<void> assign_field(C& config, std::string_view name, std::string_view text, std::string_view where) {
  C changed = config;
  if (auto done = detail::assign(&changed, &detail::walk<C>, name, text, where); !done) return done;
  config = changed;
  return {};
}

// The value of one field by its name; an unknown name is an error that names the nearest.
template <Declared C>
Result<Json> field_value(C config, std::string_view name, std::string_view where = "") {
  return detail::value(&config, &detail::walk<C>, name, where);
}

// A configuration put together by name:
//   const Result<ModelConfig> config = Builder<ModelConfig>().set("architecture", "mamba").set("d_model", 64).build();
// The last of two settings of a field counts. What cannot be is one error at the end, never an abort.
template <Declared C>
class Builder {
 public:
  explicit Builder(C start = {}) : start_(std::move(start)), values_(Json::object()) {}

  Builder& set(std::string_view name, Json value) {
    values_[std::string(name)] = std::move(value);
    return *this;
  }
  // Names, kinds, ranges and, where C has a check of its own, what must fit together.
  Result<C> build(std::string_view where = "configuration") const {
    C config = start_;
    if (auto applied = apply_fields(config, values_, where); !applied) return fail(applied.error());
    if (auto checked = check_fields(config, where); !checked) return fail(checked.error());
    if constexpr (requires { config.check(where); }) {
      if (auto checked = config.check(where); !checked) return fail(checked.error());
    }
    return config;
  }

 private:
  C start_;
  Json values_;
};

}  // namespace kizzasi
