#include "kizzasi/decode/conformal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kizzasi {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kRounding = 1e-12;  // (n + 1)(1 - 0.1) must not become a hair more than 9 and then 10

}  // namespace

double conformal_radius(std::span<const double> sorted, double alpha) noexcept {
  const auto n = static_cast<double>(sorted.size());
  const double rank = std::ceil((n + 1) * (1 - alpha) - kRounding);
  if (alpha <= 0 || rank > n) return kInfinite;
  if (alpha >= 1 || rank < 1) return -kInfinite;
  return sorted[static_cast<std::size_t>(rank) - 1];
}

double conformal_shift(std::span<const double> sorted_errors, double level) noexcept {
  const std::size_t n = sorted_errors.size();
  if (level == 0.5 && n > 0) return (sorted_errors[(n - 1) / 2] + sorted_errors[n / 2]) / 2;
  if (level > 0.5) return conformal_radius(sorted_errors, 1 - level);
  const double rank = std::floor((static_cast<double>(n) + 1) * level + kRounding);
  return rank < 1 ? -kInfinite : sorted_errors[static_cast<std::size_t>(rank) - 1];
}

double weighted_conformal_radius(std::span<const double> scores, std::span<const double> weights, double alpha) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  const double total = std::accumulate(weights.begin(), weights.end(), 1.0);
  double cumulated = 0;
  for (const std::size_t i : order) {
    cumulated += weights[i];
    if (cumulated / total >= 1 - alpha - kRounding) return scores[i];
  }
  return kInfinite;
}

AdaptiveConformal::AdaptiveConformal(double alpha, double rate, std::size_t window)
    : target_(alpha), rate_(rate), current_(alpha), window_(window) {
  sorted_.reserve(window);
  ring_.reserve(window);
}

double AdaptiveConformal::radius() const noexcept { return conformal_radius(sorted_, current_); }

bool AdaptiveConformal::observe(double score) noexcept {
  if (std::isnan(score)) return false;
  const bool miss = score > radius();
  current_ += rate_ * (target_ - (miss ? 1.0 : 0.0));
  if (window_ == 0) return miss;
  if (ring_.size() == window_) {
    sorted_.erase(std::lower_bound(sorted_.begin(), sorted_.end(), ring_[oldest_]));
    ring_[oldest_] = score;
    oldest_ = (oldest_ + 1) % window_;
  } else {
    ring_.push_back(score);
  }
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), score), score);
  return miss;
}

}  // namespace kizzasi
