#include "kizzasi/solve/smooth_projection.h"

#include <algorithm>
#include <cmath>

namespace kizzasi::solve {
namespace {

constexpr double kEps = 2.220446049250313e-16;
constexpr double kStill = 1e-13;      // of x: such a step is none
constexpr double kClose = 1e-6;       // of x: below it, rounding in the merit is larger than what a step gains
constexpr double kHighest = 1e12;     // times the price at the start
constexpr double kOptimality = 1e-7;  // residual of an answer from which no step leads on
constexpr double kNoise = 1e-12;      // of the merit
constexpr int kPatience = 4;          // steps with rows that give way before they become dearer
constexpr int kMostInward = 40;       // times that rounding is seen to
constexpr double kRounding = 1e-6;    // of the terms of a linearised function: what is broken by more is so in earnest
constexpr double kEnough = 1e-4;      // of the expected gain

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

void SmoothProjection::prepare(std::size_t variables, std::span<const SmoothFunction* const> functions, int most_steps) {
  n_ = variables;
  m_ = functions.size();
  most_steps_ = most_steps;
  functions_.assign(functions.begin(), functions.end());
  qp_.prepare(n_, m_);
  for (auto* vector : {&y_, &w_, &lower_, &upper_, &x_, &trial_, &d_, &pull_, &low_box_, &high_box_, &change_, &turned_})
    vector->assign(n_, 0);
  for (auto* vector : {&values_, &trial_values_, &shifted_, &lo_, &hi_, &l1_, &l2_, &price_, &margin_, &lambda_}) vector->assign(m_, 0);
  for (auto* vector : {&jacobian_, &trial_jacobian_}) vector->assign(n_ * m_, 0);
  for (auto* vector : {&curvature_, &learned_}) vector->assign(n_ * n_, 0);
  active_.assign(n_ + m_, 0);
}

bool SmoothProjection::evaluate(std::span<const double> at, std::span<double> values, std::span<double> jacobian) const noexcept {
  for (std::size_t k = 0; k < m_; ++k) {
    values[k] = functions_[k]->value(at, jacobian.empty() ? jacobian : jacobian.subspan(k * n_, n_));
  }
  return all_finite(values) && all_finite(jacobian);
}

// d: the step at which the linearised functions, with these values at x, are kept at their price.
Status SmoothProjection::solve_step(std::span<const double> values) noexcept {
  for (std::size_t k = 0; k < m_; ++k) {
    lo_[k] = -kNoBound;
    hi_[k] = -values[k] - margin_[k];
  }
  for (std::size_t j = 0; j < n_; ++j) {
    pull_[j] = w_[j] * (x_[j] - y_[j]);
    low_box_[j] = std::min(0.0, lower_[j] - x_[j]);
    high_box_[j] = std::max(0.0, upper_[j] - x_[j]);
  }
  if (qp_.set_hessian(curvature_) != Curvature::kPositive) {
    reset_curvature();
    (void)qp_.set_hessian(curvature_);
  }
  (void)qp_.set_rows(jacobian_, m_);
  (void)qp_.set_softness(price_, l2_);
  std::fill(active_.begin(), active_.end(), std::uint8_t{0});
  const Status status = qp_.solve({pull_, {}, lo_, hi_, low_box_, high_box_}, active_);
  if (status == Status::kOptimal) std::copy(qp_.x().begin(), qp_.x().end(), d_.begin());
  return status;
}

double SmoothProjection::merit(std::span<const double> at, std::span<const double> values) const noexcept {
  double sum = 0;
  for (std::size_t j = 0; j < n_; ++j) sum += 0.5 * w_[j] * (at[j] - y_[j]) * (at[j] - y_[j]);
  for (std::size_t k = 0; k < m_; ++k) sum += price_[k] * std::max(0.0, values[k] + margin_[k]);
  return sum;
}

void SmoothProjection::reset_curvature() noexcept {
  std::fill(curvature_.begin(), curvature_.end(), 0.0);
  for (std::size_t j = 0; j < n_; ++j) curvature_[j * n_ + j] = w_[j];
}

// Ten times what would hold the first linearised row alone.
void SmoothProjection::price_at_start() noexcept {
  const double heaviest = *std::max_element(w_.begin(), w_.end());
  for (std::size_t k = 0; k < m_; ++k) {
    const std::span<const double> row(jacobian_.data() + k * n_, n_);
    const double squared = dot(row, row);
    const double pull = std::sqrt(squared) > 0 ? std::max(std::abs(values_[k]) / squared, 1e-3 / std::sqrt(squared)) : 1;
    price_[k] = std::clamp(10 * heaviest * pull, 1e-100, 1e100);
  }
}

// False: the rows that still give way are as dear as they may become.
bool SmoothProjection::dearer() noexcept {
  bool grew = false, gives_way = false;
  for (std::size_t k = 0; k < m_; ++k) {
    const bool spent = qp_.slack()[k] > 0 || std::abs(qp_.row_multipliers()[k]) >= 0.99 * price_[k];
    gives_way = gives_way || spent;
    if (!spent || price_[k] >= kHighest * l1_[k]) continue;
    price_[k] *= 10;
    grew = true;
  }
  return grew || !gives_way;
}

// Moves x along d by as much as the merit falls; `learned_` etc. follow. False: no step was found.
bool SmoothProjection::advance(bool& tiny) noexcept {
  double longest = 0, size = 0;
  for (std::size_t j = 0; j < n_; ++j) {
    longest = std::max(longest, std::abs(d_[j]));
    size = std::max({size, std::abs(x_[j]), std::abs(y_[j])});
  }
  tiny = longest <= kStill * size;
  if (tiny) return true;
  double slope = dot(pull_, d_);
  for (std::size_t k = 0; k < m_; ++k) {
    slope -= price_[k] * (std::max(0.0, values_[k] + margin_[k]) - std::max(0.0, qp_.slack()[k]));
    lambda_[k] = std::max(0.0, qp_.row_multipliers()[k]);
  }
  const double before = merit(x_, values_);
  const auto take = [&](double length) noexcept {
    for (std::size_t j = 0; j < n_; ++j) trial_[j] = std::clamp(x_[j] + length * d_[j], lower_[j], upper_[j]);
    return evaluate(trial_, trial_values_, trial_jacobian_);
  };
  const auto falls = [&](double length) noexcept { return merit(trial_, trial_values_) <= before + kEnough * length * slope; };
  double length = 1;
  bool found = take(1) && falls(1);
  if (!found && all_finite(trial_values_)) {  // the functions bend: once more with what they are at the end of the step
    std::copy(d_.begin(), d_.end(), change_.begin());
    for (std::size_t k = 0; k < m_; ++k) {
      shifted_[k] = trial_values_[k] - dot(std::span<const double>(jacobian_.data() + k * n_, n_), change_);
    }
    if (solve_step(shifted_) == Status::kOptimal && take(1) && falls(1)) {
      found = true;
    } else {
      std::copy(change_.begin(), change_.end(), d_.begin());
    }
  }
  // So near to the answer the merit says nothing any more but that it does not rise.
  if (!found && longest <= kClose * size) found = take(1) && merit(trial_, trial_values_) <= before + kNoise * std::abs(before);
  while (!found && length * longest > kStill * size) {
    length *= 0.5;
    found = take(length) && falls(length);
  }
  if (!found) return false;
  learn_curvature();
  std::swap(x_, trial_);
  std::swap(values_, trial_values_);
  std::swap(jacobian_, trial_jacobian_);
  return true;
}

// Of the Lagrangian, from x to trial.
void SmoothProjection::learn_curvature() noexcept {
  double sy = 0, sbs = 0;
  for (std::size_t j = 0; j < n_; ++j) {
    d_[j] = trial_[j] - x_[j];
    change_[j] = w_[j] * d_[j];
    for (std::size_t k = 0; k < m_; ++k) change_[j] += lambda_[k] * (trial_jacobian_[k * n_ + j] - jacobian_[k * n_ + j]);
  }
  for (std::size_t j = 0; j < n_; ++j) turned_[j] = dot(std::span<const double>(curvature_.data() + j * n_, n_), d_);
  sy = dot(d_, change_);
  sbs = dot(d_, turned_);
  if (!(sbs > 0) || !std::isfinite(sbs)) return;
  constexpr double kLeast = 0.2;
  if (sy < kLeast * sbs) {
    const double theta = (1 - kLeast) * sbs / (sbs - sy);
    for (std::size_t j = 0; j < n_; ++j) change_[j] = theta * change_[j] + (1 - theta) * turned_[j];
    sy = kLeast * sbs;
  }
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < n_; ++j) {
      learned_[i * n_ + j] = curvature_[i * n_ + j] - turned_[i] * turned_[j] / sbs + change_[i] * change_[j] / sy;
    }
  }
  if (all_finite(learned_)) std::swap(curvature_, learned_);
}

