#include "kizzasi/forecast/adaptive_intervals.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

// Standard normal quantiles at the levels below (scipy 1.17, norm.ppf).
constexpr std::array<double, 7> kLevels{0.005, 0.025, 0.1, 0.5, 0.9, 0.975, 0.995};
constexpr std::array<double, 7> kNormal{-2.5758293035489004, -1.9599639845400545, -1.2815515655446004, 0,
                                        1.2815515655446004,  1.9599639845400545,  2.5758293035489004};

ForecastBlock normal_block(std::size_t horizon, double spread) {
  ForecastBlock block;
  block.resize(horizon, 1, kLevels);
  for (std::size_t h = 0; h < horizon; ++h) {
    block.point(h, 0) = 0;
    for (std::size_t q = 0; q < kLevels.size(); ++q) block.quantile(q, h, 0) = spread * kNormal[q];
  }
  return block;
}

// Whatever factor the forecaster is off by, the share of truths inside the 80 % interval comes to 80 %.
TEST(AdaptiveIntervals, CoverageComesToWhatIsClaimed) {
  for (const double spread : {0.7, 1.0, 1.5}) {
    Rng rng(5);
    AdaptiveIntervals adaptive({0.1, 0.5, 0.9}, 1, 0.05);
    std::size_t inside = 0, all = 0;
    for (int origin = 0; origin < 4000; ++origin) {
      ForecastBlock block = normal_block(4, spread);
      adaptive.apply(block);
      ASSERT_EQ(block.levels.size(), 3u);
      for (std::size_t h = 0; h < 4; ++h) {
        const double truth = rng.normal(), low = block.quantile(0, h, 0), high = block.quantile(2, h, 0);
        EXPECT_LE(low, block.quantile(1, h, 0));
        EXPECT_LE(block.quantile(1, h, 0), high);
        if (origin >= 500) {
          ++all;
          inside += truth >= low && truth <= high ? 1 : 0;
        }
        adaptive.learn(0, 4, std::array{low, block.quantile(1, h, 0), high}, truth);
      }
    }
    EXPECT_NEAR(static_cast<double>(inside) / static_cast<double>(all), 0.8, 0.015) << "spread " << spread;
  }
}

TEST(AdaptiveIntervals, NothingLearnedGivesTheForecastersOwnQuantilesAndNeverBeyondThem) {
  AdaptiveIntervals adaptive({0.025, 0.5, 0.975}, 1, 0.5);
  ForecastBlock block = normal_block(1, 1);
  adaptive.apply(block);
  EXPECT_EQ(block.quantile(0, 0, 0), kNormal[1]);
  EXPECT_EQ(block.quantile(2, 0, 0), kNormal[5]);
  for (int i = 0; i < 1000; ++i) {
    ForecastBlock next = normal_block(1, 1);
    adaptive.apply(next);
    for (const double q : next.quantiles) EXPECT_LE(std::abs(q), kNormal[6]);
    adaptive.learn(0, 1, next.quantiles, 100.0);
    adaptive.learn(0, 1, next.quantiles, std::nan(""));
  }
}

}  // namespace
}  // namespace kizzasi
