// A recording of any size at a glance: what each channel holds over all rows, and the latest rows themselves.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "kizzasi/io/recording.h"

namespace kizzasi::io {

struct ChannelFacts {
  std::size_t missing = 0, present = 0;
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity(), mean = 0;
  bool whole = true;  // every present value is a whole number

  void add(double value);  // NaN: missing
};

struct Overview {
  std::size_t rows = 0;                // of the whole recording
  std::vector<ChannelFacts> channels;  // (columns), over all rows
  Table latest;                        // the last rows; all of them where `complete`

  bool complete() const { return latest.rows() == rows; }
};

inline constexpr std::size_t kOverviewValues = 2'000'000;

// A CSV file of more than `most_values` numbers goes by in pieces, and its latest rows of about that many numbers are kept. Memory: twice
// those, a piece, the longest line, and 8 bytes a row for its time (40 where times do not rise). Other kinds of recordings are read whole.
// Errors: as read_recording().
Result<Overview> read_overview(const std::string& path, const CsvOptions& options, RecordingReport& report,
                               std::size_t most_values = kOverviewValues);

}  // namespace kizzasi::io