bool SmoothProjection::inside(std::span<const double> values) const noexcept {
  return std::all_of(values.begin(), values.end(), [](double v) { return v <= 0; });
}

// Do the multipliers of the last program say that x is an answer?
bool SmoothProjection::is_still() noexcept {
  measure();
  return residual_ <= kOptimality;
}

// Of what rounding left broken a little more is asked. False: it is broken in earnest.
bool SmoothProjection::ask_further_in() noexcept {
  for (std::size_t k = 0; k < m_; ++k) {
    if (values_[k] <= 0) continue;
    const std::span<const double> row(jacobian_.data() + k * n_, n_);
    double size = 0;
    for (std::size_t j = 0; j < n_; ++j) size += std::abs(row[j] * x_[j]);
    margin_[k] = std::max({2 * margin_[k], 2 * values_[k], kEps * size});
    if (size > 0 && margin_[k] > kRounding * size) return false;
  }
  return true;
}

Status SmoothProjection::search() noexcept {
  int inward = 0, giving_way = 0;
  for (steps_ = 0; steps_ < most_steps_; ++steps_) {
    if (solve_step(values_) != Status::kOptimal) return Status::kIterationLimit;
    bool tiny = false;
    const bool gives_way = std::any_of(qp_.slack().begin(), qp_.slack().end(), [](double s) { return s > 0; });
    giving_way = gives_way ? giving_way + 1 : 0;
    const bool moved = advance(tiny);
    if (gives_way && (!moved || tiny || giving_way % kPatience == 0)) {  // the price is too low, or nothing obeys
      if (!dearer()) return Status::kInfeasible;
      continue;
    }
    if (moved && !tiny) continue;
    if (inside(values_) && (moved || is_still())) return Status::kOptimal;
    if (!moved && !is_still()) return Status::kIterationLimit;
    if (++inward > kMostInward || !ask_further_in()) return Status::kIterationLimit;
  }
  return Status::kIterationLimit;
}

