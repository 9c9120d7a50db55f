#include "kizzasi/logic/grid.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kizzasi/base/rng.h"

namespace kizzasi::logic {
namespace {

double reread(double x, int decimals) { return std::strtod(fmt::format("{:.{}f}", x, decimals).c_str(), nullptr); }

TEST(Grid, MembersAreWhatTheirTextReadsBackTo) {
  Rng rng(1);
  for (int i = 0; i < 100'000; ++i) {
    const int decimals = static_cast<int>(rng.below(13));
    const Grid grid(decimals);
    const double x = rng.normal() * std::pow(10.0, rng.uniform(-6, 18));
    const double near = grid.nearest(x), low = grid.floor(x), high = grid.ceil(x);
    for (const double member : {near, low, high, grid.above(near), grid.below(near)}) {
      ASSERT_EQ(reread(member, decimals), member) << fmt::format("{} with {}", x, decimals);
      ASSERT_TRUE(grid.contains(member));
    }
    ASSERT_LE(low, x);
    ASSERT_GE(high, x);
    ASSERT_TRUE(near == low || near == high);
    ASSERT_LE(std::abs(near - x), std::min(std::abs(low - x), std::abs(high - x)));
    ASSERT_GE(grid.above(low), high);
    ASSERT_LT(grid.below(near), near);
  }
}

TEST(Grid, OrderCountsDoubles) {
  EXPECT_EQ(order_of(0.0), order_of(-0.0));
  EXPECT_EQ(order_of(5e-324) - order_of(-5e-324), 2);
  for (const double x : {0.0, 1.0, -1.0, 5e-324, -2.2250738585072014e-308, 1.7976931348623157e308}) {
    EXPECT_EQ(with_order(order_of(x)), x);
    EXPECT_EQ(with_order(order_of(x) - 1), std::nextafter(x, -INFINITY));
  }
}

TEST(Grid, LargestFindsTheLastDoubleWhateverTheGuess) {
  Rng rng(2);
  for (int i = 0; i < 20'000; ++i) {
    const double edge = rng.below(10) == 0 ? 0.0 : rng.normal() * std::pow(10.0, rng.uniform(-320, 300));
    const double guess = rng.below(2) == 0 ? edge * (1 + 1e-14 * rng.normal()) : rng.normal() * std::pow(10.0, rng.uniform(-300, 300));
    int calls = 0;
    const auto obeys = [&](double x) { return ++calls, x <= edge; };
    ASSERT_EQ(largest(guess, obeys), edge);
    ASSERT_LE(calls, 140);
    ASSERT_EQ(smallest(guess, [&](double x) { return x >= edge; }), edge);
  }
  EXPECT_EQ(largest(0, [](double) { return true; }), INFINITY);
  EXPECT_EQ(largest(0, [](double) { return false; }), -INFINITY);
  EXPECT_EQ(smallest(NAN, [](double) { return true; }), -INFINITY);
}

}  // namespace
}  // namespace kizzasi::logic
