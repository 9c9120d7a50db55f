#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "kizzasi/forecast/ets.h"
#include "kizzasi/forecast/minimise.h"

namespace kizzasi {
namespace {

using Season = EtsForm::Season;

constexpr double kLeast = 1e-4, kMost = 0.9999;  // of the smoothing weights
constexpr double kLeastPhi = 0.8, kMostPhi = 0.98;
constexpr std::size_t kMostFreeSlots = 48;  // longer seasons start as estimated: their start fades, and fitting it takes long

// The likelihood has several valleys: where the descent begins decides which one it finds.
struct Start {
  double alpha;
  bool trend, season;  // as estimated from the first seasons; else none and the first value
};
constexpr std::array<Start, 4> kStarts{{{0.5, true, true}, {0.05, false, true}, {0.95, true, true}, {0.5, false, false}}};

double squash(double free, double low, double high) { return low + (high - low) / (1 + std::exp(-free)); }
double stretch(double value, double low, double high) {
  const double share = std::clamp((value - low) / (high - low), 1e-3, 1 - 1e-3);
  return std::log(share / (1 - share));
}

double mean_of(std::span<const double> y) {
  double sum = 0;
  std::size_t terms = 0;
  for (const double v : y) {
    if (std::isnan(v)) continue;
    sum += v;
    ++terms;
  }
  return terms > 0 ? sum / static_cast<double>(terms) : 0;
}

double deviation_of(std::span<const double> y) {
  const double mean = mean_of(y);
  double squares = 0;
  std::size_t terms = 0;
  for (const double v : y) {
    if (std::isnan(v)) continue;
    squares += (v - mean) * (v - mean);
    ++terms;
  }
  return terms > 0 ? std::sqrt(squares / static_cast<double>(terms)) : 0;
}

// The model as free variables of size about 1, so that every point of space is a legal model.
// Of the seasons one slot follows from the others: they add up to 0 (multiplied ones: to their number).
class Coordinates {
 public:
  Coordinates(EtsForm form, std::size_t season, double unit)
      : form_(form), slots_(form.season == Season::kNone ? 0 : season), free_slots_(slots_ > kMostFreeSlots ? 0 : slots_), unit_(unit) {}

  std::vector<double> free(const EtsModel& model) const {
    std::vector<double> x{stretch(model.alpha, kLeast, kMost)};
    if (form_.trend) x.push_back(stretch(model.beta, kLeast, model.alpha));
    if (slots_ > 0) x.push_back(stretch(model.gamma, kLeast, 1 - model.alpha));
    if (form_.damped) x.push_back(stretch(model.phi, kLeastPhi, kMostPhi));
    x.push_back(model.start.level / unit_);
    if (form_.trend) x.push_back(model.start.trend / trend_unit());
    for (std::size_t s = 0; s + 1 < free_slots_; ++s) x.push_back(model.start.season[s] / season_unit());
    return x;
  }

  void model(std::span<const double> x, EtsModel& out) const {
    std::size_t i = 0;
    out.form = form_;
    out.alpha = squash(x[i++], kLeast, kMost);
    if (form_.trend) out.beta = squash(x[i++], kLeast, std::max(out.alpha, kLeast));
    if (slots_ > 0) out.gamma = squash(x[i++], kLeast, std::max(1 - out.alpha, kLeast));
    if (form_.damped) out.phi = squash(x[i++], kLeastPhi, kMostPhi);
    out.start.level = x[i++] * unit_;
    if (form_.trend) out.start.trend = x[i++] * trend_unit();
    if (free_slots_ == 0) return;  // none, or kept as `out` has it
    out.start.season.resize(slots_);
    double last = form_.season == Season::kMultiplicative ? static_cast<double>(slots_) : 0;
    for (std::size_t s = 0; s + 1 < slots_; ++s) {
      out.start.season[s] = x[i++] * season_unit();
      last -= out.start.season[s];
    }
    out.start.season.back() = last;
  }

 private:
  double season_unit() const { return form_.season == Season::kMultiplicative ? 0.3 : unit_; }
  double trend_unit() const { return 0.1 * unit_; }

