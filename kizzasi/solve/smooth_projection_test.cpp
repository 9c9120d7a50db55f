// Sets cut out by smooth functions: closed forms, other solvers and dense searches give the same nearest points.
#include "kizzasi/solve/smooth_projection.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/projection.h"
#include "kizzasi/solve/quadric_projection.h"
#include "tests/allocations/count.h"

namespace kizzasi::solve {
namespace {

class Made : public SmoothFunction {
 public:
  using F = std::function<double(std::span<const double>, std::span<double>)>;
  explicit Made(F f) : f_(std::move(f)) {}
  double value(std::span<const double> x, std::span<double> gradient) const noexcept override { return f_(x, gradient); }

 private:
  F f_;
};

// sum q x^2 + c x - b, times `sign`.
Made quadric(std::vector<double> q, std::vector<double> c, double b, double sign = 1) {
  return Made([=](std::span<const double> x, std::span<double> gradient) {
    double sum = -b;
    for (std::size_t j = 0; j < x.size(); ++j) sum += q[j] * x[j] * x[j] + c[j] * x[j];
    for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] = sign * (2 * q[j] * x[j] + c[j]);
    return sign * sum;
  });
}

struct Found {
  Status status;
  std::vector<double> x;
  double residual, distance;
};
Found nearest(std::vector<const SmoothFunction*> functions, const std::vector<double>& y, const std::vector<double>& weight = {},
              const std::vector<double>& lower = {}, const std::vector<double>& upper = {}) {
  SmoothProjection projection;
  projection.prepare(y.size(), functions);
  std::vector<double> x(y.size(), -77);
  const Status status = projection.nearest(y, weight, lower, upper, {}, x);
  if (status == Status::kOptimal) {
    for (const SmoothFunction* f : functions) EXPECT_LE(f->value(x, {}), 0);
    for (std::size_t j = 0; j < y.size() && !lower.empty(); ++j) EXPECT_TRUE(x[j] >= lower[j] && x[j] <= upper[j]);
  } else {
    EXPECT_EQ(x, std::vector<double>(y.size(), -77));
  }
  return {status, x, projection.residual(), projection.distance()};
}

TEST(SmoothProjection, OutsideOfABallIsTheWayOutAlongTheRadius) {
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 2 + rng.below(5);
    std::vector<double> y(n);
    double squared = 0;
    for (double& v : y) v = rng.normal(), squared += v * v;
    const double length = rng.uniform(0.05, 0.99) / std::sqrt(squared);
    for (double& v : y) v *= length;
    const Made keep_out = quadric(std::vector<double>(n, 1), std::vector<double>(n, 0), 1, -1);
    const Found found = nearest({&keep_out}, y);
    ASSERT_EQ(found.status, Status::kOptimal) << trial;
    const double r = length * std::sqrt(squared);
    for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(found.x[j], y[j] / r, 1e-9 / r);
    EXPECT_NEAR(found.distance, 1 - r, 1e-9);
    EXPECT_LE(found.residual, 1e-7);
  }
}

TEST(SmoothProjection, EllipsoidsAsTheClosedForm) {
  Rng rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 1 + rng.below(6);
    std::vector<double> q(n), c(n), y(n), full(n * n, 0), x(n);
    for (std::size_t j = 0; j < n; ++j) {
      q[j] = std::exp(2 * rng.normal());
      c[j] = rng.normal();
      y[j] = 3 * rng.normal();
      full[j * n + j] = q[j];
    }
    const double b = rng.uniform(0.1, 5);
    QuadricProjection exact;
    exact.prepare(n, 0);
    ASSERT_EQ(exact.set_quadric(full, c, b), Curvature::kPositive);
    ASSERT_EQ(exact.nearest(y, x), Status::kOptimal);
    const Made ellipsoid = quadric(q, c, b);
    const Found found = nearest({&ellipsoid}, y);
    ASSERT_EQ(found.status, Status::kOptimal) << trial;
    for (std::size_t j = 0; j < n; ++j) EXPECT_NEAR(found.x[j], x[j], 1e-7 * (1 + std::abs(x[j]))) << trial;
  }
}

