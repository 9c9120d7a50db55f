#include "kizzasi/forecast/quantization_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/forecast/model_forecaster.h"
#include "kizzasi/signal/metrics.h"

namespace kizzasi {
namespace {

// What both forms came to for one target.
struct Judged {
  PointMetrics exact, rounded;
  std::vector<QuantileMetrics> exact_quantiles, rounded_quantiles;  // one each, or none
  double moved = 0;
  std::size_t values = 0;
};

void add(const ForecastBlock& block, const Series& series, std::size_t origin, std::size_t channel, std::size_t target,
         PointMetrics& points, std::vector<QuantileMetrics>& quantiles) {
  if (quantiles.empty() && !block.levels.empty()) quantiles.emplace_back(block.levels);
  std::vector<double> curve(block.levels.size());
  for (std::size_t h = 0; h < block.horizon; ++h) {
    const double truth = series.at(origin + h, channel);
    points.add(truth, block.point(h, target));
    if (quantiles.empty()) continue;
    for (std::size_t l = 0; l < curve.size(); ++l) curve[l] = block.quantile(l, h, target);
    quantiles.front().add(truth, curve);
  }
}

double rise(double exact, double rounded) {
  if (exact > 0) return rounded / exact - 1;
  return rounded > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace

Result<QuantizationLoss> quantization_loss(std::span<const Series> recording, std::shared_ptr<const Predictor> exact,
                                           std::shared_ptr<const Predictor> rounded, double share, std::size_t most) {
  const std::size_t horizon = exact->horizon(), targets = exact->targets();
  std::vector<std::pair<const Series*, std::size_t>> origins;
  for (const Series& series : recording) {
    const auto first = std::max(static_cast<std::size_t>(static_cast<double>(series.rows()) * (1 - share)), std::size_t{1});
    for (std::size_t origin = first; origin + horizon <= series.rows(); ++origin) origins.emplace_back(&series, origin);
  }
  if (origins.empty()) {
    return fail({Fault::kBadInput, fmt::format("no forecast of {} steps fits into the last {:.0f} % of it", horizon, 100 * share),
                 "recording", fmt::format("at least {:.0f} rows", std::ceil(static_cast<double>(horizon) / share)),
                 "Give a longer recording."});
  }
  const std::size_t count = std::min(most, origins.size());
  const auto whole = model_forecaster("exact", exact), small = model_forecaster("rounded", rounded);
  std::vector<Judged> judged(targets);
  ForecastBlock theirs, ours;
  for (std::size_t i = 0; i < count; ++i) {
    const auto [series, origin] = origins[count == 1 ? 0 : i * (origins.size() - 1) / (count - 1)];
    if (auto done = whole->forecast(*series, origin, horizon, theirs); !done) return fail(done.error());
    if (auto done = small->forecast(*series, origin, horizon, ours); !done) return fail(done.error());
    for (std::size_t t = 0; t < targets; ++t) {
      Judged& j = judged[t];
      add(theirs, *series, origin, exact->order()[t], t, j.exact, j.exact_quantiles);
      add(ours, *series, origin, exact->order()[t], t, j.rounded, j.rounded_quantiles);
      for (std::size_t h = 0; h < horizon; ++h, ++j.values) j.moved += std::abs(theirs.point(h, t) - ours.point(h, t));
    }
  }
  QuantizationLoss result;
  result.forecasts = count;
  for (std::size_t t = 0; t < targets; ++t) {
    const Judged& j = judged[t];
    const std::string& name = exact->schema().channels[exact->order()[t]].name;
    if (j.exact.pairs() == 0 || j.exact.unusable() + j.rounded.unusable() > 0) {
      return fail({Fault::kBadInput,
                   j.exact.pairs() == 0 ? "nothing was measured that could be judged"
                                        : fmt::format("{} forecasts are not finite", j.exact.unusable() + j.rounded.unusable()),
                   fmt::format("channel '{}'", name), "measured values and finite forecasts", ""});
    }
    QuantizationLoss::OfTarget of{name,         j.exact.mae(), j.rounded.mae(),
                                  std::nan(""), std::nan(""),  j.moved / static_cast<double>(j.values)};
    if (!j.exact_quantiles.empty()) {
      of.exact_crps = j.exact_quantiles.front().crps();
      of.rounded_crps = j.rounded_quantiles.front().crps();
    }
    const bool spread = std::isfinite(of.exact_crps) && std::isfinite(of.rounded_crps);
    result.loss += (spread ? rise(of.exact_crps, of.rounded_crps) : rise(of.exact_mae, of.rounded_mae)) / static_cast<double>(targets);
    result.targets.push_back(of);
  }
  return result;
}

}  // namespace kizzasi
