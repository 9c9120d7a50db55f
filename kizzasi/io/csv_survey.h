// What only all of a CSV file tells: the marks inside numbers, the types of its columns, the order of day and month.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/io/csv_head.h"
#include "kizzasi/io/number.h"

namespace kizzasi::io {

// What one record is, given the head.
enum class RecordKind {
  kData,
  kBlank,  // empty, or nothing but delimiters where a time is expected
  kComment,
  kRemark,      // a logger's status line: no delimiter and no number
  kFieldCount,  // another number of fields
};

RecordKind kind_of(const Record& record, const CsvHead& head, bool strict);

// Words and numbers that stand for "no value": the usual words and those of the user.
class MissingCells {
 public:
  explicit MissingCells(const CsvOptions& options)
      : words_(options.missing_words.begin(), options.missing_words.end()), sentinels_(options.sentinels) {}
  bool is_word(std::string_view cell) const { return is_missing_word(cell) || (!words_.empty() && words_.contains(cell)); }
  bool is_sentinel(double value) const;

 private:
  std::set<std::string, std::less<>> words_;
  std::vector<double> sentinels_;
};

struct ColumnSurvey {
  std::size_t present = 0, percent = 0;
  std::array<std::size_t, kStyleCount> numbers{};  // cells that are numbers in each style
  std::array<std::size_t, 5> bools{};              // cells of each pair of words
};

struct CsvSurvey {
  std::size_t rows = 0;
  std::vector<ColumnSurvey> columns;  // (fields)
  std::size_t first_above_12 = 0, second_above_12 = 0;
  std::vector<Stamp> ambiguous;  // the first stamps of an unsettled order
  bool invalid_text = false;     // not UTF-8 although it should be
};

Result<CsvSurvey> survey(ByteSource& source, Encoding encoding, const CsvHead& head, const CsvOptions& options);

// The style in which most cells are numbers.
NumberStyle choose_style(const CsvSurvey& survey, const CsvHead& head, const CsvOptions& options);

enum class OrderReason { kSettled, kInferred, kAmbiguous };

struct OrderChoice {
  DateOrder order = DateOrder::kYearFirst;
  OrderReason reason = OrderReason::kSettled;
};

// By a number above 12, else by the reading that gives the more regular step, else ambiguous (and day first).
OrderChoice choose_order(const CsvSurvey& survey, const CsvHead& head, const CsvOptions& options);

}  // namespace kizzasi::io
