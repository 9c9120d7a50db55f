// The past of one channel as methods of one variable want it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi {

// Rows [begin, end) of a channel.
inline std::vector<double> channel_rows(const Series& series, std::size_t channel, std::size_t begin, std::size_t end) {
  std::vector<double> values(end - begin);
  for (std::size_t r = begin; r < end; ++r) values[r - begin] = series.at(r, channel);
  return values;
}

// Missing values take the last present one; those before the first present one take that. All missing: stays so.
inline void bridge_gaps(std::span<double> values) {
  const auto first = std::find_if(values.begin(), values.end(), [](double v) { return !std::isnan(v); });
  if (first == values.end()) return;
  std::fill(values.begin(), first, *first);
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (std::isnan(values[i])) values[i] = values[i - 1];
  }
}

}  // namespace kizzasi
