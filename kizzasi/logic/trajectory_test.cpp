#include "kizzasi/logic/trajectory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/small_sets_test.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi {
namespace {

Schema two_channels() { return {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}}, 500'000'000, ""}; }

// Minimise |x - y|^2 over dense rows, by the active-set method: what the tests compare with. Rows are written out by hand.
struct Dense {
  std::size_t n;
  std::vector<double> a{}, lo{}, hi{};
  void add(std::initializer_list<std::pair<std::size_t, double>> terms, double low, double high) {
    a.resize(a.size() + n, 0);
    for (const auto& [i, v] : terms) a[a.size() - n + i] += v;
    lo.push_back(low);
    hi.push_back(high);
  }
  std::vector<double> nearest(std::span<const double> y) const {
    solve::QuadraticProgram qp;
    qp.prepare(n, lo.size());
    std::vector<double> ones(n, 1), g(n);
    for (std::size_t i = 0; i < n; ++i) g[i] = -y[i];
    EXPECT_EQ(qp.set_diagonal(ones), solve::Curvature::kPositive);
    EXPECT_TRUE(qp.set_rows(a, lo.size()));
    EXPECT_EQ(qp.solve({g, {}, lo, hi, {}, {}}), solve::Status::kOptimal);
    return {qp.x().begin(), qp.x().end()};
  }
};

// Bounds, rates, a sum over channels, a mean and an integral over windows; some rows have happened.
TEST(Trajectory, IsTheNearestCourseThatObeys) {
  const auto texts_of_all =
      texts({"-2 <= a <= 3", "abs(rate(a)) <= 2", "rate(b) <= 3", "a + b <= 4", "mean(a, 1.5s) <= 1.5", "integral(b, 1s) >= -1"});
  auto t = Trajectory::compile(two_channels(), texts_of_all, {});
  ASSERT_TRUE(t) << t.error().text();
  EXPECT_EQ(t->together().size(), 6u);
  EXPECT_TRUE(t->step_by_step().empty());
  Rng rng(11);
  std::size_t moved = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t rows = 2 + rng.below(10), past = rng.below(2);
    std::vector<double> y(2 * rows);
    for (double& v : y) v = 3 * rng.normal();
    if (past == 1) y[0] = 0.5, y[1] = 0.3;
    Dense dense{2 * rows};
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t a = 2 * r, b = 2 * r + 1;
      if (r < past) {
        dense.add({{a, 1}}, y[a], y[a]);
        dense.add({{b, 1}}, y[b], y[b]);
        continue;
      }
      dense.add({{a, 1}}, -2, 3);
      dense.add({{a, 1}, {b, 1}}, -solve::kNoBound, 4);
      if (r > 0) {
        dense.add({{a, 1}, {a - 2, -1}}, -1, 1);  // 2 a second, half a second
        dense.add({{b, 1}, {b - 2, -1}}, -solve::kNoBound, 1.5);
        dense.add({{b, 0.5}, {b - 2, 0.5}}, -1, solve::kNoBound);
      } else {
        dense.add({{b, 0.5}}, -1, solve::kNoBound);
      }
      if (r == 0) dense.add({{a, 1}}, -solve::kNoBound, 1.5);
      if (r == 1) dense.add({{a, 1}, {a - 2, 1}}, -solve::kNoBound, 3);
      if (r >= 2) dense.add({{a, 1}, {a - 2, 1}, {a - 4, 1}}, -solve::kNoBound, 4.5);
    }
    const std::vector<double> expected = dense.nearest(y);
    std::vector<double> x = y;
    const auto report = t->project(x, {}, past);
    ASSERT_TRUE(report) << report.error().text();
    double distance = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(x[i], expected[i], 1e-8) << trial << " value " << i;
      distance += (expected[i] - y[i]) * (expected[i] - y[i]);
    }
    EXPECT_NEAR(report->distance, std::sqrt(distance), 1e-8);
    EXPECT_LT(report->after, 1e-8);
    EXPECT_NE(report->status, GuardStatus::kInfeasible) << trial;
    moved += report->status == GuardStatus::kMoved ? 1 : 0;

    // What leaves obeys as the guard checks it, and a second time nothing moves.
    std::vector<double> again = x;
    const auto second = t->project(again, {}, past);
    ASSERT_TRUE(second);
    EXPECT_EQ(second->status, GuardStatus::kClean);
    EXPECT_EQ(again, x);
  }
  EXPECT_GT(moved, 250u);
}

