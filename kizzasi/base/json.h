// A JSON value: what configuration files, model metadata and every --json answer are made of.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

// Objects keep the order in which keys were added. Integers and reals are told apart; a real that is not finite prints as null.
// Thread: one at a time for writing, any for reading.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <std::integral I>
    requires(!std::same_as<I, bool>)
  Json(I value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point F>
  Json(F value) : value_(static_cast<double>(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}
  template <typename T>
  static Json list(const T& values) {
    Array array;
    for (const auto& value : values) array.emplace_back(value);
    return array;
  }
  static Json object() { return Object{}; }
  static Json array() { return Array{}; }

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The kind must be right; check with the is_ functions first.
  bool boolean() const { return std::get<bool>(value_); }
  std::int64_t integer() const { return std::get<std::int64_t>(value_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& items() const { return std::get<Array>(value_); }
  Array& items() { return std::get<Array>(value_); }
  const Object& members() const { return std::get<Object>(value_); }
  Object& members() { return std::get<Object>(value_); }

  // The member named `key`, or null where this is no object or has none.
  const Json* find(std::string_view key) const;
  // The member named `key`, added where there is none; a null becomes an object.
  Json& operator[](std::string_view key);
  void push_back(Json value);

  // indent < 0: one line. Reals print with the fewest digits that read back to the same double.
  std::string dump(int indent = -1) const;
  // `where` names the text in messages ("config.json"); the place is added as line and column. A repeated key is an error.
  static Result<Json> parse(std::string_view text, std::string_view where);

  // "null", "boolean", "integer", "number", "string", "array" or "object".
  const char* kind() const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

}  // namespace kizzasi
