// How any number of forecasters would have done: forecasts from rolling origins, judged against what came.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/data/windows.h"
#include "kizzasi/forecast/forecaster.h"
#include "kizzasi/signal/head.h"
#include "kizzasi/signal/metrics.h"

namespace kizzasi {

class ThreadPool;

// How many point values of a forecast from `origin` are outside their limits.
using LimitCheck = std::function<std::size_t(const Series& series, std::size_t origin, const ForecastBlock& block)>;

// Bounds for each target; infinite: none. Values within 1e-9 of a bound count as inside.
LimitCheck bounds_check(std::vector<double> low, std::vector<double> high);

struct BacktestOptions {
  data::Split split;         // rows [0, train_end) are fitted; answers in [train_end, validation_end) calibrate; later ones judge
  std::size_t horizon = 24;  // steps ahead
  std::size_t stride = 1;    // rows between origins
  std::size_t season = 1;    // of the errors that MASE, RMSSE and MSIS divide by, in rows
  std::size_t most_calibration = 1000;               // forecasts that intervals are calibrated on at most, spread evenly
  std::size_t keep = 0;                              // forecasts kept for showing, spread evenly, the last one among them
  std::vector<double> levels = HeadConfig{}.levels;  // of calibrated quantiles: those of a model by default
  double adaptation = 0.05;  // rate at which own quantiles learn from earlier forecasts (adaptive_intervals.h); 0: they stay as given
  LimitCheck outside;        // empty: nothing is counted
};

// What one forecaster came to, for each step ahead and target: (horizon, targets).
struct MethodResult {
  std::string name;
  std::string problem;        // why it has no result; empty where it has
  std::size_t forecasts = 0;  // origins judged
  bool calibrated = false;    // its quantiles are its points with split-conformal intervals, for want of its own
  // Conformal quantiles (of a step, target and level) that want more calibration forecasts than there are: the outermost error stands in.
  std::size_t beyond_calibration = 0;
  std::vector<PointMetrics> points;        // (horizon, targets)
  std::vector<QuantileMetrics> quantiles;  // (horizon, targets); empty: no quantiles
  std::size_t values = 0, outside = 0;     // point values checked against the limits, and found outside
  // Means over the targets of each one's error divided by its seasonal scale in training; NaN where a scale is not defined.
  double mase = 0, rmsse = 0, msis95 = 0;                   // msis95: NaN without quantiles at 0.025 and 0.975
  std::vector<std::pair<std::size_t, ForecastBlock>> kept;  // origins and their forecasts

  // Joined over what is not named. Only where there is a result (and quantiles).
  PointMetrics points_over(std::size_t first_step, std::size_t last_step) const;  // all targets
  PointMetrics points_of(std::size_t target) const;                               // all steps
  QuantileMetrics quantiles_over(std::size_t first_step, std::size_t last_step) const;
  QuantileMetrics quantiles_of(std::size_t target) const;

  std::size_t horizon = 0, targets = 0;
};

struct BacktestResult {
  std::size_t series = 1;  // joined
  std::size_t horizon = 0, stride = 1, season = 1;
  std::vector<std::string> targets, units;
  std::size_t first_origin = 0, last_origin = 0;  // rows
  std::size_t rows = 0, train_end = 0, validation_end = 0;
  std::vector<MethodResult> methods;  // in the order given
};

// Each forecaster is fitted on the training rows alone; then it forecasts from origins validation_end, + stride, ... while the whole
// horizon lies in the rows of the split. What lies after the origin is blanked out before a forecaster sees it. Forecasters without
// quantiles of their own get split-conformal ones from their errors in the calibration part, for each step and target (decode/conformal.h);
// without a calibration part they have none. Own quantiles adapt from origin to origin to what came of earlier forecasts. One that fails
// has a `problem`; the others go on. The result does not depend on the number of threads; pool may be null.
Result<BacktestResult> backtest(const Series& series, std::span<Forecaster* const> forecasters, const BacktestOptions& options,
                                ThreadPool* pool);

// Results of several series with the same forecasters, horizon and targets as one: errors are pooled, scaled errors averaged, forecasts
// kept of the first. An error where they do not fit together.
Result<BacktestResult> join(std::span<const BacktestResult> parts);

}  // namespace kizzasi
