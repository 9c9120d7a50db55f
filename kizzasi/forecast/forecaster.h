// Whatever can forecast a series: a simple baseline, a fitted method, a trained model. What backtests set side by side.
#pragma once

#include <cstddef>
#include <string>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/forecast_block.h"
#include "kizzasi/signal/series.h"

namespace kizzasi {

// Thread: fit by one; forecast by any number at once after fit.
class Forecaster {
 public:
  virtual ~Forecaster() = default;

  virtual std::string name() const = 0;

  // Learns what it needs from the training rows. A trained model has nothing to do here.
  virtual Result<void> fit(const Series& train) = 0;

  // Forecasts rows [origin, origin + horizon) of every target channel. It may read the targets and observed channels of rows [0, origin)
  // only, and known-future channels of rows before origin + horizon. `out` is resized; levels stay empty where only points are given.
  // A value that cannot be told is NaN and is counted by whoever judges.
  virtual Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const = 0;
};

}  // namespace kizzasi
