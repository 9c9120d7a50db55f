// The fields of one problem, read from a JSON object: numbers, lists and matrices, with the name of what is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi::cli {

// Reads field after field; the first that is wrong is kept, and everything after it is empty. Ask `error` once, at the end.
// A number may be written as "inf", "-inf"; NaN and other texts are errors.
class ProblemFields {
 public:
  explicit ProblemFields(const Json& problem, std::string within = "") : problem_(problem), within_(std::move(within)) {}

  // Whether the field is there and not null.
  bool has(std::string_view key) const;
  double number(std::string_view key);
  double number(std::string_view key, double otherwise) { return has(key) ? number(key) : otherwise; }
  std::size_t count(std::string_view key);
  bool truth(std::string_view key) const;
  std::string text(std::string_view key);
  // `size` numbers; empty where the field is missing and `needed` is false.
  std::vector<double> list(std::string_view key, std::size_t size, bool needed = true);
  // A list of any length.
  std::vector<double> list(std::string_view key);
  // Rows of `columns` numbers each, by rows.
  std::vector<double> matrix(std::string_view key, std::size_t columns, bool needed = true);
  // The same with a known number of rows.
  std::vector<double> matrix(std::string_view key, std::size_t rows, std::size_t columns);
  // For what the caller finds wrong.
  void complain(std::string_view key, std::string what, std::string expected);

  const std::optional<Error>& error() const { return error_; }

 private:
  double value(const Json& json, std::string_view key);
  const Json* array(std::string_view key, bool needed);

  const Json& problem_;
  std::string within_;
  std::optional<Error> error_;
};

}  // namespace kizzasi::cli