// Two functions, bounds and weights in the plane: what they allow is searched on a grid that closes in.
TEST(SmoothProjection, NoPointNearbyIsNearer) {
  Rng rng(3);
  int answers = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const double a = rng.uniform(0.5, 2), shift = rng.normal();
    const Made wave([=](std::span<const double> x, std::span<double> gradient) {  // x1 <= sin(a x0) + shift
      if (!gradient.empty()) gradient[0] = -a * std::cos(a * x[0]), gradient[1] = 1;
      return x[1] - std::sin(a * x[0]) - shift;
    });
    const Made bowl([=](std::span<const double> x, std::span<double> gradient) {  // exp(x0 / 2) - 3 <= x1
      if (!gradient.empty()) gradient[0] = 0.5 * std::exp(x[0] / 2), gradient[1] = -1;
      return std::exp(x[0] / 2) - 3 - x[1];
    });
    const std::vector<double> y{2 * rng.normal(), 3 * rng.normal()}, weight{rng.uniform(0.2, 3), 1}, lower{-3, -4}, upper{3, 4};
    const Found found = nearest({&wave, &bowl}, y, weight, lower, upper);
    if (found.status != Status::kOptimal) continue;
    ++answers;
    EXPECT_LE(found.residual, 1e-6) << trial;
    const auto cost = [&](double p, double q) {
      return std::sqrt(weight[0] * (p - y[0]) * (p - y[0]) + weight[1] * (q - y[1]) * (q - y[1]));
    };
    double nearer = found.distance;
    for (const double reach : {1e-1, 1e-2, 1e-3}) {
      for (int i = -40; i <= 40; ++i) {
        for (int k = -40; k <= 40; ++k) {
          const std::vector<double> at{found.x[0] + reach * i / 40, found.x[1] + reach * k / 40};
          if (at[0] < lower[0] || at[0] > upper[0] || at[1] < lower[1] || at[1] > upper[1]) continue;
          if (wave.value(at, {}) <= 0 && bowl.value(at, {}) <= 0) nearer = std::min(nearer, cost(at[0], at[1]));
        }
      }
    }
    EXPECT_GE(nearer, found.distance - 1e-6) << trial;
  }
  EXPECT_GE(answers, 180);
}

TEST(SmoothProjection, WhatObeysIsReturnedBitForBit) {
  const Made ball = quadric({1, 1}, {0, 0}, 1);
  const std::vector<double> y{0.1, 0.3};
  EXPECT_EQ(nearest({&ball}, y).x, y);
  EXPECT_EQ(nearest({&ball}, {0.1, 5}, {}, {-1, -0.5}, {1, 0.5}).x, (std::vector<double>{0.1, 0.5}));
}

TEST(SmoothProjection, WhatCannotHoldIsSaidAndNothingIsMoved) {
  const Made never = quadric({1, 1}, {0, 0}, -1);  // x'x <= -1
  EXPECT_EQ(nearest({&never}, {1, 2}).status, Status::kInfeasible);
  const Made left = quadric({0, 0}, {1, 0}, -1), right = quadric({0, 0}, {-1, 0}, -1);  // x <= -1, x >= 1
  EXPECT_EQ(nearest({&left, &right}, {0, 0}).status, Status::kInfeasible);
  EXPECT_EQ(nearest({&left}, {0, 0}, {}, {0, 0}, {1, 1}).status, Status::kInfeasible);
  const Made broken([](std::span<const double>, std::span<double>) { return std::nan(""); });
  EXPECT_EQ(nearest({&broken}, {0, 0}).status, Status::kBadInput);
  EXPECT_EQ(nearest({&left}, {std::nan(""), 0}).status, Status::kBadInput);
  EXPECT_EQ(nearest({&left}, {0, 0}, {0, 1}).status, Status::kBadInput);
}

// A function in other units is the same set.
TEST(SmoothProjection, TheScaleOfAFunctionPlaysNoPart) {
  for (const double scale : {1e-8, 1e-3, 1.0, 1e4, 1e9}) {
    const Made ball = quadric({scale, scale}, {0, 0}, scale);
    const Found found = nearest({&ball}, {3, 4});
    ASSERT_EQ(found.status, Status::kOptimal) << scale;
    EXPECT_NEAR(found.x[0], 0.6, 1e-9);
    EXPECT_NEAR(found.x[1], 0.8, 1e-9);
  }
}

TEST(SmoothProjection, TakesNoMemoryAfterPrepare) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  class Ball : public SmoothFunction {
    double value(std::span<const double> x, std::span<double> gradient) const noexcept override {
      for (std::size_t j = 0; j < gradient.size(); ++j) gradient[j] = 2 * x[j];
      return x[0] * x[0] + x[1] * x[1] - 1;
    }
  };
  const Ball ball;
  const std::vector<const SmoothFunction*> functions{&ball};
  SmoothProjection projection;
  projection.prepare(2, functions);
  const std::vector<double> y{3, 4};
  std::vector<double> x(2);
  const std::size_t before = allocations_so_far();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(projection.nearest(y, {}, {}, {}, {}, x), Status::kOptimal);
  EXPECT_EQ(allocations_so_far() - before, 0U);
}

}  // namespace
}  // namespace kizzasi::solve
