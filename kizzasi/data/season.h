// Which seasons a signal has, found in the data.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/signal/series.h"

namespace kizzasi::data {

struct Season {
  std::size_t period = 1;  // in rows
  double strength = 0;     // autocorrelation at the period after the trend is removed, 0..1
};

// Seasons of one channel, strongest evidence first, at most `most`; none where nothing repeats. NaN is left out.
// Thread: any.
std::vector<Season> find_seasons(std::span<const double> values, std::size_t most = 3);

// Seasons that at least a fifth of the target channels of the series share, longest last; of many channels and series a sample of 16 is
// looked at.
std::vector<Season> find_seasons(std::span<const Series> series, std::size_t most = 3);
std::vector<Season> find_seasons(const Series& series, std::size_t most = 3);

// The usual periods of a step, in rows: 1 h -> 24, 168; 15 min -> 96, 672; 1 day -> 7, 365.
std::vector<std::size_t> calendar_periods(std::int64_t step_ns);

}  // namespace kizzasi::data
