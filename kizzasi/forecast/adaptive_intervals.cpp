#include "kizzasi/forecast/adaptive_intervals.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kizzasi/decode/correction.h"

namespace kizzasi {
namespace {

// Linear between the levels, the outermost values beyond them.
double between(std::span<const double> levels, std::span<const double> values, double level) {
  const auto above = static_cast<std::size_t>(std::lower_bound(levels.begin(), levels.end(), level) - levels.begin());
  if (above == 0) return values.front();
  if (above == levels.size()) return values.back();
  const double share = (level - levels[above - 1]) / (levels[above] - levels[above - 1]);
  return values[above - 1] + share * (values[above] - values[above - 1]);
}

}  // namespace

AdaptiveIntervals::AdaptiveIntervals(std::vector<double> wanted, std::size_t targets, double rate)
    : wanted_(std::move(wanted)), targets_(targets), rate_(rate), kept_(targets * wanted_.size(), 0.0) {}

void AdaptiveIntervals::apply(ForecastBlock& block) const {
  const std::size_t cells = block.points.size();
  std::vector<double> values(block.levels.size()), quantiles(wanted_.size() * cells);
  for (std::size_t cell = 0; cell < cells; ++cell) {
    for (std::size_t q = 0; q < values.size(); ++q) values[q] = block.quantiles[q * cells + cell];
    const double* kept = kept_.data() + cell % targets_ * wanted_.size();
    double least = -INFINITY;  // levels adapt one by one and might pass each other
    for (std::size_t q = 0; q < wanted_.size(); ++q) {
      least = std::max(least, between(block.levels, values, adapted_level(wanted_[q], kept[q])));
      quantiles[q * cells + cell] = least;
    }
  }
  block.levels = wanted_;
  block.quantiles = std::move(quantiles);
}

void AdaptiveIntervals::learn(std::size_t target, std::size_t horizon, std::span<const double> quantiles, double truth) {
  if (!std::isfinite(truth)) return;
  double* kept = kept_.data() + target * wanted_.size();
  for (std::size_t q = 0; q < wanted_.size(); ++q) {
    kept[q] = adapted(kept[q], rate_ / static_cast<double>(horizon), wanted_[q], truth <= quantiles[q]);
  }
}

}  // namespace kizzasi
