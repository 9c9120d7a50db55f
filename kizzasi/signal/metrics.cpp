#include "kizzasi/signal/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace kizzasi {
namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
constexpr double kSameLevel = 1e-12;

double ratio(double sum, double by) noexcept { return by > 0 ? sum / by : kUndefined; }
double ratio(double sum, std::size_t terms) noexcept { return ratio(sum, static_cast<double>(terms)); }

}  // namespace

SeasonalScale seasonal_scale(std::span<const double> insample, std::size_t season) {
  double absolute = 0, squared = 0;
  std::size_t pairs = 0;
  for (std::size_t i = season; i < insample.size(); ++i) {
    const double difference = insample[i] - insample[i - season];
    if (std::isnan(difference)) continue;
    absolute += std::abs(difference);
    squared += difference * difference;
    ++pairs;
  }
  return {ratio(absolute, pairs), ratio(squared, pairs)};
}

void PointMetrics::add(double truth, double forecast) noexcept {
  if (std::isnan(truth)) {
    ++missing_;
    return;
  }
  if (!std::isfinite(forecast)) {
    ++unusable_;
    return;
  }
  ++pairs_;
  const double error = forecast - truth, size = std::abs(truth) + std::abs(forecast);
  error_ += error;
  absolute_ += std::abs(error);
  squared_ += error * error;
  truth_size_ += std::abs(truth);
  if (truth != 0) {
    ++mape_terms_;
    ratio_ += std::abs(error / truth);
  }
  if (size > 0) {
    ++smape_terms_;
    symmetric_ += std::abs(error) / size;
  }
  const double from_mean = truths_.deviation(truth);
  truths_.add(truth);
  forecasts_.add(forecast);
  product_ += from_mean * forecasts_.deviation(forecast);
}

void PointMetrics::merge(const PointMetrics& other) noexcept {
  missing_ += other.missing_;
  unusable_ += other.unusable_;
  if (other.pairs_ == 0) return;
  if (pairs_ > 0) {
    const auto n = static_cast<double>(pairs_), m = static_cast<double>(other.pairs_);
    product_ += truths_.mean_apart_from(other.truths_) * forecasts_.mean_apart_from(other.forecasts_) * (n * m / (n + m));
  }
  product_ += other.product_;
  truths_.merge(other.truths_);
  forecasts_.merge(other.forecasts_);
  pairs_ += other.pairs_;
  mape_terms_ += other.mape_terms_;
  smape_terms_ += other.smape_terms_;
  error_ += other.error_;
  absolute_ += other.absolute_;
  squared_ += other.squared_;
  truth_size_ += other.truth_size_;
  ratio_ += other.ratio_;
  symmetric_ += other.symmetric_;
}

double PointMetrics::mae() const noexcept { return ratio(absolute_, pairs_); }
double PointMetrics::mse() const noexcept { return ratio(squared_, pairs_); }
double PointMetrics::rmse() const noexcept { return std::sqrt(mse()); }
double PointMetrics::bias() const noexcept { return ratio(error_, pairs_); }
double PointMetrics::mape_percent() const noexcept { return 100 * ratio(ratio_, mape_terms_); }
double PointMetrics::smape_200_percent() const noexcept { return 200 * ratio(symmetric_, pairs_); }
double PointMetrics::smape_100_fraction() const noexcept { return ratio(symmetric_, pairs_); }
double PointMetrics::wape() const noexcept { return ratio(absolute_, truth_size_); }
double PointMetrics::r2() const noexcept { return 1 - ratio(squared_, truths_.squares()); }
double PointMetrics::correlation() const noexcept {
  const double truth = truths_.squares(), forecast = forecasts_.squares();
  const double both = truth > 0 && forecast > 0 ? std::sqrt(truth) * std::sqrt(forecast) : 0;
  return ratio(product_, both);
}
double PointMetrics::mase(const SeasonalScale& scale) const noexcept { return ratio(mae(), scale.absolute); }
double PointMetrics::rmsse(const SeasonalScale& scale) const noexcept { return std::sqrt(ratio(mse(), scale.squared)); }

double IntervalMetrics::msis(const SeasonalScale& scale) const noexcept { return ratio(winkler, scale.absolute); }

