// A file as it stands, before anything is decided about it: columns of numbers beside what was noticed while reading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi {

// Everything that a reader of recordings returns, whatever the format. Rows are in file order; duplicates and disorder are still in.
struct Table {
  std::string source;  // the file's name, for messages
  std::vector<Channel> columns;
  std::vector<std::int64_t> time_ns;  // (rows); empty where the file has no time
  std::vector<std::int32_t> series;   // (rows) index into `ids`; empty for one series
  std::vector<std::string> ids;       // of a long table
  std::vector<double> values;         // (rows, columns), NaN: missing
  std::string zone;                   // as in Schema
  std::int64_t nominal_step_ns = 0;   // where the format states it (WAV); else 0

  std::size_t rows() const noexcept { return columns.empty() ? time_ns.size() : values.size() / columns.size(); }
};

}  // namespace kizzasi
