// Sums that lose no digits however many terms they have.
#pragma once

#include <cmath>

namespace kizzasi {

// What rounding takes from the sum is kept beside it (Neumaier 1974, after Kahan 1965: a term larger than the sum is safe too), so that the
// error does not grow with the number of terms. Thread: one at a time. Real-time: yes.
class CompensatedSum {
 public:
  void add(double term) noexcept {
    const double sum = sum_ + term;
    lost_ += std::abs(sum_) >= std::abs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  // As if the other's terms had been added after these, to rounding.
  void merge(const CompensatedSum& other) noexcept {
    add(other.sum_);
    lost_ += other.lost_;
  }
  // Infinite or NaN where a term or the plain sum is.
  double value() const noexcept { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

}  // namespace kizzasi
