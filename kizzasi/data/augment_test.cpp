#include "kizzasi/data/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kizzasi/data/limits.h"

namespace kizzasi::data {
namespace {

TEST(Augment, OffChangesNothing) {
  std::vector<float> values{1, 2, 3, 4};
  Rng rng(1);
  augment(values, 2, 1, {}, rng);
  EXPECT_EQ(values, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(rng, Rng(1));
}

TEST(Augment, ScaleAndShiftAreOneLineAChannel) {
  Rng rng(2);
  std::vector<float> values;
  for (int r = 0; r < 50; ++r) values.insert(values.end(), {static_cast<float>(r), static_cast<float>(2 * r + 1)});
  const std::vector<float> before = values;
  augment(values, 2, 30, {0, 0.3, 0.5, 0}, rng);
  for (std::size_t c = 0; c < 2; ++c) {
    const float slope = (values[98 + c] - values[c]) / (before[98 + c] - before[c]), offset = values[c] - slope * before[c];
    EXPECT_NE(slope, 1.0F);
    EXPECT_NE(offset, 0.0F);
    for (std::size_t r = 0; r < 50; ++r) EXPECT_NEAR(values[2 * r + c], slope * before[2 * r + c] + offset, 1e-3);
  }
}

TEST(Augment, NoiseAndMaskTouchInputsOnlyAndHaveTheirSize) {
  const std::size_t inputs = 20'000, rows = 25'000;
  std::vector<float> values(rows, 3.0F);
  Rng rng(3);
  augment(values, 1, inputs, {0.2, 0, 0, 0.25}, rng);
  double sum = 0, squares = 0;
  std::size_t hidden = 0;
  for (std::size_t r = 0; r < inputs; ++r) {
    if (std::isnan(values[r])) {
      ++hidden;
      continue;
    }
    sum += values[r] - 3.0;
    squares += (values[r] - 3.0) * (values[r] - 3.0);
  }
  const auto kept = static_cast<double>(inputs - hidden);
  EXPECT_NEAR(static_cast<double>(hidden) / static_cast<double>(inputs), 0.25, 0.015);
  EXPECT_NEAR(sum / kept, 0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / kept), 0.2, 0.01);
  for (std::size_t r = inputs; r < rows; ++r) ASSERT_EQ(values[r], 3.0F);
}

TEST(Augment, TheSameSeedGivesTheSameWindow) {
  std::vector<float> a(300, 1.0F), b = a;
  Rng first(9), second(9);
  augment(a, 3, 60, {0.1, 0.1, 0.1, 0}, first);
  augment(b, 3, 60, {0.1, 0.1, 0.1, 0}, second);
  EXPECT_EQ(a, b);
}

TEST(Limits, ComeFromWhatTheDataShow) {
  Series series;
  series.schema.channels = {{"count", "", Role::kTarget},    {"humidity", "%", Role::kTarget}, {"temp", "degC", Role::kTarget},
                            {"power", "W", Role::kTarget},   {"level", "m", Role::kTarget},    {"load", "%", Role::kTarget},
                            {"plan", "", Role::kKnownFuture}};
  series.values = {0, 40, 0, 0.0, 3.25, 20, 1, 9, 55.5, 3, 100.5, 4.5, 130, 2, 7, 60, 5, 20, 4, 60, 3};
  const auto limits = suggest_limits({series});
  ASSERT_EQ(limits.size(), 3U);
  EXPECT_EQ(limits[0].channel, "count");
  EXPECT_EQ(limits[0].low, 0.0);
  EXPECT_FALSE(limits[0].high);
  EXPECT_EQ(limits[1].channel, "humidity");
  EXPECT_EQ(limits[1].high, 100.0);
  EXPECT_EQ(limits[2].channel, "power");
}

}  // namespace
}  // namespace kizzasi::data
