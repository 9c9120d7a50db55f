// How good forecasts are: errors of points, losses of quantiles, coverage of intervals.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/running_moments.h"

namespace kizzasi {

// Every measure that is not defined (no term, division by a scale of zero) is NaN, never 0 or infinity; how many terms each had is told.

// Mean absolute and mean squared difference between values one season apart: what MASE, MSIS and RMSSE divide by (Hyndman and Koehler
// 2006). Pairs with a missing value are left out. NaN where there is no pair.
struct SeasonalScale {
  double absolute, squared;
};
SeasonalScale seasonal_scale(std::span<const double> insample, std::size_t season);

// Errors of point forecasts, one pair at a time; error = forecast - truth. Adding is one pass, so any number of pairs fits.
// Thread: one at a time. Real-time: yes.
class PointMetrics {
 public:
  void add(double truth, double forecast) noexcept;
  // As if the other's pairs had been added after these.
  void merge(const PointMetrics& other) noexcept;

  std::size_t pairs() const noexcept { return pairs_; }
  std::size_t missing() const noexcept { return missing_; }          // the truth was NaN: not judged
  std::size_t unusable() const noexcept { return unusable_; }        // the forecast was not finite: not judged, to be reported
  std::size_t mape_terms() const noexcept { return mape_terms_; }    // pairs whose truth is not 0
  std::size_t smape_terms() const noexcept { return smape_terms_; }  // pairs that are not 0 against 0

  double mae() const noexcept;
  double mse() const noexcept;
  double rmse() const noexcept;
  double bias() const noexcept;
  double mape_percent() const noexcept;        // over the pairs whose truth is not 0
  double smape_200_percent() const noexcept;   // the M4 form, 0..200 %; 0 against 0 counts as 0
  double smape_100_fraction() const noexcept;  // 0..1: the same / 200
  double wape() const noexcept;                // sum of |error| / sum of |truth|
  double r2() const noexcept;                  // = Nash-Sutcliffe efficiency
  double correlation() const noexcept;         // Pearson's, of truth and forecast
  double mase(const SeasonalScale& scale) const noexcept;
  double rmsse(const SeasonalScale& scale) const noexcept;

 private:
  std::size_t pairs_ = 0, missing_ = 0, unusable_ = 0, mape_terms_ = 0, smape_terms_ = 0;
  double error_ = 0, absolute_ = 0, squared_ = 0, truth_size_ = 0, ratio_ = 0, symmetric_ = 0;  // sums
  RunningMoments truths_, forecasts_;
  double product_ = 0;  // sum of the products of their deviations
};

// The pinball (quantile) loss of one forecast: what its expected value minimises is the quantile at `level`.
inline double pinball(double truth, double quantile, double level) noexcept {
  const double error = truth - quantile;
  return error >= 0 ? level * error : (level - 1) * error;
}

// A central interval between two quantiles whose levels add up to 1.
struct IntervalMetrics {
  std::size_t low = 0, high = 0;  // positions of its levels
  double nominal = 0;             // the share that it should cover: 0.95 between 0.025 and 0.975
  double coverage = 0;            // the share that it did; a value on a bound is inside
  double mean_width = 0;
  double winkler = 0;  // interval score, mean (Gneiting and Raftery 2007, equation 43); NaN where bounds crossed
  double msis(const SeasonalScale& scale) const noexcept;
};

// Losses of quantile forecasts, one truth with all its quantiles at a time.
// Thread: one at a time. Real-time: add and merge, yes.
class QuantileMetrics {
 public:
  explicit QuantileMetrics(std::span<const double> levels);  // rising, inside (0, 1)

  void add(double truth, std::span<const double> quantiles) noexcept;  // (levels)
  void merge(const QuantileMetrics& other) noexcept;                   // of the same levels

  std::span<const double> levels() const noexcept { return levels_; }
  std::size_t pairs() const noexcept { return pairs_; }
  std::size_t missing() const noexcept { return missing_; }
  std::size_t unusable() const noexcept { return unusable_; }    // a quantile was not finite: not judged, to be reported
  std::size_t crossings() const noexcept { return crossings_; }  // neighbouring levels whose quantiles stand in the wrong order

  double mean_pinball() const noexcept;  // over pairs and levels
  double pinball_at(std::size_t level) const noexcept;
  double crps() const noexcept { return 2 * mean_pinball(); }  // the quantile form of the continuous ranked probability score
  double wql_at(std::size_t level) const noexcept;             // 2 sum of pinball / sum of |truth|
  double mean_wql() const noexcept;                            // its mean over the levels
  double hit_rate_at(std::size_t level) const noexcept;        // share of truths at or below: equals the level where calibrated
  std::vector<IntervalMetrics> intervals() const;              // widest first

 private:
  struct Interval {
    std::size_t low, high, inside = 0, crossed = 0;
    double width = 0, score = 0;
  };
  std::vector<double> levels_, loss_;  // (levels)
  std::vector<std::size_t> hits_;      // (levels)
  std::vector<Interval> intervals_;
  std::size_t pairs_ = 0, missing_ = 0, unusable_ = 0, crossings_ = 0;
  double truth_size_ = 0;
};

// CRPS of an ensemble: mean |x - y| - 1/2 mean |x - x'| over all pairs (Gneiting and Raftery 2007, equation 21). Sorts `samples`.
double crps_sample(double truth, std::span<double> samples) noexcept;

// CRPS of a normal distribution in closed form (Gneiting et al. 2005, equation 5); deviation > 0.
double crps_normal(double truth, double mean, double deviation) noexcept;

}  // namespace kizzasi
