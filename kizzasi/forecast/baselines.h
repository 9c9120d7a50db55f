// The methods that every backtest shows beside a model, as Forecasters.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kizzasi/forecast/forecaster.h"
#include "kizzasi/forecast/theta.h"

namespace kizzasi {

// Each forecasts every target channel from that channel's past alone (formulas in simple_methods.h); nothing is fitted.
std::unique_ptr<Forecaster> naive_forecaster();
std::unique_ptr<Forecaster> drift_forecaster();
std::unique_ptr<Forecaster> seasonal_naive_forecaster(std::size_t season);
std::unique_ptr<Forecaster> window_average_forecaster(std::size_t window);
std::unique_ptr<Forecaster> seasonal_mean_forecaster(std::size_t season, std::size_t seasons);

// position + rate * time: each pair names a target and the channel that holds its rate of change per second; a
// target that is such a rate keeps its last value. Needs a schema with a step.
std::unique_ptr<Forecaster> constant_velocity_forecaster(std::vector<std::pair<std::string, std::string>> position_and_rate);

// Exponential smoothing. Weights are fitted once, on the last rows of the training part; at each origin the recursion runs over the rows
// before it. form: "AAA" and so on, or "auto" for the least AICc (seasonal up to 48 slots). Gaps are bridged with the last value; a channel
// that is constant in training is forecast by its last value.
std::unique_ptr<Forecaster> ets_forecaster(std::string form, std::size_t season);

// Fitted anew at every origin on the rows before it; gaps are bridged with the last value.
std::unique_ptr<Forecaster> theta_forecaster(ThetaKind kind, std::size_t season);

// How ridge regression sees the channels: each with weights of its own, all through shared weights, or all past values of all inputs at
// once for every target.
enum class RidgeChannels { kEach, kPooled, kJoint };

struct RidgeOptions {
  std::size_t lookback = 336;
  std::size_t horizon = 24;  // steps that it learns; forecasts may be shorter
  double lambda = 30;        // on values scaled to deviation 1 in training
  bool intercept = true;
  RidgeChannels channels = RidgeChannels::kEach;
  std::vector<std::string> inputs;     // kJoint: channels to read; empty: the targets
  std::size_t most_windows = 100'000;  // more training windows than that are thinned evenly
};

// Direct linear forecasts in closed form. kEach and kPooled are NLinear (Zeng et al. 2023) as a ridge regression: window and answers minus
// the window's last value. kJoint: the scaled windows of all inputs against the answers minus each target's last value.
// Training windows with a missing value are left out; gaps before an origin are bridged with the last value.
std::unique_ptr<Forecaster> ridge_forecaster(const RidgeOptions& options);

// What people compare with: for every season the seasonal naive method and the mean of the last seven seasons by slot; naive, drift, window
// average over the shortest season, ridge NLinear, Holt-Winters, automatic ETS, Theta. seasons: rising, in rows; empty: no seasonal ones.
std::vector<std::unique_ptr<Forecaster>> standard_baselines(const std::vector<std::size_t>& seasons, const RidgeOptions& ridge);

}  // namespace kizzasi
