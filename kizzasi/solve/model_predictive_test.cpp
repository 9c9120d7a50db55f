#include "kizzasi/solve/model_predictive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/banded_predictive.h"
#include "kizzasi/solve/published_test.h"

namespace kizzasi::solve {
namespace {

PredictiveProblem read(const Json& line) {
  PredictiveProblem p;
  p.a = numbers(line.find("A"));
  p.b = numbers(line.find("B"));
  p.states = line.find("A")->items().size();
  p.inputs = p.b.size() / p.states;
  p.horizon = static_cast<std::size_t>(line.find("horizon")->integer());
  p.q = numbers(line.find("Q"));
  p.r = numbers(line.find("R"));
  p.p = numbers(line.find("P"));
  p.u_min = numbers(line.find("u_min"));
  p.u_max = numbers(line.find("u_max"));
  p.du_max = numbers(line.find("du_max"));
  p.x_min = numbers(line.find("x_min"));
  p.x_max = numbers(line.find("x_max"));
  if (line.find("terminal_equality")->boolean()) p.terminal.assign(p.states, 0);
  if (const Json* soft = line.find("soft"); !soft->is_null()) {
    p.soft_l1 = soft->find("l1")->number();
    p.soft_l2 = soft->find("l2")->number();
  }
  return p;
}

TEST(ModelPredictive, GivesThePublishedPlans) {
  for (const Json& line : published("mpc.jsonl", "mpc/mpc.jsonl")) {
    const std::string& id = line.find("id")->string();
    auto c = ModelPredictive::prepare(read(line));
    ASSERT_TRUE(c) << id << " " << c.error().text();
    std::vector<std::uint8_t> active(c->active_bytes());
    const auto x0 = numbers(line.find("x0")), reference = numbers(line.find("reference")), previous = numbers(line.find("u_previous"));
    for (const bool warm : {false, true}) {
      const Status status = c->solve(x0, reference, previous, active);
      ASSERT_EQ(name(status), line.find("status")->string()) << id << warm;
      if (status != Status::kOptimal) continue;
      const auto u = numbers(line.find("u")), x = numbers(line.find("x"));
      for (std::size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(c->inputs()[i], u[i], 1e-8) << id << " u " << i;
      for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(c->states()[i], x[i], 1e-8) << id << " x " << i;
      const double cost = line.find("cost")->number();
      EXPECT_NEAR(c->cost(), cost, 1e-9 * std::abs(cost)) << id;
      const auto slack = numbers(line.find("slack"));
      for (std::size_t i = 0; i < slack.size(); ++i) EXPECT_NEAR(c->slack()[i], slack[i], 1e-8) << id << " slack " << i;
      std::set<std::string> expected, found;
      for (const Json& name : line.find("active")->items()) expected.insert(name.string());
      for (const std::string& name : c->active_names()) found.insert(name);
      EXPECT_EQ(found, expected) << id;
    }
  }
}

TEST(BandedPredictive, GivesThePublishedPlans) {
  for (const Json& line : published("mpc.jsonl", "mpc/mpc.jsonl")) {
    const std::string& id = line.find("id")->string();
    auto c = BandedPredictive::prepare(read(line));
    ASSERT_TRUE(c) << id << " " << c.error().text();
    const auto x0 = numbers(line.find("x0")), reference = numbers(line.find("reference")), previous = numbers(line.find("u_previous"));
    const Status status = c->solve(x0, reference, previous);
    ASSERT_EQ(name(status), line.find("status")->string()) << id;
    if (status != Status::kOptimal) continue;
    const auto u = numbers(line.find("u")), x = numbers(line.find("x")), slack = numbers(line.find("slack"));
    for (std::size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(c->inputs()[i], u[i], 1e-8) << id << " u " << i;
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(c->states()[i], x[i], 1e-8) << id << " x " << i;
    for (std::size_t i = 0; i < slack.size(); ++i) EXPECT_NEAR(c->slack()[i], slack[i], 1e-8) << id << " slack " << i;
    const double cost = line.find("cost")->number();
    EXPECT_NEAR(c->cost(), cost, 1e-9 * std::abs(cost)) << id;
  }
}

PredictiveProblem random_problem(Rng& rng, std::size_t n, std::size_t m, std::size_t horizon) {
  PredictiveProblem p;
  p.states = n;
  p.inputs = m;
  p.horizon = horizon;
  p.a.assign(n * n, 0);
  for (double& v : p.a) v = 0.5 * rng.normal() / std::sqrt(static_cast<double>(n));
  for (std::size_t i = 0; i < n; ++i) p.a[i * n + i] += 0.6;
  p.b.resize(n * m);
  for (double& v : p.b) v = rng.normal();
  p.q.assign(n * n, 0);
  p.p.assign(n * n, 0);
  p.r.assign(m * m, 0);
  for (std::size_t i = 0; i < n; ++i) p.q[i * n + i] = 1, p.p[i * n + i] = 3;
  for (std::size_t i = 0; i < m; ++i) p.r[i * m + i] = 0.1;
  p.u_min.assign(m, -0.8);
  p.u_max.assign(m, 0.7);
  p.du_max.assign(m, 0.5);
  p.x_min.assign(n, -3);
  p.x_max.assign(n, 3);
  p.soft_l1 = 5;
  p.soft_l2 = 2;
  return p;
}

// x' = x + u, x0 = 2, two steps, cost x^2 + u^2 of both: solved by hand.
TEST(ModelPredictive, EqualsHandSolvedPlans) {
  PredictiveProblem p;
  p.states = p.inputs = 1;
  p.horizon = 2;
  p.a = p.b = p.q = p.r = p.p = {1};
  const std::vector<double> x0{2}, zero{0};
  const auto expect = [&](double u0, double u1, double cost) {
    auto c = ModelPredictive::prepare(p);
    ASSERT_TRUE(c);
    ASSERT_EQ(c->solve(x0, zero, zero), Status::kOptimal);
    EXPECT_NEAR(c->inputs()[0], u0, 1e-14);
    EXPECT_NEAR(c->inputs()[1], u1, 1e-14);
    EXPECT_NEAR(c->cost() + 4, cost, 1e-13);  // x0 costs nothing here
  };
  expect(-1.2, -0.4, 6.4);
  p.u_min = {-1}, p.u_max = {1};
  expect(-1, -0.5, 6.5);
  p.u_min = {-0.5}, p.u_max = {0.5};
  expect(-0.5, -0.5, 7.75);
  // One move for both steps: u with x1 = 2 + u, x2 = 2 + 2u; least of (2+u)^2 + (2+2u)^2 + 2u^2 at u = -6/7.
  p.u_min = {}, p.u_max = {};
  p.control_horizon = 1;
  expect(-6.0 / 7, -6.0 / 7, 4 + 8 * 8 / 49.0 + 2 * 2 / 49.0 + 2 * 36 / 49.0);
}

TEST(BandedPredictive, EqualsTheCondensedForm) {
  Rng rng(77);
  std::size_t compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t n = 1 + rng.below(4), m = 1 + rng.below(2);
    PredictiveProblem p = random_problem(rng, n, m, 3 + rng.below(20));
    p.control_horizon = rng.below(2) == 0 ? 0 : 1 + rng.below(p.horizon);
    auto condensed = ModelPredictive::prepare(p);
    auto banded = BandedPredictive::prepare(p);
    ASSERT_TRUE(condensed && banded);
    std::vector<double> x0(n), reference(n), previous(m, 0), by_first(m);
    for (double& v : x0) v = 2 * rng.normal();
    for (double& v : reference) v = rng.normal();
    for (double& v : by_first) v = rng.normal();
    ASSERT_EQ(condensed->solve(x0, reference, previous), Status::kOptimal);
    ASSERT_EQ(banded->solve(x0, reference, previous), Status::kOptimal) << trial;
    for (std::size_t i = 0; i < condensed->inputs().size(); ++i) EXPECT_NEAR(banded->inputs()[i], condensed->inputs()[i], 1e-8) << trial;
    EXPECT_NEAR(banded->cost(), condensed->cost(), 1e-8 * std::abs(condensed->cost()));
    std::vector<double> a(n), b(n), c(m), d(n), e(n), f(m);
    condensed->gradient(by_first, a, b, c);
    banded->gradient(by_first, d, e, f);
    bool same = true;  // but on edges, where both are right
    for (std::size_t i = 0; i < n; ++i) same = same && std::abs(a[i] - d[i]) < 1e-4 && std::abs(b[i] - e[i]) < 1e-4;
    for (std::size_t i = 0; i < m; ++i) same = same && std::abs(c[i] - f[i]) < 1e-4;
    compared += same ? 1 : 0;
  }
  EXPECT_GE(compared, 57u);
}

TEST(ModelPredictive, GradientsEqualDifferences) {
  Rng rng(31);
  std::size_t compared = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const std::size_t n = 1 + rng.below(3), m = 1 + rng.below(2);
    PredictiveProblem p = random_problem(rng, n, m, 6);
    if (trial % 2 == 1) p.control_horizon = 3;
    auto c = ModelPredictive::prepare(p);
    ASSERT_TRUE(c);
    std::vector<double> x0(n), reference(n), previous(m), weight(m);
    for (auto* v : {&x0, &reference, &previous, &weight}) {
      for (double& x : *v) x = (v == &x0 ? 2 : 0.5) * rng.normal();
    }
    for (double& x : previous) x = std::clamp(x, -0.7, 0.6);
    ASSERT_EQ(c->solve(x0, reference, previous), Status::kOptimal);
    const std::vector<std::uint8_t> activity(c->program().activity().begin(), c->program().activity().end());
    std::vector<double> by_x0(n), by_reference(n), by_previous(m);
    c->gradient(weight, by_x0, by_reference, by_previous);
    const auto loss = [&](bool& same) {
      EXPECT_EQ(c->solve(x0, reference, previous), Status::kOptimal);
      same = same && std::equal(activity.begin(), activity.end(), c->program().activity().begin());
      double sum = 0;
      for (std::size_t i = 0; i < m; ++i) sum += weight[i] * c->inputs()[i];
      return sum;
    };
    const auto expect_slopes = [&](std::vector<double>& at, const std::vector<double>& slope) {
      for (std::size_t i = 0; i < at.size(); ++i) {
        const double before = at[i], step = 1e-6;
        bool same = true;
        at[i] = before + step;
        const double up = loss(same);
        at[i] = before - step;
        const double down = loss(same);
        at[i] = before;
        if (!same) continue;
        EXPECT_NEAR((up - down) / (2 * step), slope[i], 1e-6 * (1 + std::abs(slope[i]))) << trial;
        ++compared;
      }
    };
    expect_slopes(x0, by_x0);
    expect_slopes(reference, by_reference);
    expect_slopes(previous, by_previous);
  }
  EXPECT_GT(compared, 100u);
}

// A loop closed over the plant: the shifted start changes nothing but the work.
TEST(ModelPredictive, AShiftedStartGivesTheSamePlanWithLessWork) {
  Rng rng(32);
  std::size_t shifted = 0, cold = 0;
  for (int trial = 0; trial < 20; ++trial) {
    const PredictiveProblem p = random_problem(rng, 3, 2, 12);
    auto c = ModelPredictive::prepare(p), fresh = ModelPredictive::prepare(p);
    ASSERT_TRUE(c && fresh);
    std::vector<double> x{4, -4, 3}, reference{0.5, 0, 0}, previous{0, 0};
    std::vector<std::uint8_t> active(c->active_bytes());
    for (int step = 0; step < 30; ++step) {
      ASSERT_EQ(c->solve(x, reference, previous, active), Status::kOptimal);
      ASSERT_EQ(fresh->solve(x, reference, previous), Status::kOptimal);
      shifted += c->program().iterations();
      cold += fresh->program().iterations();
      for (std::size_t i = 0; i < c->inputs().size(); ++i) ASSERT_NEAR(c->inputs()[i], fresh->inputs()[i], 1e-10) << trial << " " << step;
      for (std::size_t i = 0; i < 2; ++i) {
        ASSERT_LE(std::abs(c->inputs()[i] - previous[i]), 0.5 + 1e-12);
        previous[i] = c->inputs()[i];
      }
      for (std::size_t i = 0; i < 3; ++i) x[i] = c->states()[i] + 0.05 * rng.normal();
      c->shift(active);
    }
  }
  EXPECT_LT(shifted, cold / 2);
}

TEST(ModelPredictive, WrongSizesAreNamed) {
  Rng rng(33);
  PredictiveProblem p = random_problem(rng, 2, 1, 4);
  p.b.pop_back();
  auto c = ModelPredictive::prepare(p);
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().text(), "predictive problem: B has 1 numbers (expected 2 rows of 1).");
  p = random_problem(rng, 2, 1, 4);
  p.r = {-9};
  EXPECT_FALSE(ModelPredictive::prepare(p));
  p.r = {std::nan("")};
  EXPECT_FALSE(ModelPredictive::prepare(p));
}

}  // namespace
}  // namespace kizzasi::solve
