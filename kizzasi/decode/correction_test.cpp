#include "kizzasi/decode/correction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kizzasi/base/rng.h"
#include "kizzasi/decode/standard_laws.h"

namespace kizzasi {
namespace {

const std::vector<double> kLevels{0.025, 0.1, 0.5, 0.9, 0.975};

struct Draw {
  double median, truth;
  std::vector<double> quantiles;
};

// A forecaster whose spread is wrong: it claims `claimed` where the truth has `spread`, both changing with time, and is off by `bias`.
Draw draw(Rng& rng, double claimed, double spread, double bias) {
  const double when = std::exp(rng.normal());
  Draw d{rng.normal() * 10, 0, {}};
  d.truth = d.median + bias + when * spread * rng.normal();
  for (const double level : kLevels) d.quantiles.push_back(d.median + when * claimed * normal_quantile(level));
  return d;
}

// The law that calibration is for: on new data from the same source, the share of truths below each quantile is its level, within what a
// binomial count of that size may show (4 standard deviations).
void covers(double claimed, double spread, double bias) {
  Rng rng(static_cast<std::uint64_t>(claimed * 100 + spread * 10 + bias));
  CalibrationFit fit(kLevels, 2, 1);
  for (int i = 0; i < 2000; ++i) {
    const Draw d = draw(rng, claimed, spread, bias);
    fit.add(1, 0, d.median, d.quantiles, d.truth);
  }
  const Calibration c = fit.finish(0);
  EXPECT_EQ(c.windows, 2000);
  std::vector<double> below(kLevels.size());
  const int n = 20000;
  for (int i = 0; i < n; ++i) {
    const Draw d = draw(rng, claimed, spread, bias);
    for (std::size_t l = 0; l < kLevels.size(); ++l)
      below[l] += d.truth <= corrected_quantile(c, 1, 0, kLevels[l], d.median, d.quantiles[l]) ? 1 : 0;
  }
  for (std::size_t l = 0; l < kLevels.size(); ++l) {
    if (kLevels[l] == 0.5) continue;
    const double level = kLevels[l], deviation = std::sqrt(level * (1 - level) * (1.0 / n + 1.0 / 2000));
    EXPECT_NEAR(below[l] / n, level, 4 * deviation + 1.0 / 2000) << "claimed " << claimed << " bias " << bias << " level " << level;
  }
  // The first step saw nothing and stays as it is.
  EXPECT_EQ(corrected_quantile(c, 0, 0, 0.9, 1, 3.25), 3.25);
}

TEST(Correction, CoversWhatItClaimsOnNewData) {
  covers(1, 1, 0);
  covers(0.3, 1, 0);
  covers(4, 1, 0);
  covers(1, 1, 2);
}

TEST(Correction, KeepsTheShapeOfASpreadThatChanges) {
  Rng rng(8);
  CalibrationFit fit(kLevels, 1, 1);
  for (int i = 0; i < 3000; ++i) {
    const Draw d = draw(rng, 0.5, 1, 0);
    fit.add(0, 0, d.median, d.quantiles, d.truth);
  }
  const Calibration c = fit.finish(0);
  for (const std::size_t l : {0u, 1u, 3u, 4u}) {
    EXPECT_NEAR(c.stretch[l], 2, 0.25) << kLevels[l];
    EXPECT_EQ(c.shift[l], 0);
  }
}

TEST(Correction, GivesAPointAnInterval) {
  CalibrationFit fit({0.1, 0.5, 0.9}, 1, 1);
  for (int i = 1; i <= 99; ++i) fit.add(0, 0, 7, std::vector<double>{7, 7, 7}, 7 + i / 100.0 - 0.5);
  const Calibration c = fit.finish(0);
  // By the ranks: floor(100 * 0.1) = 10th and 90th of 99.
  EXPECT_NEAR(corrected_quantile(c, 0, 0, 0.1, 7, 7), 7 + 0.10 - 0.5, 1e-12);
  EXPECT_NEAR(corrected_quantile(c, 0, 0, 0.9, 7, 7), 7 + 0.90 - 0.5, 1e-12);
  EXPECT_EQ(corrected_quantile(c, 0, 0, 0.5, 7, 7), 7);
}

TEST(Correction, InterpolatesBetweenLevelsAndHoldsBeyondThem) {
  const Calibration c{{0.2, 0.6}, 1, 1, {1, 3}, {10, 20}, 0, 0};
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.2, 0, 1), 11);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.6, 0, 1), 23);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.4, 0, 1), 17);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.01, 0, 1), 11);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 5, 0, 0.99, 0, 1), 23);
  EXPECT_DOUBLE_EQ(corrected_quantile({}, 5, 0, 0.99, 0, 1), 1);
}

TEST(Correction, AdaptedLevelsStayOnTheirSideAndInside) {
  for (const double level : {0.001, 0.1, 0.5, 0.9, 0.999}) {
    EXPECT_EQ(adapted_level(level, 0), level);
    double kept = 0, low = 0, high = 0;
    for (int i = 0; i < 5000; ++i) low = adapted(low, 0.05, level, true), high = adapted(high, 0.05, level, false);
    for (kept = low; kept <= high; kept += 0.1) {
      const double now = adapted_level(level, kept);
      EXPECT_GT(now, 0);
      EXPECT_LT(now, 1);
      EXPECT_TRUE(level == 0.5 ? now == 0.5 : (now <= 0.5) == (level < 0.5) || now == 0.5) << level << " " << kept;
    }
    // To first order the level moves by rate * (level - miss).
    const double up = adapted(0, 1e-6, level, false), down = adapted(0, 1e-6, level, true);
    if (level != 0.5) {
      EXPECT_NEAR((adapted_level(level, up) - level) / 1e-6, level, 1e-3);
      EXPECT_NEAR((adapted_level(level, down) - level) / 1e-6, level - 1, 1e-3);
    }
  }
}

TEST(Correction, TooFewForecastsStayFiniteAndBrokenOnesAreLeftOut) {
  CalibrationFit fit({0.001, 0.999}, 1, 1);
  fit.add(0, 0, 0, std::vector<double>{-1, 1}, 5);
  fit.add(0, 0, 0, std::vector<double>{-1, 1}, -5);
  fit.add(0, 0, 0, std::vector<double>{-1, 1}, std::nan(""));
  fit.add(0, 0, INFINITY, std::vector<double>{-1, 1}, 0);
  const Calibration c = fit.finish(0.01);
  EXPECT_EQ(c.windows, 2);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.999, 0, 1), 5);
  EXPECT_DOUBLE_EQ(corrected_quantile(c, 0, 0, 0.001, 0, -1), -5);
}

}  // namespace
}  // namespace kizzasi
