#include "kizzasi/solve/uncertain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kizzasi::solve {
namespace {

constexpr std::size_t kMostAxes = 64;
constexpr std::int64_t kMostScenarios = 1'000'000'000;

double dot(std::span<const double> a, std::span<const double> b) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double density(double z) noexcept { return std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi); }
double distribution(double z) noexcept { return std::erfc(-z / std::numbers::sqrt2) / 2; }

}  // namespace

double standard_normal_quantile(double p) noexcept {
  if (!(p > 0)) return -std::numeric_limits<double>::infinity();
  if (!(p < 1)) return std::numeric_limits<double>::infinity();
  if (p > 0.5) return -standard_normal_quantile(1 - p);  // the lower tail is where erfc keeps its digits
  double low = -40, high = 0;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (distribution(middle) < p ? low : high) = middle;
  }
  double z = (low + high) / 2;
  const double slope = density(z);
  if (slope > 0) z -= (distribution(z) - p) / slope;
  return z;
}

double gaussian_limit(std::span<const double> x, std::span<const double> mean, std::span<const double> covariance, double confidence,
                      std::span<double> gradient) noexcept {
  const std::size_t n = x.size();
  double variance = 0;
  for (std::size_t i = 0; i < n; ++i) variance += x[i] * dot(covariance.subspan(i * n, n), x);
  const double z = standard_normal_quantile(confidence), deviation = std::sqrt(std::max(variance, 0.0));
  if (!gradient.empty()) {
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] = mean[i] + (deviation > 0 ? z * dot(covariance.subspan(i * n, n), x) / deviation : 0);
    }
  }
  return dot(mean, x) + z * deviation;
}

double box_limit(std::span<const double> x, std::span<const double> centre, std::span<const double> radius,
                 std::span<double> gradient) noexcept {
  double value = dot(centre, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    value += radius[i] * std::abs(x[i]);
    if (!gradient.empty()) gradient[i] = centre[i] + (x[i] > 0 ? radius[i] : x[i] < 0 ? -radius[i] : 0);
  }
  return value;
}

double ellipsoid_limit(std::span<const double> x, std::span<const double> centre, std::span<const double> shape,
                       std::span<double> gradient) noexcept {
  const std::size_t n = x.size(), axes = std::min(n == 0 ? 0 : shape.size() / n, kMostAxes);
  double along[kMostAxes] = {}, size = 0;
  for (std::size_t k = 0; k < axes; ++k) {
    for (std::size_t i = 0; i < n; ++i) along[k] += shape[i * axes + k] * x[i];
    size = std::hypot(size, along[k]);
  }
  if (!gradient.empty()) {
    for (std::size_t i = 0; i < n; ++i) {
      gradient[i] = centre[i];
      for (std::size_t k = 0; k < axes && size > 0; ++k) gradient[i] += shape[i * axes + k] * along[k] / size;
    }
  }
  return dot(centre, x) + size;
}

double polytope_limit(std::span<const double> x, std::span<const double> corners, std::span<double> gradient) noexcept {
  const std::size_t n = x.size();
  double worst = -std::numeric_limits<double>::infinity();
  for (std::size_t at = 0; n > 0 && at + n <= corners.size(); at += n) {
    const auto corner = corners.subspan(at, n);
    const double value = dot(corner, x);
    if (value <= worst) continue;
    worst = value;
    if (!gradient.empty()) std::copy(corner.begin(), corner.end(), gradient.begin());
  }
  return worst;
}

double conditional_value_at_risk(std::span<const double> losses, double alpha, std::span<double> scratch,
                                 std::span<double> weights) noexcept {
  const std::size_t n = losses.size();
  if (n == 0) return -std::numeric_limits<double>::infinity();
  std::copy(losses.begin(), losses.end(), scratch.begin());
  // The tail is (1 - alpha) n losses: whole ones above the value at risk, that one in part.
  const double tail = std::max((1 - alpha) * static_cast<double>(n), std::numeric_limits<double>::min());
  const auto whole = std::min(static_cast<std::size_t>(tail), n - 1);
  const auto at = scratch.begin() + static_cast<std::ptrdiff_t>(whole);
  std::nth_element(scratch.begin(), at, scratch.begin() + static_cast<std::ptrdiff_t>(n), [](double a, double b) { return a > b; });
  const double at_risk = *at, share = tail - static_cast<double>(whole);
  double sum = share * at_risk;
  for (std::size_t i = 0; i < whole; ++i) sum += scratch[i];
  if (!weights.empty()) {
    // Losses that tie at the value at risk carry what is left of the tail in equal parts.
    std::size_t above = 0, ties = 0;
    for (const double loss : losses) {
      above += loss > at_risk ? 1 : 0;
      ties += loss == at_risk ? 1 : 0;
    }
    const double rest = (tail - static_cast<double>(above)) / static_cast<double>(ties);
    for (std::size_t i = 0; i < n; ++i) weights[i] = (losses[i] > at_risk ? 1 : losses[i] == at_risk ? rest : 0) / tail;
  }
  return sum / tail;
}

double gaussian_conditional_value_at_risk(double mean, double deviation, double alpha) noexcept {
  if (alpha <= 0) return mean;
  return mean + deviation * density(standard_normal_quantile(alpha)) / (1 - alpha);
}

std::optional<std::int64_t> scenario_count(double violation, double confidence, std::int64_t variables) {
  if (!(violation > 0 && violation < 1) || !(confidence > 0 && confidence < 1) || variables < 1) return {};
  // Terms in logarithms: C(N, i) overflows long before N does.
  const auto breaks = [&](std::int64_t n) {
    if (n < variables) return true;
    double total = 0;
    for (std::int64_t i = 0; i < variables; ++i) {
      const auto count = static_cast<double>(n), k = static_cast<double>(i);
      total += std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) + k * std::log(violation) +
                        (count - k) * std::log1p(-violation));
    }
    return total > 1 - confidence;
  };
  std::int64_t low = variables - 1, high = variables;
  while (breaks(high)) {
    low = high;
    high *= 2;
    if (high > kMostScenarios) return {};
  }
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (breaks(middle) ? low : high) = middle;
  }
  return high;
}

}  // namespace kizzasi::solve
