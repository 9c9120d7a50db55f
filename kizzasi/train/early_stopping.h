// When to stop a training: after so many validations without a better one.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace kizzasi {

// Plain numbers: copy it to save it. Smaller measures are better. Thread: one at a time.
class EarlyStopping {
 public:
  // patience: validations without improvement that are borne (0: the first one ends it); below 0: never stops.
  // min_change: by how much a measure must fall below the best to count.
  explicit EarlyStopping(std::int64_t patience, double min_change = 0) : patience_(patience), min_change_(min_change) {}

  // True where this measure is the best so far (keep the weights). NaN never is.
  bool observe(double measure, std::int64_t step) {
    if (measure < best_ - min_change_ || (std::isinf(best_) && measure < best_)) {
      best_ = measure;
      best_step_ = step;
      stale_ = 0;
      return true;
    }
    ++stale_;
    return false;
  }
  bool should_stop() const { return patience_ >= 0 && stale_ > patience_; }

  double best() const { return best_; }  // infinity before the first
  std::int64_t best_step() const { return best_step_; }
  std::int64_t stale() const { return stale_; }
  void restore(double best, std::int64_t best_step, std::int64_t stale) {
    best_ = best;
    best_step_ = best_step;
    stale_ = stale;
  }

 private:
  std::int64_t patience_;
  double min_change_;
  double best_ = std::numeric_limits<double>::infinity();
  std::int64_t best_step_ = 0, stale_ = 0;
};

}  // namespace kizzasi
