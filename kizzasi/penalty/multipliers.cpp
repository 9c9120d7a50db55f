#include "kizzasi/penalty/multipliers.h"

#include <algorithm>

namespace kizzasi {

Multipliers::Multipliers(const PenaltyConfig& config, std::size_t conditions)
    : config_(config), conditions_(conditions), numbers_(5 * conditions, 0.0) {
  std::fill_n(numbers_.begin(), conditions, config.penalty_weight);
}

bool Multipliers::restore(std::span<const double> numbers) {
  if (numbers.size() != numbers_.size()) return false;
  std::copy(numbers.begin(), numbers.end(), numbers_.begin());
  return true;
}

double Multipliers::next_weight(double weight, double violation, double before) const {
  const double first = config_.penalty_weight;
  const bool broken = violation > config_.penalty_target;
  switch (config_.kind()) {
    case PenaltyKind::kLagrangian:
      return weight;
    case PenaltyKind::kAugmented:
      return broken && before > 0 && violation > 0.8 * before ? std::min(1.2 * weight, 100 * first) : weight;
    case PenaltyKind::kExact:
      return broken ? std::min(1.25 * weight, 1e6 * first) : weight;
    default:
      return broken ? std::min(1.25 * weight, 1e6 * first) : std::max(weight / 1.05, 1e-3 * first);
  }
}

void Multipliers::step(std::int64_t step, std::span<const ConditionSum> sums) {
  const auto weight = part(0), multiplier = part(1), violation = part(2), checks = part(3), before = part(4);
  for (std::size_t i = 0; i < conditions_; ++i) {
    violation[i] += sums[i].violation;
    checks[i] += static_cast<double>(sums[i].checks);
  }
  if (!config_.adapts() || step % config_.penalty_every != 0) return;
  const bool dual = config_.kind() == PenaltyKind::kLagrangian || config_.kind() == PenaltyKind::kAugmented;
  for (std::size_t i = 0; i < conditions_; ++i) {
    if (checks[i] == 0) continue;  // nothing was seen of it
    const double mean = violation[i] / checks[i];
    if (dual) multiplier[i] = std::max(0.0, multiplier[i] + weight[i] * (mean - config_.penalty_target));
    weight[i] = next_weight(weight[i], mean, before[i]);
    before[i] = mean;
    violation[i] = checks[i] = 0;
  }
}

}  // namespace kizzasi
