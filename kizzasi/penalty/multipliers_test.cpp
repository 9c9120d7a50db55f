#include "kizzasi/penalty/multipliers.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kizzasi {
namespace {

PenaltyConfig of(const std::string& kind, double weight) {
  PenaltyConfig config;
  config.penalty = kind;
  config.penalty_weight = weight;
  config.penalty_target = 0;
  config.penalty_every = 1;
  return config;
}

ConditionSum seen(double violation) { return {violation, 1, violation > 0 ? 1u : 0u}; }

// Minimise (x - 2)^2 with x <= 1 and its price, in closed form: 2 (x - 2) + multiplier + weight (x - 1) = 0 above 1.
double minimum(double weight, double multiplier) { return std::max(1.0, (4 - multiplier + weight) / (2 + weight)); }

TEST(Multipliers, AreThoseOfTheTextbookLagrangian) {
  // Dual ascent of step 1/2: (x, multiplier) = (2, 0), (1.75, 1/2), (1.5625, 0.875), (1.42188, 1.15625), ...
  Multipliers plain(of("lagrangian", 0.5), 1);
  const double xs[] = {2, 1.75, 1.5625, 1.421875}, multipliers[] = {0, 0.5, 0.875, 1.15625};
  for (int i = 0; i < 4; ++i) {
    const double x = 2 - plain.multipliers()[0] / 2;
    ASSERT_DOUBLE_EQ(x, xs[i]);
    ASSERT_DOUBLE_EQ(plain.multipliers()[0], multipliers[i]);
    plain.step(i + 1, std::vector<ConditionSum>{seen(x - 1)});
  }
  // Augmented with weight 2: (1.5, 0), (1.25, 1), (1.125, 1.5), (1.0625, 1.75), ...: the violation halves, so the weight stays.
  Multipliers augmented(of("augmented", 2), 1);
  double x = 1.5, multiplier = 0;
  for (int i = 0; i < 8; ++i) {
    ASSERT_DOUBLE_EQ(augmented.multipliers()[0], multiplier);
    ASSERT_NEAR(minimum(2, augmented.multipliers()[0]), x, 1e-12);
    augmented.step(i + 1, std::vector<ConditionSum>{seen(x - 1)});
    ASSERT_EQ(augmented.weights()[0], 2);
    multiplier += 2 * (x - 1);
    x = 1 + (x - 1) / 2;
  }
}

TEST(Multipliers, MoveForEachConditionByItself) {
  for (const std::string kind : {"exact", "augmented", "lagrangian", "hinge"}) {
    SCOPED_TRACE(kind);
    PenaltyConfig config = of(kind, 1);
    config.penalty_adapt = kind == "hinge";
    config.penalty_target = 0.01;
    config.penalty_every = 3;
    Multipliers moved(config, 3);
    for (std::int64_t step = 1; step <= 30; ++step) moved.step(step, std::vector<ConditionSum>{seen(0.5), seen(0), {0, 0, 0}});
    const bool dual = kind == "augmented" || kind == "lagrangian";
    if (kind != "lagrangian") {
      EXPECT_GT(moved.weights()[0], 1);
    }
    EXPECT_EQ(moved.multipliers()[0] > 0, dual);
    EXPECT_EQ(moved.multipliers()[1], 0);  // kept: it never falls below 0
    EXPECT_EQ(moved.weights()[1] < 1, kind == "hinge");
    EXPECT_EQ(moved.weights()[2], 1);  // nothing was seen of it
    // Restored in the middle of a period it goes on as if it had never stopped.
    Multipliers first(config, 3), second(config, 3);
    const std::vector<ConditionSum> sums{seen(0.3), seen(0.02), seen(0)};
    for (std::int64_t step = 1; step <= 50; ++step) {
      first.step(step, sums);
      if (step == 25) {
        EXPECT_TRUE(second.restore(first.numbers()));
      }
      if (step > 25) second.step(step, sums);
    }
    EXPECT_TRUE(std::equal(first.numbers().begin(), first.numbers().end(), second.numbers().begin()));
    EXPECT_FALSE(second.restore(std::vector<double>(4)));
  }
  PenaltyConfig fixed = of("squared", 7);
  Multipliers still(fixed, 1);
  for (std::int64_t step = 1; step <= 50; ++step) still.step(step, std::vector<ConditionSum>{seen(9)});
  EXPECT_EQ(still.weights()[0], 7);
}

}  // namespace
}  // namespace kizzasi
