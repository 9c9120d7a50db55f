#include "kizzasi/base/json.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace kizzasi {
namespace {

constexpr std::size_t kDeepest = 200;  // nesting beyond this is an attack, not a document

// Builds a Json from the parser's events; stops at repeated keys and deep nesting, which the parser itself lets pass.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) return add(static_cast<double>(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!seen_.back().insert(name).second) {
      problem = fmt::format("key '{}' stands twice", name);
      return false;
    }
    keys_.back() = name;
    return true;
  }
  bool parse_error(std::size_t place, const std::string&, const nlohmann::json::exception&) override {
    position = place;
    problem = "this is no valid JSON";
    return false;
  }

  Json root;
  std::string problem;
  std::optional<std::size_t> position;

 private:
  bool open(Json container) {
    if (stack_.size() >= kDeepest) {
      problem = "nested too deeply";
      return false;
    }
    stack_.push_back(std::move(container));
    keys_.emplace_back();
    seen_.emplace_back();
    return true;
  }
  bool close() {
    Json done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    seen_.pop_back();
    return add(std::move(done));
  }
  bool add(Json value) {
    if (stack_.empty()) {
      root = std::move(value);
    } else if (stack_.back().is_object()) {
      stack_.back().members().emplace_back(keys_.back(), std::move(value));
    } else {
      stack_.back().items().push_back(std::move(value));
    }
    return true;
  }
  std::vector<Json> stack_;
  std::vector<std::string> keys_;
  std::vector<std::unordered_set<std::string>> seen_;  // a million keys must not take a million squared comparisons
};

void write_string(const std::string& text, std::string& out) {
  // Bytes that are no UTF-8 are replaced, so that what is printed is always valid JSON.
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write(const Json& value, int indent, int level, std::string& out) {
  const auto newline = [&](int depth) {
    if (indent >= 0) out.append("\n").append(static_cast<std::size_t>(indent * depth), ' ');
  };
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.boolean() ? "true" : "false";
  } else if (value.is_integer()) {
    out += fmt::to_string(value.integer());
  } else if (value.is_number()) {
    out += std::isfinite(value.number()) ? fmt::format("{}", value.number()) : "null";
  } else if (value.is_string()) {
    write_string(value.string(), out);
  } else if (value.is_array()) {
    out += '[';
    bool first = true;
    for (const Json& item : value.items()) {
      if (!first) out += indent >= 0 ? "," : ", ";
      first = false;
      newline(level + 1);
      write(item, indent, level + 1, out);
    }
    if (!first) newline(level);
    out += ']';
  } else {
    out += '{';
    bool first = true;
    for (const auto& [name, item] : value.members()) {
      if (!first) out += indent >= 0 ? "," : ", ";
      first = false;
      newline(level + 1);
      write_string(name, out);
      out += ": ";
      write(item, indent, level + 1, out);
    }
    if (!first) newline(level);
    out += '}';
  }
}

std::string place(std::string_view text, std::string_view where, std::size_t offset) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < offset && i < text.size(); ++i) {
    column = text[i] == '\n' ? 1 : column + 1;
    line += text[i] == '\n' ? 1 : 0;
  }
  return fmt::format("{}:{}:{}", where, line, column);
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  for (auto& [name, value] : members()) {
    if (name == key) return value;
  }
  return members().emplace_back(std::string(key), Json{}).second;
}

void Json::push_back(Json value) {
  if (is_null()) value_ = Array{};
  items().push_back(std::move(value));
}

std::string Json::dump(int indent) const {
  std::string out;
  write(*this, indent, 0, out);
  return out;
}

const char* Json::kind() const {
  constexpr std::array<const char*, 7> kNames{"null", "boolean", "integer", "number", "string", "array", "object"};
  return kNames[value_.index()];
}

Result<Json> Json::parse(std::string_view text, std::string_view where) {
  Builder builder;
  const bool good = nlohmann::json::sax_parse(text, &builder);
  if (good) return std::move(builder.root);
  const std::string at = builder.position ? place(text, where, *builder.position) : std::string(where);
  return fail({Fault::kBadInput, builder.problem, at, "one JSON document, each key once", ""});
}

}  // namespace kizzasi
