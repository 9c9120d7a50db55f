// Mean and variance of values that come one at a time.
#pragma once

#include <cstddef>
#include <limits>

namespace kizzasi {

// Welford 1962; parts are joined as in Chan, Golub and LeVeque 1979. Means are kept as distances from the first value, so that a large
// offset costs no digits. What is not defined yet is NaN. Thread: one at a time. Real-time: yes.
class RunningMoments {
 public:
  void add(double value) noexcept {
    if (count_++ == 0) first_ = value;
    const double before = deviation(value);
    mean_ += before / static_cast<double>(count_);
    squares_ += before * deviation(value);
  }
  // As if the other's values had been added after these, to rounding.
  void merge(const RunningMoments& other) noexcept {
    if (other.count_ == 0) return;
    if (count_ == 0) first_ = other.first_;
    const double apart = other.mean_apart_from(*this);
    const double share = static_cast<double>(other.count_) / static_cast<double>(count_ + other.count_);
    squares_ += other.squares_ + apart * apart * static_cast<double>(count_) * share;
    mean_ += apart * share;
    count_ += other.count_;
  }

  std::size_t count() const noexcept { return count_; }
  double mean() const noexcept { return count_ > 0 ? first_ + mean_ : kUndefined; }
  // Sum of the squared deviations from the mean.
  double squares() const noexcept { return squares_; }
  double variance() const noexcept { return count_ > 0 ? squares_ / static_cast<double>(count_) : kUndefined; }
  double sample_variance() const noexcept { return count_ > 1 ? squares_ / static_cast<double>(count_ - 1) : kUndefined; }

  // value - mean() and mean() - other.mean(), to more digits than the means have.
  double deviation(double value) const noexcept { return (value - first_) - mean_; }
  double mean_apart_from(const RunningMoments& other) const noexcept { return (first_ - other.first_) + (mean_ - other.mean_); }

 private:
  static constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();
  std::size_t count_ = 0;
  double first_ = 0, mean_ = 0, squares_ = 0;
};

}  // namespace kizzasi