  EtsForm form_;
  std::size_t slots_, free_slots_;
  double unit_;
};

std::size_t parameters(EtsForm form, std::size_t slots) {
  return 2 + (form.trend ? 2u : 0u) + (form.damped ? 1u : 0u) + (form.season == Season::kNone ? 0 : slots);
}

std::optional<std::string> unfit(EtsForm form, std::span<const double> y, std::size_t season) {
  const bool seasonal = form.season != Season::kNone;
  std::size_t present = 0;
  bool positive = true;
  for (const double v : y) {
    present += std::isnan(v) ? 0 : 1;
    positive &= !(v <= 0);
  }
  if (seasonal && season < 2) return "a seasonal form needs a season of at least 2";
  if (seasonal && y.size() < 2 * season) return fmt::format("{} values are fewer than two seasons of {}", y.size(), season);
  if (present < parameters(form, season) + 2)
    return fmt::format("{} values are too few for {} parameters", present, parameters(form, season));
  if (!positive && (form.multiplicative_error || form.season == Season::kMultiplicative))
    return "a form that multiplies needs positive values";
  if (!(deviation_of(y) > 0)) return "the values are constant";
  return std::nullopt;
}

}  // namespace

EtsState ets_start(EtsForm form, std::span<const double> y, std::size_t season) {
  EtsState start;
  const bool seasonal = form.season != Season::kNone;
  const std::size_t length = seasonal ? season : std::clamp<std::size_t>(y.size() / 4, 1, 10);
  const std::size_t blocks = std::clamp<std::size_t>(y.size() / length, 1, seasonal ? 4 : 2);
  const double first = mean_of(y.first(std::min(length, y.size())));
  const double last = mean_of(y.subspan((blocks - 1) * length, std::min(length, y.size() - (blocks - 1) * length)));
  const double slope = blocks > 1 ? (last - first) / static_cast<double>((blocks - 1) * length) : 0;
  start.trend = form.trend ? slope : 0;
  start.level = first - start.trend * (static_cast<double>(length) + 1) / 2;
  if (!seasonal) return start;
  std::vector<double> slot_values;
  for (std::size_t s = 0; s < season; ++s) {
    slot_values.clear();
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::size_t at = b * season + s;
      const double around = first + slope * (static_cast<double>(at) - (static_cast<double>(season) - 1) / 2);
      slot_values.push_back(form.season == Season::kMultiplicative ? y[at] / around : y[at] - around);
    }
    start.season.push_back(mean_of(slot_values));
  }
  const double centre = mean_of(start.season);
  for (double& s : start.season) s = form.season == Season::kMultiplicative ? s / centre : s - centre;
  return start;
}

Result<EtsModel> ets_fit(EtsForm form, std::span<const double> y, std::size_t season) {
  if (const auto why = unfit(form, y, season)) {
    return fail({Fault::kBadInput, *why, fmt::format("ETS {}", form.text()), "a longer series or another form", ""});
  }
  const Coordinates coordinates(form, season, deviation_of(y));
  EtsModel trial, best;
  EtsState state;
  double least = std::numeric_limits<double>::infinity();
  const auto cost = [&](std::span<const double> x) {
    coordinates.model(x, trial);
    return -ets_log_likelihood(trial, y, state);
  };
  for (const auto& [alpha, with_trend, with_season] : kStarts) {
    EtsModel from{form, alpha, 0.1 * alpha, 0.1 * (1 - alpha), form.damped ? 0.9 : 1, ets_start(form, y, season)};
    if (!with_trend) from.start.trend = 0;
    if (!with_season) {
      from.start.level = y[0];
      std::fill(from.start.season.begin(), from.start.season.end(), form.season == Season::kMultiplicative ? 1.0 : 0.0);
    }
    trial.start.season = from.start.season;
    std::vector<double> x = coordinates.free(from);
    const double value = minimise(cost, x);
    if (!(value < least)) continue;
    least = value;
    best.start.season = from.start.season;
    coordinates.model(x, best);
  }
  if (!std::isfinite(least)) {
    return fail(
        {Fault::kBadInput, "no start gives a finite likelihood", fmt::format("ETS {}", form.text()), "values of an ordinary size", ""});
  }
  return best;
}

double ets_aicc(const EtsModel& model, double log_likelihood, std::size_t n) noexcept {
  const auto p = static_cast<double>(parameters(model.form, model.start.season.size()) + 1);
  return -2 * log_likelihood + 2 * p + 2 * p * (p + 1) / (static_cast<double>(n) - p - 1);
}

Result<EtsModel> ets_select(std::span<const double> y, std::size_t season) {
  Result<EtsModel> best = fail({Fault::kBadInput, "no form fits these values", "ETS", "a longer series that is not constant", ""});
  double least = std::numeric_limits<double>::infinity();
  EtsState state;
  for (const bool multiplicative : {false, true}) {
    for (const Season each : {Season::kNone, Season::kAdditive, Season::kMultiplicative}) {
      if (!multiplicative && each == Season::kMultiplicative) continue;
      for (const auto& [trend, damped] : {std::pair{false, false}, std::pair{true, false}, std::pair{true, true}}) {
        auto model = ets_fit({multiplicative, trend, damped, each}, y, season);
        if (!model) continue;
        const double criterion = ets_aicc(*model, ets_log_likelihood(*model, y, state), y.size());
        if (!(criterion < least)) continue;
        least = criterion;
        best = std::move(model);
      }
    }
  }
  return best;
}

}  // namespace kizzasi
