#include "kizzasi/base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace kizzasi {
namespace {

TEST(Rng, EqualSeedsGiveEqualNumbersAndOthersDoNot) {
  Rng a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 1000; ++i) {
    const auto x = a.bits();
    EXPECT_EQ(x, b.bits());
    differs |= x != c.bits();
  }
  EXPECT_TRUE(differs);
}

TEST(Rng, NamedAndNumberedStreamsAreApartAndDoNotMoveTheirSource) {
  Rng source(1);
  const Rng before = source;
  std::set<std::uint64_t> first;
  for (std::uint64_t i = 0; i < 1000; ++i) first.insert(source.numbered(i).bits());
  first.insert(source.named("init").bits());
  first.insert(source.named("shuffle").bits());
  EXPECT_EQ(first.size(), 1002u);
  EXPECT_EQ(source, before);
}

// Mean and variance of n draws lie within five standard errors of the law's.
template <typename Draw>
void expect_moments(Draw draw, double mean, double variance, double fourth_over_variance_squared) {
  const int n = 200'000;
  double sum = 0, square = 0;
  for (int i = 0; i < n; ++i) {
    const double x = draw();
    sum += x;
    square += (x - mean) * (x - mean);
  }
  EXPECT_NEAR(sum / n, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(square / n, variance, 5 * variance * std::sqrt((fourth_over_variance_squared - 1) / n));
}

TEST(Rng, DistributionsHaveTheirMoments) {
  Rng rng(3);
  expect_moments([&] { return rng.uniform(); }, 0.5, 1.0 / 12, 1.8);
  expect_moments([&] { return rng.normal(); }, 0, 1, 3);
  expect_moments([&] { return rng.gamma(0.4); }, 0.4, 0.4, 3 + 6 / 0.4);
  expect_moments([&] { return rng.gamma(5); }, 5, 5, 3 + 6.0 / 5);
  expect_moments([&] { return static_cast<double>(rng.below(6)); }, 2.5, 35.0 / 12, 1.75);
}

}  // namespace
}  // namespace kizzasi
