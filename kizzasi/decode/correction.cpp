#include "kizzasi/decode/correction.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/decode/conformal.h"

namespace kizzasi {
namespace {

double pinball(double truth, double quantile, double level) noexcept {
  return truth >= quantile ? level * (truth - quantile) : (1 - level) * (quantile - truth);
}

// The conformal quantile of the scores, kept finite: where there are too few for the level, the outermost one seen.
double conformal_quantile(std::vector<double> scores, double level) {
  std::sort(scores.begin(), scores.end());
  return std::clamp(conformal_shift(scores, level), scores.front(), scores.back());
}

struct Candidate {
  double stretch = 1, shift = 0;
};

}  // namespace

double corrected_quantile(const Calibration& c, std::size_t step, std::size_t target, double level, double median,
                          double quantile) noexcept {
  if (c.empty()) return quantile;
  const std::size_t above = static_cast<std::size_t>(std::lower_bound(c.levels.begin(), c.levels.end(), level) - c.levels.begin());
  const std::size_t high = std::min(above, c.levels.size() - 1), low = above == 0 || c.levels[high] <= level ? high : above - 1;
  const double share = low == high ? 0 : (level - c.levels[low]) / (c.levels[high] - c.levels[low]);
  const std::size_t a = c.index(step, target, low), b = c.index(step, target, high);
  return median + std::lerp(c.stretch[a], c.stretch[b], share) * (quantile - median) + std::lerp(c.shift[a], c.shift[b], share);
}

double adapted(double kept, double rate, double level, bool truth_below) noexcept {
  constexpr double kFarthest = 25;  // log-odds: a level of 1e-11
  return std::clamp(kept + rate * (level - (truth_below ? 1 : 0)) / (level * (1 - level)), -kFarthest, kFarthest);
}

double adapted_level(double level, double kept) noexcept {
  if (kept == 0 || level == 0.5) return level;
  const double moved = 1 / (1 + (1 - level) / level * std::exp(-kept));
  return level < 0.5 ? std::min(moved, 0.5) : std::clamp(moved, 0.5, 1 - 1e-12);
}

CalibrationFit::CalibrationFit(std::vector<double> levels, std::size_t horizon, std::size_t targets)
    : levels_(std::move(levels)), horizon_(horizon), targets_(targets), seen_(horizon * targets) {}

void CalibrationFit::add(std::size_t step, std::size_t target, double median, std::span<const double> quantiles, double truth) {
  if (!std::isfinite(median) || !std::isfinite(truth)) return;
  if (!std::all_of(quantiles.begin(), quantiles.end(), [](double q) { return std::isfinite(q); })) return;
  Seen& seen = seen_[step * targets_ + target];
  seen.median.push_back(median);
  seen.truth.push_back(truth);
  seen.quantiles.insert(seen.quantiles.end(), quantiles.begin(), quantiles.end());
}

Calibration CalibrationFit::finish(double rate) const {
  const std::size_t n_levels = levels_.size();
  Calibration c{levels_,
                horizon_,
                targets_,
                std::vector<double>(horizon_ * targets_ * n_levels, 1.0),
                std::vector<double>(horizon_ * targets_ * n_levels, 0.0),
                0,
                rate};
  for (std::size_t cell = 0; cell < seen_.size(); ++cell) {
    const Seen& seen = seen_[cell];
    const std::size_t n = seen.truth.size();
    c.windows = std::max(c.windows, static_cast<std::int64_t>(n));
    if (n == 0) continue;
    for (std::size_t l = 0; l < n_levels; ++l) {
      const double level = levels_[l];
      if (level == 0.5) continue;
      const auto quantile = [&](std::size_t i) { return seen.quantiles[i * n_levels + l]; };
      std::vector<double> errors(n), ratios;
      for (std::size_t i = 0; i < n; ++i) {
        errors[i] = seen.truth[i] - quantile(i);
        const double distance = quantile(i) - seen.median[i];
        if (distance != 0) ratios.push_back((seen.truth[i] - seen.median[i]) / distance);
      }
      std::vector<Candidate> candidates{{1, conformal_quantile(errors, level)}};
      if (ratios.size() == n) {
        // Below the median the distance is negative, so the share of truths below the quantile is that of ratios above the stretch.
        candidates.push_back({std::max(0.0, conformal_quantile(ratios, std::max(level, 1 - level))), 0});
      }
      double least = 0;
      for (std::size_t k = 0; k < candidates.size(); ++k) {
        double loss = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double q = seen.median[i] + candidates[k].stretch * (quantile(i) - seen.median[i]) + candidates[k].shift;
          loss += pinball(seen.truth[i], q, level);
        }
        if (k > 0 && !(loss < least)) continue;
        least = loss;
        c.stretch[cell * n_levels + l] = candidates[k].stretch;
        c.shift[cell * n_levels + l] = candidates[k].shift;
      }
    }
  }
  return c;
}

}  // namespace kizzasi
