#include "apps/cli/problem_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace kizzasi::cli {

bool ProblemFields::has(std::string_view key) const {
  const Json* field = problem_.find(key);
  return field != nullptr && !field->is_null();
}

void ProblemFields::complain(std::string_view key, std::string what, std::string expected) {
  if (!error_) error_ = Error{Fault::kBadInput, std::move(what), fmt::format("{}{}", within_, key), std::move(expected), ""};
}

double ProblemFields::value(const Json& json, std::string_view key) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.is_number()) return json.number();
  if (json.is_string() && json.string() == "inf") return kInfinity;
  if (json.is_string() && json.string() == "-inf") return -kInfinity;
  complain(key, fmt::format("{} is no number", json.dump().substr(0, 40)), "numbers, or \"inf\" and \"-inf\"");
  return 0;
}

double ProblemFields::number(std::string_view key) {
  if (!has(key)) {
    complain(key, "this field is missing", "a number");
    return 0;
  }
  return value(*problem_.find(key), key);
}

std::size_t ProblemFields::count(std::string_view key) {
  const Json* field = problem_.find(key);
  if (field == nullptr || !field->is_integer() || field->integer() < 1) {
    complain(key, field == nullptr ? "this field is missing" : fmt::format("{} is no count", field->dump().substr(0, 40)),
             "a whole number, 1 or more");
    return 1;
  }
  return static_cast<std::size_t>(field->integer());
}

bool ProblemFields::truth(std::string_view key) const {
  const Json* field = problem_.find(key);
  return field != nullptr && field->is_bool() && field->boolean();
}

std::string ProblemFields::text(std::string_view key) {
  const Json* field = problem_.find(key);
  if (field != nullptr && field->is_string()) return field->string();
  complain(key, field == nullptr ? "this field is missing" : fmt::format("{} is no text", field->dump().substr(0, 40)), "a text");
  return "";
}

const Json* ProblemFields::array(std::string_view key, bool needed) {
  if (!has(key)) {
    if (needed) complain(key, "this field is missing", "a list of numbers");
    return nullptr;
  }
  const Json* field = problem_.find(key);
  if (field->is_array()) return field;
  complain(key, fmt::format("this is {}", field->kind()), "a list");
  return nullptr;
}

std::vector<double> ProblemFields::list(std::string_view key) {
  std::vector<double> out;
  if (const Json* items = array(key, true)) {
    for (const Json& item : items->items()) out.push_back(value(item, key));
  }
  return out;
}

std::vector<double> ProblemFields::list(std::string_view key, std::size_t size, bool needed) {
  std::vector<double> out;
  const Json* items = array(key, needed);
  if (items == nullptr) return needed ? std::vector<double>(size, 0) : out;
  if (items->items().size() != size) {
    complain(key, fmt::format("this has {} numbers", items->items().size()), fmt::format("{}", size));
    return std::vector<double>(size, 0);
  }
  for (const Json& item : items->items()) out.push_back(value(item, key));
  return out;
}

std::vector<double> ProblemFields::matrix(std::string_view key, std::size_t columns, bool needed) {
  std::vector<double> out;
  const Json* rows = array(key, needed);
  if (rows == nullptr) return out;
  for (const Json& row : rows->items()) {
    if (!row.is_array() || row.items().size() != columns) {
      complain(key, row.is_array() ? fmt::format("a row has {} numbers", row.items().size()) : std::string("a row is no list"),
               fmt::format("rows of {}", columns));
      return {};
    }
    for (const Json& item : row.items()) out.push_back(value(item, key));
  }
  return out;
}

std::vector<double> ProblemFields::matrix(std::string_view key, std::size_t rows, std::size_t columns) {
  std::vector<double> out = matrix(key, columns, true);
  if (!error_ && out.size() != rows * columns) {
    complain(key, fmt::format("this has {} rows", columns == 0 ? 0 : out.size() / columns), fmt::format("{}", rows));
  }
  out.resize(rows * columns);
  return out;
}

}  // namespace kizzasi::cli
