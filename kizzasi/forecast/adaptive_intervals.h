// Intervals of rolling forecasts that go on learning from what came: what a deployed forecaster can do, since it sees its past.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/signal/forecast_block.h"

namespace kizzasi {

// Adaptive conformal inference (Gibbs and Candes 2021, equation 2; in log-odds of the level, decode/correction.h) for every target and
// level, shared by all steps ahead; one forecast's steps together weigh as one observation. A quantile is looked up at its adapted level
// between those the forecaster gave, never beyond its outermost ones, so that what a constraint holds stays held.
// Thread: one at a time.
class AdaptiveIntervals {
 public:
  // wanted: the levels to give, rising.
  AdaptiveIntervals(std::vector<double> wanted, std::size_t targets, double rate);

  // Replaces the block's levels and quantiles by the wanted ones, as adapted so far.
  void apply(ForecastBlock& block) const;
  // One value that came, against the adapted quantiles (wanted levels) that were given for it; NaN changes nothing.
  void learn(std::size_t target, std::size_t horizon, std::span<const double> quantiles, double truth);

 private:
  std::vector<double> wanted_;
  std::size_t targets_;
  double rate_;
  std::vector<double> kept_;  // (targets, wanted) log-odds
};

}  // namespace kizzasi
