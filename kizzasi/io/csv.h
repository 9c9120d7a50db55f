// CSV files as people have them: the dialect is found, told, and can be overridden; what is wrong is refused with its line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/io/csv_records.h"
#include "kizzasi/io/number.h"
#include "kizzasi/io/table.h"
#include "kizzasi/io/time_axis.h"

namespace kizzasi::io {

enum class CellType { kNumber, kText, kBool };

struct CsvColumn {
  std::string name, unit;
  CellType type = CellType::kNumber;
  std::size_t missing = 0;
  bool constant = false;
};

struct CsvSeries {
  std::string id;
  TimeAxis axis;
};

// Why a file was refused; the Error says the same in words.
struct CsvRefusal {
  std::string kind;  // field_count, not_a_number, bad_time, nul_byte, empty_file, no_rows, open_quote, record_too_long, not_text
  std::optional<std::size_t> line{};
  std::string column{};
  std::optional<std::string> text{};
  std::optional<std::size_t> expected_fields{}, found_fields{};
};

// One cell that was set aside because it is not finite.
struct CsvCell {
  std::size_t line;
  std::string column, text;
};

// Everything that was noticed while reading.
struct CsvReport {
  char delimiter = ',';
  NumberStyle numbers;
  Encoding encoding = Encoding::kUtf8;
  Newline newline = Newline::kLf;
  std::optional<std::size_t> header_line;
  std::vector<std::size_t> skipped_lines;
  std::vector<std::string> time_columns;  // names; empty: no time
  std::optional<std::size_t> time_index;  // of a time column without a name
  std::string time_format;                // "iso8601", "epoch_ms", "seconds", "milliseconds", "dd.mm.yyyy", ...
  std::string zone;                       // as Table::zone
  bool date_only = false;                 // stamps are written as dates
  bool relative = false;                  // times count from the start of the recording, or from midnight
  std::string id_column;                  // empty: a wide file
  std::vector<CsvSeries> series;          // one for each id in order of appearance; one in all for a wide file
  std::vector<CsvColumn> columns;         // channels in the order of the file, text columns included
  std::size_t rows = 0;
  std::optional<std::size_t> first_duplicate_line;
  std::vector<std::pair<std::size_t, std::int64_t>> implausible;  // line and stamp of rows that are set aside
  std::vector<CsvCell> not_finite;                                // at most 1,000 of them
  std::size_t not_finite_cells = 0;
  std::vector<std::string> warnings;  // a code, then column or count after colons: "missing:12", "text_column:note"
  std::optional<CsvRefusal> refusal;  // only where reading failed

  std::size_t missing() const;
  std::size_t duplicates() const;
  std::size_t out_of_order() const;
  // The step all series share, or 0.
  std::int64_t step_ns() const;
  // {"dialect": ..., "layout": ..., "time": ..., "columns": ..., "rows": ..., ...}; {"error": {...}} after a refusal.
  Json to_json(const CsvOptions& options) const;
  // "2024-03-04T08:00:00", a date, or seconds: a stamp in the way of the file.
  Json stamp(std::int64_t time_ns) const;
};

// A warning as a sentence: "3 cells of 'temp' are 9999, which often stands for no value: say so with --sentinels 9999".
std::string warning_text(std::string_view warning);

struct TextColumn {
  std::string name;
  std::vector<std::string> cells;
};

// A CSV file in pieces. Memory: a piece, the longest line, and 8 bytes a row for the time axis (in the
// end 40 where times do not rise).
// Opening reads the file once from end to end and settles everything that only all of it tells (types, marks inside numbers, order of day
// and month); then `next` reads it a second time. Number and yes/no columns become channels of the table; text columns are only reported.
// Thread: one at a time.
class CsvReader {
 public:
  static Result<CsvReader> open(std::unique_ptr<ByteSource> source, const CsvOptions& options, CsvReport& report);
  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;
  ~CsvReader();

  // Replaces `piece` by the next `rows` rows at most; false (and an empty piece) at the end, when the report is complete.
  // `texts`, if given, gets the cells of the text columns.
  Result<bool> next(Table& piece, std::size_t rows, std::vector<TextColumn>* texts = nullptr);

 private:
  struct State;
  explicit CsvReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The whole file. On an error report.refusal says which kind it was.
Result<Table> read_csv(const std::string& path, const CsvOptions& options, CsvReport& report);
Result<Table> read_csv(std::unique_ptr<ByteSource> source, const CsvOptions& options, CsvReport& report,
                       std::vector<TextColumn>* texts = nullptr);

}  // namespace kizzasi::io
