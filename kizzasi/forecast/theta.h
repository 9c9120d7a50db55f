// The Theta method (Assimakopoulos and Nikolopoulos 2000) in the state-space forms of Fiorucci et al. 2016.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

enum class ThetaKind {
  kStandard,          // stm: theta = 2
  kOptimised,         // otm: theta fitted
  kDynamicOptimised,  // dotm: theta fitted, the line fitted anew at every step to the values so far
};

const char* to_string(ThetaKind kind);  // "theta_stm", "theta_otm", "theta_dotm"

// With w = 1 - 1 / theta, a = alpha and level l before value t (t from 0):
//   mu_t = l + w (A (1-a)^t + B (1 - (1-a)^(t+1)) / a),   l <- a y_t + (1-a) l
// stm, otm: A and B are the least-squares intercept and slope of the values on 1..n; dotm: of those seen so far (mu_0 = y_0, A = y_0,
// B = 0 at the start). Beyond the data mu takes the place of y.
struct ThetaModel {
  ThetaKind kind = ThetaKind::kStandard;
  double alpha = 0.5, theta = 2, level = 0;  // level: before the first value
  std::vector<double> season;                // indices that were taken out, slot of the first value first; empty: none
  bool multiplicative = true;                // how they were
};

// Forecasts after the last value. Thread: any.
void theta_forecast(const ThetaModel& model, std::span<const double> y, std::span<double> out);

// Sum of squared one-step errors of y without its season, from the fourth value on, over the mean absolute value: what is minimised.
double theta_criterion(const ThetaModel& model, std::span<const double> y);

// The least criterion with 0.1 <= alpha <= 0.99, theta >= 1. The season is taken out by classical decomposition (multiplicative where all
// values are positive and no index is below 0.01, else additive) where the autocorrelation at its lag is significant at 90 %.
// An error where y has fewer than 4 values or a missing one.
Result<ThetaModel> theta_fit(ThetaKind kind, std::span<const double> y, std::size_t season);

// Indices of a season by classical decomposition: the slot means of what a centred moving average leaves, scaled to a mean of 1 (or 0).
// y: at least two seasons.
std::vector<double> seasonal_indices(std::span<const double> y, std::size_t season, bool multiplicative);

// The first form of the method: simple smoothing started with y[0] plus half the slope of the line through all values,
// b/2 (h - 1 + 1/alpha - (1 - alpha)^n / alpha).
void theta_classic(std::span<const double> y, double alpha, double slope, std::span<double> out) noexcept;
double slope_on_time(std::span<const double> y) noexcept;
// The weight in [1e-4, 0.9999] of the least squared one-step errors of simple smoothing started with y[0].
double smoothing_weight(std::span<const double> y);

}  // namespace kizzasi
