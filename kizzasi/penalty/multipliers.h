// Weights and multipliers of conditions that move while a training runs.
#pragma once

#include <span>
#include <vector>

#include "kizzasi/penalty/config.h"
#include "kizzasi/penalty/constraint_price.h"

namespace kizzasi {

// Plain numbers, so that a checkpoint holds all of it. After `penalty_every` steps the mean violation V of each condition since the last
// move decides, with the target e and the first weight w0:
//   augmented    multiplier <- max(0, multiplier + weight (V - e)); weight <- 1.2 weight, at most 100 w0, where V > e has not
//                fallen by a fifth
//   lagrangian   multiplier <- max(0, multiplier + w0 (V - e))
//   exact        weight <- 1.25 weight, at most 1e6 w0, where V > e
//   adaptive     the same, and weight <- weight / 1.05, at least w0 / 1000, else
// Thread: one at a time.
class Multipliers {
 public:
  Multipliers(const PenaltyConfig& config, std::size_t conditions);
  // As `numbers` gave them; false: another number of conditions.
  bool restore(std::span<const double> numbers);
  std::span<const double> numbers() const { return numbers_; }

  std::span<const double> weights() const { return part(0); }
  std::span<const double> multipliers() const { return part(1); }

  // After a step of training, with what it saw.
  void step(std::int64_t step, std::span<const ConditionSum> sums);

 private:
  std::span<double> part(std::size_t i) { return std::span(numbers_).subspan(i * conditions_, conditions_); }
  std::span<const double> part(std::size_t i) const { return std::span(numbers_).subspan(i * conditions_, conditions_); }
  double next_weight(double weight, double violation, double before) const;

  PenaltyConfig config_;
  std::size_t conditions_;
  std::vector<double> numbers_;  // weights, multipliers, violations, checks, mean violations of the period before
};

}  // namespace kizzasi
