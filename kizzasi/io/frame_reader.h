// Frames of a stream, line by line, against channels that are known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/io/number.h"
#include "kizzasi/io/stamp.h"
#include "kizzasi/io/zone.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi::io {

enum class FrameFormat { kAuto, kCsv, kJson };

struct FrameOptions {
  FrameFormat format = FrameFormat::kAuto;      // by the first line: '{' or '[' begins JSON
  char decimal = '.';                           // of CSV
  DateOrder date_order = DateOrder::kDayFirst;  // of stamps such as 03/04/2024
  std::optional<Zone> zone;                     // of stamps that name none
  std::vector<double> sentinels;                // numbers that stand for "no value"
};

struct StreamFrame {
  std::optional<std::int64_t> time_ns;  // where the line names a time
  std::vector<double> values;           // (channels of the schema), NaN: missing
};

enum class LineKind { kFrame, kHeader, kBlank };

// The channels that the first line of a stream names, for what has no model to tell them: the keys of a JSON object, the cells of a CSV
// header; times are left out. Errors: a line that names nothing (numbers alone, a JSON list).
Result<std::vector<std::string>> channels_of_first_line(std::string_view line);

// CSV: one cell a channel in the order of the schema, before them a time or not; or any order below a first line that names the columns
// (others than channels and the time are ignored). The delimiter is found at the first line.
// JSON lines: {"time": ..., "temp": 1.5, "hum": null}, {"time": ..., "values": [..]} or [..]. A channel that is left out is missing; a key
// that is no channel is an error.
// Times: stamps as in files, or numbers (seconds; since 1970 in s, ms, us or ns by their size).
// Thread: one stream. Real-time: no.
class FrameReader {
 public:
  explicit FrameReader(const Schema& schema, FrameOptions options = {});

  // One line without its newline. An error names the line's number; the reader goes on with the next line as if the bad one had not been.
  Result<LineKind> read(std::string_view line, StreamFrame& frame);
  std::size_t lines() const noexcept { return lines_; }
  // True once a line of names was refused: frames below it belong to other channels, and the stream is not to go on.
  bool header_refused() const noexcept { return header_refused_; }

 private:
  Result<LineKind> read_csv(std::string_view line, StreamFrame& frame);
  Result<LineKind> read_json(std::string_view line, StreamFrame& frame);
  Result<bool> settle_columns(std::string_view line);
  Result<std::int64_t> read_time(std::string_view text);
  bool is_line_of_names() const;
  tl::unexpected<Error> bad(std::string what, std::string expected, std::string hint, std::string_view column = {}) const;

  std::vector<std::string> names_;
  FrameOptions options_;
  FrameFormat format_;
  std::optional<WallClock> clock_;
  std::size_t lines_ = 0;
  bool settled_ = false, header_refused_ = false;
  char delimiter_ = ',';
  static constexpr int kTime = -1, kIgnored = -2;
  std::vector<int> columns_;  // (cells) the channel of each, kTime or kIgnored
  std::vector<std::string_view> fields_;
  std::vector<std::string> unquoted_;
};

}  // namespace kizzasi::io
