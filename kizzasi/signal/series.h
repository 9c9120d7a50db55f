// A recorded signal on a fixed step: rows of frames, NaN where a value is missing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/signal/schema.h"

namespace kizzasi {

// One moment of every channel. A missing value is NaN: there is no second place that could disagree.
struct Frame {
  std::int64_t time_ns = 0;
  std::span<const double> values;  // (channels)
};

struct Series {
  std::string id;  // empty where the file holds one series
  Schema schema;
  std::int64_t start_ns = 0;   // of row 0; UTC, or the wall clock where the file names no zone
  std::vector<double> values;  // (rows, channels), row-major; NaN: missing

  std::size_t channels() const noexcept { return schema.size(); }
  std::size_t rows() const noexcept { return channels() == 0 ? 0 : values.size() / channels(); }
  std::int64_t time_ns(std::size_t row) const noexcept { return start_ns + static_cast<std::int64_t>(row) * schema.step_ns; }
  std::span<const double> row(std::size_t r) const noexcept { return std::span(values).subspan(r * channels(), channels()); }
  std::span<double> row(std::size_t r) noexcept { return std::span(values).subspan(r * channels(), channels()); }
  Frame frame(std::size_t r) const noexcept { return {time_ns(r), row(r)}; }
  double at(std::size_t r, std::size_t channel) const noexcept { return values[r * channels() + channel]; }

  // Rows [begin, end) as a series of their own.
  Series slice(std::size_t begin, std::size_t end) const;
  // The named channels only, in the order asked for; an unknown name is an error that names the nearest.
  Result<Series> select(std::span<const std::string> names) const;
};

}  // namespace kizzasi
