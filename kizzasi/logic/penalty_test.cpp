#include "kizzasi/logic/penalty.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

Schema three() {
  Schema schema;
  for (const char* name : {"a", "b", "c"}) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = 100'000'000;
  return schema;
}

const std::vector<ConstraintText> kTexts{{"range", "-1 <= a <= 1"},
                                         {"sum", "a + b - 2 * c == 0.5", "project", 0, false, 3},
                                         {"rate", "abs(rate(b)) <= 2"},
                                         {"two", "b + c <= 1 and prev(c, 1) <= a"},
                                         {"said", "a <= -9", "warn"}};

TEST(ConstraintPenalty, IsTheSumOfWhatIsBroken) {
  const std::vector<double> x{2, 0, 0}, before{0, 0, 5};
  // range: 2 - 1; sum: 2 - 0.5, three times; prev(c) - a: 5 - 2.
  const auto hinge = ConstraintPenalty::compile(three(), kTexts, PenaltyForm::kHinge);
  ASSERT_TRUE(hinge) << hinge.error().text();
  EXPECT_DOUBLE_EQ(hinge->value(x, before, 0.1), 1 + 3 * 1.5 + 3);
  EXPECT_DOUBLE_EQ(hinge->value(x, {}, 0.1), 1 + 3 * 1.5);
  const auto squared = ConstraintPenalty::compile(three(), kTexts, PenaltyForm::kSquared);
  EXPECT_DOUBLE_EQ(squared->value(x, before, 0.1), 1 + 3 * 2.25 + 9);
  EXPECT_EQ(squared->value(std::vector<double>{0.5, 0, 0}, std::vector<double>{0, 0, 0}, 0.1), 0);
}

TEST(ConstraintPenalty, GradientsEqualDifferences) {
  Rng rng(8);
  for (const PenaltyForm form : {PenaltyForm::kHinge, PenaltyForm::kSquared}) {
    const auto penalty = ConstraintPenalty::compile(three(), kTexts, form);
    for (int turn = 0; turn < 200; ++turn) {
      std::vector<double> x(3), before(3), gradient(3), before_gradient(3);
      for (double& value : x) value = 2 * rng.normal();
      for (double& value : before) value = 2 * rng.normal();
      const double scale = rng.uniform(0.5, 2), step = 1e-6;
      penalty->value(x, before, 0.1, scale, gradient, before_gradient);
      for (std::size_t c = 0; c < 3; ++c) {
        for (const bool past : {false, true}) {
          std::vector<double>& moved = past ? before : x;
          const double kept = moved[c];
          moved[c] = kept + step;
          const double up = penalty->value(x, before, 0.1, scale);
          moved[c] = kept - step;
          const double down = penalty->value(x, before, 0.1, scale);
          moved[c] = kept;
          EXPECT_NEAR((past ? before_gradient : gradient)[c], (up - down) / (2 * step), 2e-4) << turn;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
