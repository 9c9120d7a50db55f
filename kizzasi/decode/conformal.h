// Intervals that cover what they claim whatever the model: ranks of past errors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kizzasi {

// Split conformal prediction (Vovk, Gammerman and Shafer 2005; Lei et al. 2018). With n exchangeable scores, the next score is at most
// the returned one with probability at least 1 - alpha: the k-th smallest, k = ceil((n + 1)(1 - alpha)); infinite where k > n.
// `sorted` rises. Thread: any. Real-time: yes.
double conformal_radius(std::span<const double> sorted, double alpha) noexcept;

// Signed form for one quantile of the next value: what to add to a forecast, given the past errors truth - forecast, sorted. Levels above
// 1/2 take the rank ceil((n + 1) level), levels below it floor((n + 1) level), so that an interval between two of them covers at least its
// share; 1/2 is the plain median. Infinite (by its sign) where n is too small for the level.
double conformal_shift(std::span<const double> sorted_errors, double level) noexcept;

// As conformal_radius with a weight for each score and weight 1 for the next one (Barber et al. 2023, equation 11): the smallest score
// whose cumulated share of weight reaches 1 - alpha; infinite where none does.
double weighted_conformal_radius(std::span<const double> scores, std::span<const double> weights, double alpha);

// Adaptive conformal inference (Gibbs and Candes 2021, equation 2): alpha_{t+1} = alpha_t + rate (alpha - miss_t), the radius from the
// scores of the last `window` steps. Over any long stretch the share of misses tends to alpha, whatever the signal does.
// Thread: one stream. Real-time: yes, after construction.
class AdaptiveConformal {
 public:
  AdaptiveConformal(double alpha, double rate, std::size_t window);

  // For the next score: infinite where alpha_t <= 0 or too few scores are known, minus infinite where alpha_t >= 1.
  double radius() const noexcept;
  // Takes what the score turned out to be; returns true where it missed: lay beyond radius(). NaN (a missing truth) changes nothing.
  bool observe(double score) noexcept;

  double alpha() const noexcept { return current_; }
  std::size_t scores() const noexcept { return sorted_.size(); }

 private:
  double target_, rate_, current_;
  std::size_t window_;
  std::vector<double> sorted_;  // the last scores, rising
  std::vector<double> ring_;    // the same in order of time
  std::size_t oldest_ = 0;
};

}  // namespace kizzasi