void SmoothProjection::measure() noexcept {
  double off = 0, largest = 0, squared = 0;
  for (std::size_t k = 0; k < m_; ++k) lambda_[k] = std::max(0.0, qp_.row_multipliers()[k]);
  for (std::size_t j = 0; j < n_; ++j) {
    double sum = w_[j] * (x_[j] - y_[j]);
    largest = std::max(largest, std::abs(sum));
    for (std::size_t k = 0; k < m_; ++k) {
      sum += lambda_[k] * jacobian_[k * n_ + j];
      largest = std::max(largest, std::abs(lambda_[k] * jacobian_[k * n_ + j]));
    }
    sum += qp_.box_multipliers()[j];
    off = std::max(off, std::abs(sum));
    squared += w_[j] * (x_[j] - y_[j]) * (x_[j] - y_[j]);
  }
  residual_ = largest > 0 ? off / largest : 0;
  distance_ = std::sqrt(squared);
}

Status SmoothProjection::nearest(std::span<const double> y, std::span<const double> weight, std::span<const double> lower,
                                 std::span<const double> upper, std::span<const double> start, std::span<double> x) noexcept {
  const auto fits = [&](std::span<const double> v) { return v.empty() || v.size() == n_; };
  if (n_ == 0 || m_ == 0 || y.size() != n_ || x.size() != n_ || !fits(weight) || !fits(lower) || !fits(upper) || !fits(start))
    return Status::kBadInput;
  if (!all_finite(y) || !all_finite(start)) return Status::kBadInput;
  for (std::size_t j = 0; j < n_; ++j) {
    y_[j] = y[j];
    w_[j] = weight.empty() ? 1 : weight[j];
    lower_[j] = lower.empty() ? -kNoBound : lower[j];
    upper_[j] = upper.empty() ? kNoBound : upper[j];
    if (!(w_[j] > 0) || std::isinf(w_[j]) || std::isnan(lower_[j]) || std::isnan(upper_[j])) return Status::kBadInput;
    if (lower_[j] > upper_[j]) return Status::kInfeasible;
    x_[j] = std::clamp(start.empty() ? y[j] : start[j], lower_[j], upper_[j]);
    trial_[j] = std::clamp(y[j], lower_[j], upper_[j]);
  }
  std::fill(margin_.begin(), margin_.end(), 0.0);
  std::fill(lambda_.begin(), lambda_.end(), 0.0);
  distance_ = residual_ = 0;
  steps_ = 0;
  if (evaluate(trial_, trial_values_, {}) && inside(trial_values_)) {  // y itself, or its place in the box: nothing is nearer
    for (std::size_t j = 0; j < n_; ++j) distance_ += w_[j] * (trial_[j] - y[j]) * (trial_[j] - y[j]);
    distance_ = std::sqrt(distance_);
    std::copy(trial_.begin(), trial_.end(), x.begin());
    return Status::kOptimal;
  }
  if (!evaluate(x_, values_, jacobian_)) return Status::kBadInput;
  reset_curvature();
  price_at_start();
  std::copy(price_.begin(), price_.end(), l1_.begin());
  const Status status = search();
  if (status != Status::kOptimal) return status;
  measure();
  std::copy(x_.begin(), x_.end(), x.begin());
  return status;
}

}  // namespace kizzasi::solve
