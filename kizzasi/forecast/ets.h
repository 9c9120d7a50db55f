// Exponential smoothing in state-space form: simple smoothing, Holt, Holt-Winters and their kin (Hyndman, Koehler, Ord and Snyder 2008).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

// Error, trend, season: "ANN" is simple smoothing, "AAN" Holt's, "AAA" and "AAM" Holt-Winters', "d" after the trend damps it.
struct EtsForm {
  enum class Season { kNone, kAdditive, kMultiplicative };
  bool multiplicative_error = false;
  bool trend = false, damped = false;
  Season season = Season::kNone;

  std::string text() const;
  static Result<EtsForm> from(std::string_view text, std::string_view where);
  friend bool operator==(const EtsForm&, const EtsForm&) = default;
};

struct EtsState {
  double level = 0, trend = 0;
  std::vector<double> season;  // one number a slot; that of the first value first
};

struct EtsModel {
  EtsForm form;
  double alpha = 0.1, beta = 0, gamma = 0, phi = 1;  // of level, trend, season; damping
  EtsState start;                                    // before the first value
};

// With L = level + phi trend and mu = L + s or L s, the error is e = y - mu (multiplicative: (y - mu) / mu); level, trend and season move
// by alpha, beta and gamma times e (season M, error A: level and trend by e / s, season by e / L; error M: level and trend by L e, season
// by s e). Multiplicative errors beside additive seasons move all three by mu e.
struct EtsRun {
  std::vector<double> fitted;  // (n) one step ahead
  double sum_of_squared_errors = 0;
  double log_likelihood = 0;  // Gaussian, variance at its best value; minus infinity where the recursion broke down
  EtsState end;               // season: that of the first value still first
};
// A missing value (NaN) moves nothing and its error is left out. Thread: any.
EtsRun ets_run(const EtsModel& model, std::span<const double> y);

// The end state and the log-likelihood only, without allocation beyond the state.
double ets_log_likelihood(const EtsModel& model, std::span<const double> y, EtsState& state);

// Steps after the last of n values whose run ended in `end`.
void ets_forecast(const EtsModel& model, const EtsState& end, std::size_t n, std::span<double> out) noexcept;

// Textbook Holt-Winters (additive or multiplicative season): the trend's weight beta* smooths changes of the level, beta = alpha beta*.
EtsModel holt_winters(bool multiplicative, double alpha, double beta_star, double gamma, EtsState start);

// A start for the recursion from the first seasons of y: slot means for the season, a line through them for level and trend.
EtsState ets_start(EtsForm form, std::span<const double> y, std::size_t season);

// Weights and start of the greatest likelihood within 1e-4 <= alpha <= 0.9999, beta <= alpha, gamma <= 1 - alpha, 0.8 <= phi <= 0.98.
// Seasons of more than 48 slots start as ets_start() says; only weights, level and trend are fitted then.
// An error where y has fewer values than the form has parameters and two more, is constant in a form that needs a spread, or is not
// positive where the form multiplies.
Result<EtsModel> ets_fit(EtsForm form, std::span<const double> y, std::size_t season);

// Akaike's criterion with the correction for few values (Hurvich and Tsai 1989); the error's variance counts as a parameter.
double ets_aicc(const EtsModel& model, double log_likelihood, std::size_t n) noexcept;

// The fitted form of the least AICc: all of error A or M, trend N, A or Ad, season N, A or M, without additive errors on multiplicative
// seasons (unstable); multiplicative ones only where all values are positive; seasonal ones only with season > 1 and two full seasons.
Result<EtsModel> ets_select(std::span<const double> y, std::size_t season);

}  // namespace kizzasi
