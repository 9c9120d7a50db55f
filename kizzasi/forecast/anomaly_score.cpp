#include "kizzasi/forecast/anomaly_score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kLeastProbability = 1e-300;
constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Mass beyond a point `distance` outside the outermost quantile, of which `outer` lies outside and `inner` outside its neighbour, `apart`
// away.
double exponential_tail(double distance, double outer, double inner, double apart, double least_scale) {
  const double scale = std::max(apart / std::log(inner / outer), least_scale);
  return outer * std::exp(-distance / scale);
}

}  // namespace

double tail_probability(double value, std::span<const double> levels, std::span<const double> quantiles, double least_scale) noexcept {
  const std::size_t n = levels.size();
  if (std::isnan(value) || std::any_of(quantiles.begin(), quantiles.end(), [](double q) { return std::isnan(q); })) return kUnknown;
  double one_sided = 0;
  if (value > quantiles[n - 1]) {
    one_sided =
        exponential_tail(value - quantiles[n - 1], 1 - levels[n - 1], 1 - levels[n - 2], quantiles[n - 1] - quantiles[n - 2], least_scale);
  } else if (value < quantiles[0]) {
    one_sided = exponential_tail(quantiles[0] - value, levels[0], levels[1], quantiles[1] - quantiles[0], least_scale);
  } else {
    // Where several quantiles are equal, all of their levels belong to the value; the one nearest to the middle counts.
    const auto first = static_cast<std::size_t>(std::lower_bound(quantiles.begin(), quantiles.end(), value) - quantiles.begin());
    const auto after = static_cast<std::size_t>(std::upper_bound(quantiles.begin(), quantiles.end(), value) - quantiles.begin());
    if (first < after) {
      one_sided = std::min(levels[after - 1], 1 - levels[first]);
    } else {
      const double share = (value - quantiles[first - 1]) / (quantiles[first] - quantiles[first - 1]);
      const double below = levels[first - 1] + share * (levels[first] - levels[first - 1]);
      one_sided = std::min(below, 1 - below);
    }
  }
  return std::clamp(2 * one_sided, kLeastProbability, 1.0);
}

double combined_surprise(std::span<const double> tail_probabilities) noexcept {
  double sum = 0;
  std::size_t terms = 0;
  for (const double p : tail_probabilities) {
    if (std::isnan(p)) continue;
    sum += 1 / p;
    ++terms;
  }
  return terms > 0 ? std::log10(sum / static_cast<double>(terms)) : kUnknown;
}

}  // namespace kizzasi
