#include "kizzasi/solve/nonlinear_predictive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/base/rng.h"

namespace kizzasi::solve {
namespace {

// A pendulum with a motor, by a semi-implicit step.
class Pendulum : public NonlinearPlant {
 public:
  void next(std::span<const double> x, std::span<const double> u, std::span<double> to) const noexcept override {
    const double speed = x[1] + kStep * (std::sin(x[0]) - 0.1 * x[1] + u[0]);
    to[0] = x[0] + kStep * speed;
    to[1] = speed;
  }
  void jacobians(std::span<const double> x, std::span<const double>, std::span<double> a, std::span<double> b) const noexcept override {
    a[2] = kStep * std::cos(x[0]);
    a[3] = 1 - 0.1 * kStep;
    a[0] = 1 + kStep * a[2];
    a[1] = kStep * a[3];
    b[1] = kStep;
    b[0] = kStep * kStep;
  }

 private:
  static constexpr double kStep = 0.1;
};

class Linear : public NonlinearPlant {
 public:
  explicit Linear(const PredictiveProblem& p) : p_(p) {}
  void next(std::span<const double> x, std::span<const double> u, std::span<double> to) const noexcept override {
    for (std::size_t i = 0; i < p_.states; ++i) {
      to[i] = 0;
      for (std::size_t j = 0; j < p_.states; ++j) to[i] += p_.a[i * p_.states + j] * x[j];
      for (std::size_t j = 0; j < p_.inputs; ++j) to[i] += p_.b[i * p_.inputs + j] * u[j];
    }
  }
  void jacobians(std::span<const double>, std::span<const double>, std::span<double> a, std::span<double> b) const noexcept override {
    std::copy(p_.a.begin(), p_.a.end(), a.begin());
    std::copy(p_.b.begin(), p_.b.end(), b.begin());
  }