// Nearer than frame by frame: a step in the wish is met half way before it comes.
TEST(Trajectory, LooksAhead) {
  auto t = Trajectory::compile(two_channels(), texts({"abs(rate(a)) <= 2"}), {});
  ASSERT_TRUE(t);
  std::vector<double> x;
  for (int r = 0; r < 20; ++r) x.insert(x.end(), {r < 10 ? 0.0 : 4.0, 0.0});
  const std::vector<double> wish = x;
  const auto report = t->project(x, {});
  ASSERT_TRUE(report);
  // Symmetric about the middle of the step by the symmetry of the problem; frame by frame nothing moves before row 10.
  for (std::size_t r = 0; r < 10; ++r) EXPECT_NEAR(x[2 * r] + x[2 * (19 - r)], 4, 1e-9);
  EXPECT_GT(x[2 * 9], 1);
  // Frame by frame: rows 10, 11, 12 at 1, 2, 3.
  EXPECT_LT(report->distance, std::sqrt(9.0 + 4.0 + 1.0));
}

TEST(Trajectory, SoftConditionsCostTheirSlackSquared) {
  auto constraints = texts({"a <= 1"});
  constraints[0].soft = true;
  constraints[0].weight = 3;
  auto t = Trajectory::compile(two_channels(), constraints, {});
  ASSERT_TRUE(t);
  std::vector<double> x{5, 0, 0, 0};
  ASSERT_TRUE(t->solve(x, std::vector<std::int64_t>{0, 500'000'000}, 0).value());
  EXPECT_NEAR(x[0], (5 + 3 * 1) / 4.0, 1e-9);  // (x - 5)^2 + 3 (x - 1)^2
  EXPECT_NEAR(x[2], 0, 1e-12);
}

TEST(Trajectory, LeavesChoicesToTheGuard) {
  auto t = Trajectory::compile(two_channels(), texts({"abs(rate(a)) <= 2", "a > 1 -> b >= 2"}), {});
  ASSERT_TRUE(t) << t.error().text();
  ASSERT_EQ(t->step_by_step().size(), 1u);
  EXPECT_EQ(t->step_by_step()[0], "a > 1 -> b >= 2");
  std::vector<double> x{0, 0, 3, 0, 3, 0};
  const auto report = t->project(x, {});
  ASSERT_TRUE(report);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_TRUE(!(x[2 * r] > 1) || x[2 * r + 1] >= 2);
  for (std::size_t r = 1; r < 3; ++r) EXPECT_LE(std::abs(x[2 * r] - x[2 * r - 2]), 1);
}

// Missing values, uneven times, an equality, a course that cannot be.
TEST(Trajectory, StatesWhatItDoesWithTheUnusual) {
  auto t = Trajectory::compile(two_channels(), texts({"a + b == 2", "rate(a) <= 1"}), {});
  ASSERT_TRUE(t);
  std::vector<double> x{1, 1, std::nan(""), 1, 9, 1};
  const std::vector<std::int64_t> times{0, 1'000'000'000, 4'000'000'000};
  const auto report = t->project(x, times);
  ASSERT_TRUE(report) << report.error().text();
  EXPECT_EQ(report->replaced, 1u);
  EXPECT_LE(x[2] - x[0], 1);
  EXPECT_LE(x[4] - x[2], 3);
  for (std::size_t r = 0; r < 3; ++r) EXPECT_NEAR(x[2 * r] + x[2 * r + 1], 2, 1e-14);

  EXPECT_FALSE(t->project(x, std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_FALSE(t->project(x, std::vector<std::int64_t>{0, 1}));
  EXPECT_FALSE(t->project(x, {}, 4));
  EXPECT_FALSE(t->project(std::span(x).subspan(1), {}));

  auto narrow = Trajectory::compile(two_channels(), texts({"a >= 5", "rate(a) <= 1"}), {});
  ASSERT_TRUE(narrow);
  std::vector<double> late{0, 0, 0, 0};
  const auto lost = narrow->project(late, {}, 1);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->status, GuardStatus::kInfeasible);
}

}  // namespace
}  // namespace kizzasi
