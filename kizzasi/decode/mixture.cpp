#include "kizzasi/decode/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/decode/standard_laws.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

double NormalMixture::cdf(double x) const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * normal_cdf((x - means_[i]) / scales_[i]);
  return sum;
}

double NormalMixture::above(double x) const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * normal_cdf((means_[i] - x) / scales_[i]);
  return sum;
}

double NormalMixture::mean() const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * means_[i];
  return sum;
}

double NormalMixture::log_density(double x) const noexcept {
  double top = -kInfinity;
  const auto term = [&](std::size_t i) {
    return std::log(weights_[i]) + normal_log_density((x - means_[i]) / scales_[i]) - std::log(scales_[i]);
  };
  for (std::size_t i = 0; i < weights_.size(); ++i) top = std::max(top, term(i));
  if (!std::isfinite(top)) return top;
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += std::exp(term(i) - top);
  return top + std::log(sum);
}

double NormalMixture::quantile(double p) const noexcept {
  const double z = normal_quantile(p);
  if (!std::isfinite(z)) return z;
  double low = kInfinity, high = -kInfinity;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const double q = means_[i] + scales_[i] * z;
    if (std::isnan(q) || std::isnan(weights_[i])) return std::numeric_limits<double>::quiet_NaN();
    low = std::min(low, q);
    high = std::max(high, q);
  }
  // Newton's steps, halving the bracket wherever one leaves it; in the upper half on the tail above, which does not cancel.
  const bool upper = p > 0.5;
  double x = 0.5 * (low + high);
  for (int i = 0; i < 200 && low < high; ++i) {
    const double miss = upper ? (1 - p) - above(x) : cdf(x) - p;
    if (miss == 0) break;
    (miss > 0 ? high : low) = x;
    double next = x - miss * std::exp(-log_density(x));
    // Every third step halves, so that a flat stretch between two components cannot hold it up.
    if (i % 3 == 2 || !(next > low && next < high)) next = low + 0.5 * (high - low);
    if (next == x || next == low || next == high) break;
    x = next;
  }
  return x;
}

double NormalMixture::sample(Rng& rng) const noexcept {
  double u = rng.uniform();
  std::size_t i = 0;
  while (i + 1 < weights_.size() && u >= weights_[i]) u -= weights_[i++];
  return means_[i] + scales_[i] * rng.normal();
}

}  // namespace kizzasi