QuantileMetrics::QuantileMetrics(std::span<const double> levels)
    : levels_(levels.begin(), levels.end()), loss_(levels.size()), hits_(levels.size()) {
  for (std::size_t low = 0; low < levels_.size(); ++low) {
    for (std::size_t high = low + 1; high < levels_.size(); ++high) {
      if (std::abs(levels_[low] + levels_[high] - 1) < kSameLevel) intervals_.push_back({low, high});
    }
  }
}

void QuantileMetrics::add(double truth, std::span<const double> quantiles) noexcept {
  if (std::isnan(truth)) {
    ++missing_;
    return;
  }
  if (!std::all_of(quantiles.begin(), quantiles.end(), [](double q) { return std::isfinite(q); })) {
    ++unusable_;
    return;
  }
  ++pairs_;
  truth_size_ += std::abs(truth);
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    loss_[i] += pinball(truth, quantiles[i], levels_[i]);
    hits_[i] += truth <= quantiles[i] ? 1 : 0;
    crossings_ += i > 0 && quantiles[i] < quantiles[i - 1] ? 1 : 0;
  }
  for (Interval& interval : intervals_) {
    const double low = quantiles[interval.low], high = quantiles[interval.high];
    const double missed = std::max({low - truth, truth - high, 0.0});
    interval.inside += truth >= low && truth <= high ? 1 : 0;
    interval.crossed += low > high ? 1 : 0;
    interval.width += high - low;
    interval.score += high - low + missed / levels_[interval.low];
  }
}

void QuantileMetrics::merge(const QuantileMetrics& other) noexcept {
  pairs_ += other.pairs_;
  missing_ += other.missing_;
  unusable_ += other.unusable_;
  crossings_ += other.crossings_;
  truth_size_ += other.truth_size_;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    loss_[i] += other.loss_[i];
    hits_[i] += other.hits_[i];
  }
  for (std::size_t i = 0; i < intervals_.size(); ++i) {
    intervals_[i].inside += other.intervals_[i].inside;
    intervals_[i].crossed += other.intervals_[i].crossed;
    intervals_[i].width += other.intervals_[i].width;
    intervals_[i].score += other.intervals_[i].score;
  }
}

double QuantileMetrics::mean_pinball() const noexcept {
  double sum = 0;
  for (const double loss : loss_) sum += loss;
  return ratio(sum, pairs_ * levels_.size());
}
double QuantileMetrics::pinball_at(std::size_t level) const noexcept { return ratio(loss_[level], pairs_); }
double QuantileMetrics::wql_at(std::size_t level) const noexcept { return 2 * ratio(loss_[level], truth_size_); }
double QuantileMetrics::mean_wql() const noexcept {
  double sum = 0;
  for (const double loss : loss_) sum += loss;
  return ratio(2 * ratio(sum, truth_size_), levels_.size());
}
double QuantileMetrics::hit_rate_at(std::size_t level) const noexcept { return ratio(static_cast<double>(hits_[level]), pairs_); }

std::vector<IntervalMetrics> QuantileMetrics::intervals() const {
  std::vector<IntervalMetrics> all;
  for (const Interval& interval : intervals_) {
    all.push_back({interval.low, interval.high, levels_[interval.high] - levels_[interval.low],
                   ratio(static_cast<double>(interval.inside), pairs_), ratio(interval.width, pairs_),
                   interval.crossed > 0 ? kUndefined : ratio(interval.score, pairs_)});
  }
  return all;
}

double crps_sample(double truth, std::span<double> samples) noexcept {
  if (samples.empty()) return kUndefined;
  std::sort(samples.begin(), samples.end());
  const auto n = static_cast<double>(samples.size());
  double error = 0, spread = 0;  // in sorted order x_i occurs in the pairs with weight 2i - n + 1
  for (std::size_t i = 0; i < samples.size(); ++i) {
    error += std::abs(samples[i] - truth);
    spread += (2 * static_cast<double>(i) - n + 1) * samples[i];
  }
  return error / n - spread / (n * n);
}

double crps_normal(double truth, double mean, double deviation) noexcept {
  const double z = (truth - mean) / deviation;
  const double density = std::exp(-z * z / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  return deviation * (z * std::erf(z / std::numbers::sqrt2) + 2 * density - std::numbers::inv_sqrtpi);
}

}  // namespace kizzasi
