#include "kizzasi/forecast/ets.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

namespace kizzasi {
namespace {

using Season = EtsForm::Season;

constexpr double kBroken = -std::numeric_limits<double>::infinity();

struct Errors {
  double squares = 0, log_means = 0;
  std::size_t terms = 0;
};

// One pass of the recursion; `see(t, mu)` is told every one-step mean.
template <typename See>
Errors recurse(const EtsModel& model, std::span<const double> y, EtsState& state, See see) {
  const bool trend = model.form.trend, multiplied = model.form.season == Season::kMultiplicative;
  const std::size_t slots = state.season.size();
  Errors errors;
  std::size_t slot = 0;
  for (std::size_t t = 0; t < y.size(); ++t) {
    const double carried = trend ? model.phi * state.trend : 0;
    const double level = state.level + carried;
    double* season = slots > 0 ? &state.season[slot] : nullptr;
    const double mu = season == nullptr ? level : multiplied ? level * *season : level + *season;
    see(t, mu);
    double error = 0, of_level = 0, of_season = 0;
    if (!std::isnan(y[t])) {
      error = model.form.multiplicative_error ? (y[t] - mu) / mu : y[t] - mu;
      const double absolute = y[t] - mu;
      of_level = multiplied ? absolute / *season : absolute;
      of_season = multiplied ? absolute / level : absolute;
      errors.squares += error * error;
      if (model.form.multiplicative_error) errors.log_means += std::log(std::abs(mu));
      ++errors.terms;
    }
    state.level = level + model.alpha * of_level;
    if (trend) state.trend = carried + model.beta * of_level;
    if (season != nullptr) *season += model.gamma * of_season;
    if (slots > 0 && ++slot == slots) slot = 0;
  }
  return errors;
}

double log_likelihood_of(const Errors& errors) {
  const auto n = static_cast<double>(errors.terms);
  const double value = -0.5 * n * (std::log(2 * std::numbers::pi * errors.squares / n) + 1) - errors.log_means;
  return std::isnan(value) ? kBroken : value;
}

}  // namespace

std::string EtsForm::text() const {
  const char* seasons[] = {"N", "A", "M"};
  return fmt::format("{}{}{}{}", multiplicative_error ? "M" : "A", trend ? "A" : "N", damped ? "d" : "",
                     seasons[static_cast<std::size_t>(season)]);
}

Result<EtsForm> EtsForm::from(std::string_view text, std::string_view where) {
  for (const bool error : {false, true}) {
    for (const bool trended : {false, true}) {
      for (const bool damp : {false, true}) {
        for (const Season each : {Season::kNone, Season::kAdditive, Season::kMultiplicative}) {
          const EtsForm form{error, trended, damp, each};
          if ((trended || !damp) && form.text() == text) return form;
        }
      }
    }
  }
  return fail({Fault::kBadUse, fmt::format("'{}' is no form of exponential smoothing", text), std::string(where),
               "error A or M, trend N, A or Ad, season N, A or M", "For example AAdA."});
}

EtsRun ets_run(const EtsModel& model, std::span<const double> y) {
  EtsRun run;
  run.end = model.start;
  run.fitted.resize(y.size());
  const Errors errors = recurse(model, y, run.end, [&](std::size_t t, double mu) { run.fitted[t] = mu; });
  run.sum_of_squared_errors = errors.squares;
  run.log_likelihood = log_likelihood_of(errors);
  return run;
}

double ets_log_likelihood(const EtsModel& model, std::span<const double> y, EtsState& state) {
  state = model.start;
  return log_likelihood_of(recurse(model, y, state, [](std::size_t, double) {}));
}

void ets_forecast(const EtsModel& model, const EtsState& end, std::size_t n, std::span<double> out) noexcept {
  double level = end.level, damping = model.phi;
  for (std::size_t h = 0; h < out.size(); ++h) {
    if (model.form.trend) level += damping * end.trend;
    damping *= model.phi;
    out[h] = level;
    if (end.season.empty()) continue;
    const double season = end.season[(n + h) % end.season.size()];
    out[h] = model.form.season == Season::kMultiplicative ? level * season : level + season;
  }
}

EtsModel holt_winters(bool multiplicative, double alpha, double beta_star, double gamma, EtsState start) {
  const EtsForm form{false, true, false, multiplicative ? Season::kMultiplicative : Season::kAdditive};
  return {form, alpha, alpha * beta_star, gamma, 1, std::move(start)};
}

}  // namespace kizzasi
