// What the beginning of a CSV file tells: dialect, header, and which columns hold time and series names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/io/csv_records.h"
#include "kizzasi/io/stamp.h"

namespace kizzasi::io {

// A record that owns its text.
struct SampleRecord {
  std::size_t line = 0, lines = 1;
  std::string text;
  std::vector<std::string> fields;
  bool blank = false, comment = false;
};

enum class TimeKind { kNone, kStamp, kEpoch, kRelative };

struct CsvHead {
  char delimiter = ',';
  Newline newline = Newline::kLf;
  std::size_t fields = 1;  // of a record
  std::optional<std::size_t> header_line;
  std::size_t data_line = 1;         // where the first data record stands, or may stand
  std::vector<std::size_t> skipped;  // lines before it that are no header
  std::size_t preamble = 0;          // of these, unmarked or blank lines before the header; 0 where all are comments or blank
  std::vector<std::string> names;    // (fields); empty text: no name
  std::vector<std::string> units;    // (fields)
  bool last_empty = false;           // the last column has no name and no value
  bool row_names = false;            // the header has no name for the first column
  std::string header_zone;           // "UTC" of "time [UTC]"
  TimeKind time = TimeKind::kNone;
  std::vector<std::size_t> time_at;  // columns: one, or date and time of day
  std::int64_t unit_ns = 0;          // of a numeric time
  Stamp stamp;                       // what a usual stamp of the column looks like
  std::optional<std::size_t> id_at;
};

// `text` is the beginning of the file (all of it where `whole`).
Result<CsvHead> examine_head(std::string_view text, bool whole, const CsvOptions& options);

// A comment line: '#' or '//' first, but no "#N/A".
bool is_comment(std::string_view text);

// The unit in the brackets at the end of a name: "degC" of "temp (degC)", "%" of "hum [%]"; empty where there is none.
std::string unit_in_name(std::string_view name);

}  // namespace kizzasi::io
