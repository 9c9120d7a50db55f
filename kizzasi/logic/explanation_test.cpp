#include "kizzasi/logic/explanation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/small_sets_test.h"

namespace kizzasi {
namespace {

// The guard's own distance, with a frame before.
double guard_distance(const Schema& schema, const std::vector<std::string>& list, std::vector<double> before, std::vector<double>& frame) {
  const auto guard = compile_guard(schema, texts(list), {});
  EXPECT_TRUE(guard) << guard.error().text();
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles());
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  (*guard)->accept(state, 0, {}, before);
  (void)(*guard)->propose(state, 1'000'000'000, frame, report, scratch);
  return report.distance;
}

TEST(Explanation, PricesAreDifferencesOfTheGuardsDistance) {
  const Schema schema = channels({"a", "b", "c"});
  Rng rng(21);
  std::size_t priced = 0;
  for (int trial = 0; trial < 80; ++trial) {
    const std::vector<double> limits{1 + rng.uniform(), 2 * rng.uniform(), 0.3 + rng.uniform(), 2 + rng.uniform(), 0.2 * rng.normal()};
    const auto list = [&](const std::vector<double>& l) {
      return std::vector<std::string>{fmt::format("a + 2 * b <= {}", l[0]), fmt::format("b - c <= {}", l[1]),
                                      fmt::format("rate(a) <= {}", l[2]), fmt::format("norm(a, b, c) <= {}", l[3]),
                                      fmt::format("a - b + c == {}", l[4])};
    };
    const std::vector<double> before{0.1 * rng.normal(), 0, 0};
    std::vector<double> proposed{3 * rng.normal(), 3 * rng.normal(), 3 * rng.normal()}, emitted = proposed;
    const double distance = guard_distance(schema, list(limits), before, emitted);
    auto explainer = Explainer::make(schema, texts(list(limits)));
    ASSERT_TRUE(explainer);
    explainer->accept(0, before);
    const auto cost = explainer->explain(1'000'000'000, proposed, emitted);
    ASSERT_TRUE(cost && cost->found) << trial;
    ASSERT_NEAR(cost->distance, distance, 1e-6 * (1 + distance)) << trial;
    if (distance < 1e-3) continue;
    EXPECT_NEAR(std::accumulate(cost->share.begin(), cost->share.end(), 0.0), 1, 1e-6);
    for (std::size_t i = 0; i < limits.size(); ++i) {
      constexpr double kStep = 1e-5;
      auto up = limits, down = limits;
      up[i] += kStep;
      down[i] -= kStep;
      auto frame = proposed;
      const double above = guard_distance(schema, list(up), before, frame);
      frame = proposed;
      const double slope = (above - guard_distance(schema, list(down), before, frame)) / (2 * kStep);
      priced += cost->price[i] > 0.01 ? 1 : 0;
      EXPECT_NEAR(cost->price[i], std::abs(slope), 2e-3 * (1 + std::abs(slope))) << trial << " " << list(limits)[i];
    }
  }
  EXPECT_GT(priced, 100u);
}

TEST(Explanation, SaysWhatMovedAValue) {
  const Schema schema = channels({"inflow", "outflow"});
  std::vector<ConstraintText> set{{.name = "valve rate", .that = "abs(rate(outflow)) <= 2"},
                                  {.name = "range", .that = "0 <= inflow <= 5"},
                                  {.name = "budget", .that = "inflow + outflow <= 14"}};
  auto explainer = Explainer::make(schema, set);
  ASSERT_TRUE(explainer);
  explainer->accept(0, std::vector<double>{1, 10});
  const auto sentence = [&](std::vector<double> proposed, std::vector<double> emitted) {
    const auto cost = explainer->explain(1'000'000'000, proposed, emitted);
    EXPECT_TRUE(cost);
    return cost->sentence;
  };
  EXPECT_EQ(sentence({1, 14.2}, {1, 12}), "outflow 14.2 -> 12: 'valve rate' allows at most +2 a second after 10");
  EXPECT_EQ(sentence({1, 7}, {1, 8}), "outflow 7 -> 8: 'valve rate' allows at least -2 a second after 10");
  EXPECT_EQ(sentence({6, 8}, {5, 8}), "inflow 6 -> 5: 'range' allows at most 5");
  EXPECT_EQ(sentence({4, 11}, {3.5, 10.5}),
            "inflow 4 -> 3.5: 'budget' asks for inflow + outflow <= 14; outflow 11 -> 10.5: 'budget' asks for inflow + outflow <= 14");
  EXPECT_EQ(sentence({1, 10}, {1, 10}), "");
}

// Against a grid over what may move, with the conditions as plain arithmetic.
TEST(Explanation, CounterfactualsEqualAGridSearch) {
  const Schema schema = channels({"a", "b"});
  const std::vector<std::string> list{"a + b <= 3", "rate(a) <= 1", "abs(rate(b)) <= 0.5", "b >= 0.2", "a > 2 -> b >= 0.8"};
  const auto obeys = [](double a0, double b0, double a, double b) {
    constexpr double kSlack = 1e-9;
    return a + b <= 3 + kSlack && a - a0 <= 1 + kSlack && std::abs(b - b0) <= 0.5 + kSlack && b >= 0.2 - kSlack &&
           (a <= 2 + kSlack || b >= 0.8 - kSlack);
  };
  Rng rng(22);
  std::size_t found = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const auto on_grid = [&](double low, double high) { return std::round(rng.uniform(low, high) * 100) / 100; };
    const std::vector<double> before{on_grid(-1, 3), on_grid(0, 2)}, proposed{on_grid(-1, 4), on_grid(0, 2)};
    auto explainer = Explainer::make(schema, texts(list));
    ASSERT_TRUE(explainer);
    explainer->accept(0, before);
    for (const int kind : {0, 1, 2}) {  // the frame before; a alone; both of now
      const std::vector<std::size_t> moving = kind == 0   ? std::vector<std::size_t>{}
                                              : kind == 1 ? std::vector<std::size_t>{0}
                                                          : std::vector<std::size_t>{0, 1};
      const auto said = explainer->what_if(1'000'000'000, proposed, moving, kind == 0);
      ASSERT_TRUE(said);
      double least = INFINITY;
      constexpr int kReach = 450;
      for (int i = -kReach; i <= kReach; ++i) {
        for (int j = kind == 1 ? 0 : -kReach; j <= (kind == 1 ? 0 : kReach); ++j) {
          const double da = 0.01 * i, db = 0.01 * j, distance = std::hypot(da, db);
          if (distance >= least) continue;
          const bool fine = kind == 0 ? obeys(before[0] + da, before[1] + db, proposed[0], proposed[1])
                                      : obeys(before[0], before[1], proposed[0] + da, proposed[1] + db);
          if (fine) least = distance;
        }
      }
      ASSERT_EQ(said->found, std::isfinite(least)) << trial << " " << kind;
      if (!said->found) continue;
      ++found;
      EXPECT_LE(said->distance, least + 1e-9) << trial;
      EXPECT_NEAR(said->distance, least, 0.015) << trial;
    }
  }
  EXPECT_GT(found, 100u);
  auto explainer = Explainer::make(schema, texts(list));
  explainer->accept(0, std::vector<double>{0, 1});
  EXPECT_EQ(explainer->what_if(1'000'000'000, std::vector<double>{1.5, 1}, {}, true)->sentence,
            "it would have held with a 0.5 instead of 0 in the frame before");
}

TEST(Explanation, CountsWhatConstraintsDid) {
  std::vector<ConstraintTally> tallies(2);
  GuardReport report;
  report.active = {1, 0};
  report.broken = {0, 1};
  report.unknown = {0, 1};
  count(report, tallies);
  count(report, tallies);
  count(MoveCost{true, 2, {1, 0.5}, {0.75, 0.25}, ""}, tallies);
  EXPECT_EQ(tallies[0].active, 2u);
  EXPECT_EQ(tallies[1].broken, 2u);
  EXPECT_EQ(tallies[1].unknown, 2u);
  EXPECT_EQ(tallies[0].distance, 1.5);
  EXPECT_EQ(tallies[0].worst_price, 1);
}

}  // namespace
}  // namespace kizzasi
