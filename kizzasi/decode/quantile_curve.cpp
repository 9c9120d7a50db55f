#include "kizzasi/decode/quantile_curve.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

QuantileCurve::QuantileCurve(std::span<const double> levels, std::span<const double> values) noexcept : levels_(levels), values_(values) {
  const std::size_t n = levels.size();
  if (n < 2) return;
  lower_ = (values[1] - values[0]) / std::log(levels[1] / levels[0]);
  upper_ = (values[n - 1] - values[n - 2]) / std::log((1 - levels[n - 2]) / (1 - levels[n - 1]));
}

double QuantileCurve::quantile(double p) const noexcept {
  if (!(p >= 0 && p <= 1)) return kNan;
  const std::size_t n = levels_.size();
  // A tail of no width stays where it is, also at p = 0 and 1.
  if (p < levels_.front()) return lower_ == 0 ? values_.front() : values_.front() + lower_ * std::log(p / levels_.front());
  if (p > levels_.back()) return upper_ == 0 ? values_.back() : values_.back() - upper_ * std::log((1 - p) / (1 - levels_.back()));
  const std::size_t above = static_cast<std::size_t>(std::lower_bound(levels_.begin(), levels_.end(), p) - levels_.begin());
  if (levels_[above] == p || n == 1) return values_[above];
  const double share = (p - levels_[above - 1]) / (levels_[above] - levels_[above - 1]);
  return std::lerp(values_[above - 1], values_[above], share);
}

double QuantileCurve::mean() const noexcept {
  // The integral of the quantile over p: trapezoids between the levels, and q_0 +- s over the tails.
  double sum = levels_.front() * (values_.front() - lower_) + (1 - levels_.back()) * (values_.back() + upper_);
  for (std::size_t i = 1; i < levels_.size(); ++i) sum += (levels_[i] - levels_[i - 1]) * 0.5 * (values_[i] + values_[i - 1]);
  return sum;
}

double QuantileCurve::cdf(double x) const noexcept {
  if (std::isnan(x) || std::isnan(values_.front()) || std::isnan(values_.back())) return kNan;
  if (x < values_.front()) return lower_ == 0 ? 0 : levels_.front() * std::exp((x - values_.front()) / lower_);
  if (x >= values_.back()) return upper_ == 0 ? 1 : 1 - (1 - levels_.back()) * std::exp(-(x - values_.back()) / upper_);
  const std::size_t above = static_cast<std::size_t>(std::upper_bound(values_.begin(), values_.end(), x) - values_.begin());
  const double share = (x - values_[above - 1]) / (values_[above] - values_[above - 1]);
  return levels_[above - 1] + share * (levels_[above] - levels_[above - 1]);
}

double QuantileCurve::log_density(double x) const noexcept {
  if (std::isnan(x)) return kNan;
  const std::size_t n = levels_.size();
  const double range = values_.back() - values_.front();
  const double narrowest = std::max(1e-9 * range, std::numeric_limits<double>::min());
  const auto tail = [&](double level, double scale, double distance) {
    const double s = std::max(scale, narrowest);
    return std::log(level / s) - distance / s;
  };
  if (n == 1) return x == values_[0] ? kInfinity : -kInfinity;
  if (x < values_.front()) return tail(levels_.front(), lower_, values_.front() - x);
  if (x >= values_.back()) return tail(1 - levels_.back(), upper_, x - values_.back());
  const std::size_t above = static_cast<std::size_t>(std::upper_bound(values_.begin(), values_.end(), x) - values_.begin());
  return std::log((levels_[above] - levels_[above - 1]) / std::max(values_[above] - values_[above - 1], narrowest));
}

}  // namespace kizzasi