 private:
  const PredictiveProblem& p_;
};

PredictiveProblem pendulum_problem(std::size_t horizon) {
  PredictiveProblem p;
  p.states = 2;
  p.inputs = 1;
  p.horizon = horizon;
  p.q = {1, 0, 0, 0.1};
  p.p = {20, 0, 0, 5};
  p.r = {0.05};
  return p;
}

double cost_by_hand(const PredictiveProblem& p, const NonlinearPlant& plant, const std::vector<double>& x0,
                    const std::vector<double>& plan) {
  std::vector<double> x = x0, to(2);
  double cost = 0;
  for (std::size_t k = 0; k < p.horizon; ++k) {
    plant.next(x, {plan.data() + k, 1}, to);
    x = to;
    const auto& w = k + 1 == p.horizon ? p.p : p.q;
    cost += w[0] * x[0] * x[0] + w[3] * x[1] * x[1] + p.r[0] * plan[k] * plan[k];
  }
  return cost;
}

TEST(NonlinearPredictive, EqualsTheLinearControllerOnALinearPlant) {
  PredictiveProblem p = pendulum_problem(12);
  p.a = {1.01, 0.1, 0.1, 0.95};
  p.b = {0.005, 0.1};
  p.u_min = {-1}, p.u_max = {1}, p.du_max = {0.8}, p.x_min = {-3, -0.8}, p.x_max = {3, 0.8};
  auto linear = ModelPredictive::prepare(p);
  PredictiveProblem without = p;
  without.a.clear();
  without.b.clear();
  const Linear plant(p);
  auto c = NonlinearPredictive::prepare(without, plant);
  ASSERT_TRUE(linear && c);
  const std::vector<double> x0{0.9, -0.3}, reference{0, 0}, previous{0.1};
  std::vector<double> plan(12, 0);
  ASSERT_EQ(linear->solve(x0, reference, previous), Status::kOptimal);
  ASSERT_EQ(c->solve(x0, reference, previous, plan), Status::kOptimal);
  for (std::size_t k = 0; k < 12; ++k) EXPECT_NEAR(plan[k], linear->inputs()[k], 1e-9);
  EXPECT_NEAR(c->cost(), linear->cost(), 1e-9 * linear->cost());
}

// No direction inside the bounds lets the cost fall: by differences, on the plant itself.
TEST(NonlinearPredictive, FindsPlansWhoseCostCannotFall) {
  const Pendulum plant;
  Rng rng(51);
  for (int trial = 0; trial < 20; ++trial) {
    PredictiveProblem p = pendulum_problem(15);
    if (trial % 2 == 1) p.u_min = {-1.5}, p.u_max = {1.5};
    auto c = NonlinearPredictive::prepare(p, plant);
    ASSERT_TRUE(c);
    const std::vector<double> x0{0.8 * rng.normal(), rng.normal()}, reference{0, 0}, previous{0};
    std::vector<double> plan(15, 0);
    ASSERT_EQ(c->solve(x0, reference, previous, plan), Status::kOptimal) << trial;
    EXPECT_NEAR(c->cost(), cost_by_hand(p, plant, x0, plan), 1e-12 * (1 + c->cost()));
    EXPECT_LE(c->residual(), 1e-7);
    for (std::size_t k = 0; k < 15; ++k) {
      std::vector<double> moved = plan;
      moved[k] += 1e-5;
      const double up = cost_by_hand(p, plant, x0, moved);
      moved[k] -= 2e-5;
      const double slope = (up - cost_by_hand(p, plant, x0, moved)) / 2e-5;
      const bool low = !p.u_min.empty() && plan[k] <= p.u_min[0] + 1e-9, high = !p.u_max.empty() && plan[k] >= p.u_max[0] - 1e-9;
      if (low) {
        EXPECT_GE(slope, -1e-5);
      } else if (high) {
        EXPECT_LE(slope, 1e-5);
      } else {
        EXPECT_NEAR(slope, 0, 1e-5 * (1 + c->cost())) << trial << " input " << k;
      }
    }
  }
}

TEST(NonlinearPredictive, KeepsStatesInsideAndNamesWhatCannotBe) {
  const Pendulum plant;
  PredictiveProblem p = pendulum_problem(15);
  p.u_min = {-4}, p.u_max = {4}, p.du_max = {3}, p.x_min = {-3, -0.5}, p.x_max = {3, 0.5};
  auto c = NonlinearPredictive::prepare(p, plant);
  ASSERT_TRUE(c);
  const std::vector<double> x0{0.6, 0}, reference{0, 0}, previous{0};
  std::vector<double> plan(15, 0);
  ASSERT_EQ(c->solve(x0, reference, previous, plan), Status::kOptimal);
  double fastest = 0;
  for (std::size_t k = 0; k < 15; ++k) fastest = std::max(fastest, std::abs(c->states()[2 * k + 1]));
  EXPECT_LE(fastest, 0.5 + 1e-7);
  EXPECT_GT(fastest, 0.499);  // the bound is what holds it
  for (std::size_t k = 0; k < 15; ++k) EXPECT_LE(std::abs(plan[k] - (k == 0 ? 0 : plan[k - 1])), 3 + 1e-9);
  // From too fast a start nothing keeps the speed inside.
  std::fill(plan.begin(), plan.end(), 0.0);
  EXPECT_EQ(c->solve(std::vector<double>{0.6, 2.0}, reference, previous, plan), Status::kInfeasible);
  // At rest, upright, at the end.
  p.x_min.clear(), p.x_max.clear();
  p.terminal = {0, 0};
  c = NonlinearPredictive::prepare(p, plant);
  ASSERT_TRUE(c);
  std::fill(plan.begin(), plan.end(), 0.0);
  ASSERT_EQ(c->solve(x0, reference, previous, plan), Status::kOptimal);
  EXPECT_NEAR(c->states()[28], 0, 1e-7);
  EXPECT_NEAR(c->states()[29], 0, 1e-7);
}

}  // namespace
}  // namespace kizzasi::solve
