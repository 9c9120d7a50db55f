#include "kizzasi/solve/uncertain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kizzasi/base/rng.h"

namespace kizzasi::solve {
namespace {

using Values = std::vector<double>;

Values normals(Rng& rng, std::size_t n) {
  Values out(n);
  for (double& x : out) x = rng.normal();
  return out;
}

double dot(const Values& a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void expect_gradient(const std::function<double(std::span<const double>, std::span<double>)>& value, Values x) {
  Values gradient(x.size());
  value(x, gradient);
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double kStep = 1e-6;
    Values above(x), below(x);
    above[i] += kStep;
    below[i] -= kStep;
    EXPECT_NEAR(gradient[i], (value(above, {}) - value(below, {})) / (2 * kStep), 1e-7) << i;
  }
}

TEST(Uncertain, QuantilesOfTheNormalLaw) {
  // Tables of the normal law.
  EXPECT_NEAR(standard_normal_quantile(0.95), 1.6448536269514722, 1e-13);
  EXPECT_NEAR(standard_normal_quantile(0.975), 1.959963984540054, 1e-13);
  EXPECT_NEAR(standard_normal_quantile(0.001), -3.090232306167813, 1e-13);
  EXPECT_NEAR(standard_normal_quantile(1e-12), -7.034483825301131, 1e-11);
  EXPECT_NEAR(standard_normal_quantile(0.5), 0, 1e-16);
  EXPECT_TRUE(std::isinf(standard_normal_quantile(0)) && std::isinf(standard_normal_quantile(1)));
}

TEST(Uncertain, GaussianLimitsHoldAsOftenAsTheySay) {
  Rng rng(1);
  constexpr std::size_t kN = 4;
  for (const double confidence : {0.6, 0.9, 0.99}) {
    const Values x = normals(rng, kN), mean = normals(rng, kN), root = normals(rng, kN * kN);
    Values covariance(kN * kN);
    for (std::size_t i = 0; i < kN; ++i) {
      for (std::size_t j = 0; j < kN; ++j) {
        for (std::size_t k = 0; k < kN; ++k) covariance[i * kN + j] += root[i * kN + k] * root[j * kN + k];
      }
    }
    const double limit = gaussian_limit(x, mean, covariance, confidence);
    constexpr int kDraws = 200'000;
    int held = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const Values u = normals(rng, kN);
      Values a(mean);
      for (std::size_t i = 0; i < kN; ++i) a[i] += dot(u, std::span(root).subspan(i * kN, kN));
      held += dot(a, x) <= limit ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(held) / kDraws, confidence, 5 * std::sqrt(confidence * (1 - confidence) / kDraws));
    expect_gradient([&](std::span<const double> at, std::span<double> g) { return gaussian_limit(at, mean, covariance, confidence, g); },
                    x);
  }
}

TEST(Uncertain, TheWorstCaseIsReachedAndNeverPassed) {
  Rng rng(2);
  constexpr std::size_t kN = 5, kAxes = 3;
  for (int trial = 0; trial < 50; ++trial) {
    const Values x = normals(rng, kN), centre = normals(rng, kN), shape = normals(rng, kN * kAxes), corners = normals(rng, 7 * kN);
    Values radius = normals(rng, kN);
    for (double& r : radius) r = std::abs(r);
    // Boxes: every corner.
    double most = -1e300;
    for (unsigned corner = 0; corner < 1U << kN; ++corner) {
      Values a(centre);
      for (std::size_t i = 0; i < kN; ++i) a[i] += (corner >> i & 1U) != 0 ? radius[i] : -radius[i];
      most = std::max(most, dot(a, x));
    }
    EXPECT_NEAR(box_limit(x, centre, radius), most, 1e-12);
    // Ellipsoids: the worst direction is the one the closed form names; no other passes it.
    const double limit = ellipsoid_limit(x, centre, shape);
    Values best = normals(rng, kAxes);
    double nearest = 1e300;
    for (int draw = 0; draw < 2000; ++draw) {
      Values u = normals(rng, kAxes);
      const double size = std::sqrt(dot(u, u));
      Values a(centre);
      for (std::size_t i = 0; i < kN; ++i) {
        for (std::size_t k = 0; k < kAxes; ++k) a[i] += shape[i * kAxes + k] * u[k] / size;
      }
      EXPECT_LE(dot(a, x), limit + 1e-12);
      nearest = std::min(nearest, limit - dot(a, x));
    }
    EXPECT_LT(nearest, 0.05 * (1 + std::abs(limit)));
    // Polytopes: no mixture of corners passes the worst corner.
    const double worst = polytope_limit(x, corners);
    for (int draw = 0; draw < 200; ++draw) {
      Values weight(7), a(kN);
      double total = 0;
      for (double& w : weight) total += w = rng.gamma(1);
      for (std::size_t c = 0; c < 7; ++c) {
        for (std::size_t i = 0; i < kN; ++i) a[i] += weight[c] / total * corners[c * kN + i];
      }
      EXPECT_LE(dot(a, x), worst + 1e-12);
    }
    expect_gradient([&](std::span<const double> at, std::span<double> g) { return box_limit(at, centre, radius, g); }, x);
    expect_gradient([&](std::span<const double> at, std::span<double> g) { return ellipsoid_limit(at, centre, shape, g); }, x);
    expect_gradient([&](std::span<const double> at, std::span<double> g) { return polytope_limit(at, corners, g); }, x);
  }
}

TEST(Uncertain, TheMeanOfTheWorstLosses) {
  Rng rng(3);
  for (const std::size_t n : {1UL, 2UL, 7UL, 100UL}) {
    for (const double alpha : {0.0, 0.25, 0.9, 0.999}) {
      const Values losses = normals(rng, n);
      Values scratch(n), weights(n);
      const double value = conditional_value_at_risk(losses, alpha, scratch, weights);
      // Rockafellar and Uryasev: the least over t of t + mean(max(loss - t, 0)) / (1 - alpha), attained at one of the losses.
      double least = 1e300;
      for (const double t : losses) {
        double excess = 0;
        for (const double loss : losses) excess += std::max(loss - t, 0.0) / static_cast<double>(n);
        least = std::min(least, t + excess / (1 - alpha));
      }
      EXPECT_NEAR(value, least, 1e-12) << n << " " << alpha;
      EXPECT_NEAR(dot(losses, weights), value, 1e-12);
    }
  }
  Values draws = normals(rng, 400'000), scratch(draws.size());
  for (double& x : draws) x = 3 + 2 * x;
  EXPECT_NEAR(conditional_value_at_risk(draws, 0.95, scratch), gaussian_conditional_value_at_risk(3, 2, 0.95), 0.03);
  EXPECT_NEAR(gaussian_conditional_value_at_risk(0, 1, 0.95), 2.0627128075074257, 1e-12);
}

TEST(Uncertain, ScenariosByTheBinomialTail) {
  // One variable: (1 - violation)^N <= 1 - confidence.
  EXPECT_EQ(*scenario_count(0.05, 0.95, 1), 59);
  EXPECT_EQ(*scenario_count(0.01, 0.99, 1), 459);
  for (const std::int64_t variables : {2, 5, 10}) {
    for (const double violation : {0.2, 0.05}) {
      const std::int64_t count = *scenario_count(violation, 0.999, variables);
      const auto tail = [&](std::int64_t n) {
        long double total = 0, binomial = 1;
        for (std::int64_t i = 0; i < variables; ++i) {
          total += binomial * std::pow(static_cast<long double>(violation), static_cast<long double>(i)) *
                   std::pow(1 - static_cast<long double>(violation), static_cast<long double>(n - i));
          binomial = binomial * static_cast<long double>(n - i) / static_cast<long double>(i + 1);
        }
        return total;
      };
      EXPECT_LE(tail(count), 0.001L);
      EXPECT_GT(tail(count - 1), 0.001L);
    }
  }
  EXPECT_FALSE(scenario_count(0, 0.9, 1));
  EXPECT_FALSE(scenario_count(0.1, 1, 1));
  EXPECT_FALSE(scenario_count(1e-10, 0.9, 1));
}

// The scenario bound itself: the largest of N draws is passed by a new one with probability above `violation` in a share 1 - confidence.
TEST(Uncertain, ScenarioSolutionsBreakAsSeldomAsPromised) {
  Rng rng(4);
  const std::int64_t count = *scenario_count(0.1, 0.9, 1);
  int bad = 0;
  constexpr int kTrials = 20'000;
  for (int trial = 0; trial < kTrials; ++trial) {
    double most = 0;
    for (std::int64_t i = 0; i < count; ++i) most = std::max(most, rng.uniform());
    bad += 1 - most > 0.1 ? 1 : 0;
  }
  EXPECT_LE(static_cast<double>(bad) / kTrials, 0.1 + 5 * std::sqrt(0.1 * 0.9 / kTrials));
}

}  // namespace
}  // namespace kizzasi::solve
