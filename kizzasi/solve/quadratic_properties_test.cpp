// Laws of the quadratic program on random problems: optimality, soft rows, semidefinite curvature, derivatives, warm starts.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {
namespace {

struct Problem {
  std::size_t n = 0, m = 0;
  std::vector<double> h, g, a, lo, hi, lower, upper, l1, l2;
  LinearTerms terms() const { return {g, {}, lo, hi, lower, upper}; }
};

std::vector<double> normals(Rng& rng, std::size_t count, double size = 1) {
  std::vector<double> v(count);
  for (double& x : v) x = size * rng.normal();
  return v;
}

double uniform(Rng& rng) { return static_cast<double>(rng.below(1'000'000)) / 1e6; }

// Feasible by construction unless `free_bounds`: a random point stands inside.
Problem random_problem(Rng& rng, std::size_t n, std::size_t m, bool free_bounds) {
  Problem p;
  p.n = n;
  p.m = m;
  const std::vector<double> root = normals(rng, n * n), inside = normals(rng, n);
  p.h.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) p.h[i * n + j] += root[i * n + k] * root[j * n + k];
    }
    p.h[i * n + i] += 0.1;
  }
  p.g = normals(rng, n, 3);
  p.a = normals(rng, m * n);
  for (std::size_t i = 0; i < m; ++i) {
    double at = free_bounds ? rng.normal() : 0;
    for (std::size_t j = 0; j < n && !free_bounds; ++j) at += p.a[i * n + j] * inside[j];
    const auto kind = rng.below(6);
    p.lo.push_back(kind == 0 ? at : (kind < 4 ? -kNoBound : at - uniform(rng)));
    p.hi.push_back(kind == 0 ? at : (kind == 5 ? kNoBound : at + uniform(rng)));
  }
  for (std::size_t j = 0; j < n; ++j) {
    const auto kind = rng.below(4);
    p.lower.push_back(kind < 2 ? -kNoBound : inside[j] - uniform(rng));
    p.upper.push_back(kind % 2 == 0 ? kNoBound : inside[j] + uniform(rng));
  }
  return p;
}

Status solved(QuadraticProgram& qp, const Problem& p) {
  std::size_t soft = 0;
  for (const double w : p.l2) soft += w > 0 ? 1 : 0;
  qp.prepare(p.n, p.m, soft);
  EXPECT_NE(qp.set_hessian(p.h), Curvature::kNotConvex);
  EXPECT_TRUE(qp.set_rows(p.a, p.m));
  if (!p.l1.empty()) {
    EXPECT_TRUE(qp.set_softness(p.l1, p.l2));
  }
  return qp.solve(p.terms());
}

double at(const Problem& p, std::size_t row, std::span<const double> x) {
  double sum = 0;
  for (std::size_t j = 0; j < p.n; ++j) sum += p.a[row * p.n + j] * x[j];
  return sum;
}

// The objective with what broken soft rows pay; infinite where a hard row is broken by more than rounding.
double price(const Problem& p, std::span<const double> x) {
  double sum = 0;
  for (std::size_t i = 0; i < p.n; ++i) {
    double hx = 0;
    for (std::size_t j = 0; j < p.n; ++j) hx += p.h[i * p.n + j] * x[j];
    sum += x[i] * (0.5 * hx + p.g[i]);
    if (x[i] < p.lower[i] - 1e-12 || x[i] > p.upper[i] + 1e-12) return kNoBound;
  }
  for (std::size_t r = 0; r < p.m; ++r) {
    const double value = at(p, r, x), slack = std::max({0.0, p.lo[r] - value, value - p.hi[r]});
    if (!p.l1.empty() && std::isfinite(p.l1[r])) {
      sum += slack * (p.l1[r] + p.l2[r] * slack);
    } else if (slack > 1e-9) {
      return kNoBound;
    }
  }
  return sum;
}

// Stationary with multipliers in their ranges: exactly what makes a feasible point of a convex problem its answer.
void expect_optimal(const Problem& p, const QuadraticProgram& qp) {
  const auto x = qp.x();
  double steepest = 1;
  for (const double v : qp.row_multipliers()) steepest = std::max(steepest, std::abs(v));
  for (const double v : qp.box_multipliers()) steepest = std::max(steepest, std::abs(v));
  const double small = 1e-11 * steepest;
  for (std::size_t j = 0; j < p.n; ++j) {
    double gradient = p.g[j] + qp.box_multipliers()[j];
    for (std::size_t k = 0; k < p.n; ++k) gradient += p.h[j * p.n + k] * x[k];
    for (std::size_t r = 0; r < p.m; ++r) gradient += p.a[r * p.n + j] * qp.row_multipliers()[r];
    ASSERT_NEAR(gradient, 0, small);
    ASSERT_GE(x[j], p.lower[j]);
    ASSERT_LE(x[j], p.upper[j]);
    if (qp.box_multipliers()[j] > 0) {
      ASSERT_EQ(x[j], p.upper[j]);
    }
    if (qp.box_multipliers()[j] < 0) {
      ASSERT_EQ(x[j], p.lower[j]);
    }
  }
  for (std::size_t r = 0; r < p.m; ++r) {
    const double value = at(p, r, x), above = value - p.hi[r], below = p.lo[r] - value, lambda = qp.row_multipliers()[r];
    const double slack = std::max({0.0, above, below}), tiny = 1e-10;
    const bool soft = !p.l1.empty() && std::isfinite(p.l1[r]);
    if (!soft) {
      ASSERT_LE(slack, tiny);
    }
    if (lambda > 0) {
      ASSERT_GE(above, -tiny) << "row " << r;
    }
    if (lambda < 0) {
      ASSERT_GE(below, -tiny) << "row " << r;
    }
    if (!soft) continue;
    ASSERT_LE(std::abs(lambda), p.l1[r] + 2 * p.l2[r] * slack + small + 2 * p.l2[r] * tiny) << "row " << r << " slack " << slack;
    if (slack > tiny) {
      ASSERT_NEAR(std::abs(lambda), p.l1[r] + 2 * p.l2[r] * slack, small + 2 * p.l2[r] * tiny) << "row " << r;
    }
    ASSERT_NEAR(qp.slack()[r], slack, tiny);
  }
}

TEST(QuadraticLaws, RandomProblemsMeetTheConditionsOfOptimality) {
  Rng rng(1);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::size_t n = 1 + rng.below(16), m = rng.below(33);
    Problem p = random_problem(rng, n, std::min(m, 2 * n), false);
    QuadraticProgram qp;
    ASSERT_EQ(solved(qp, p), Status::kOptimal) << trial;
    ASSERT_NO_FATAL_FAILURE(expect_optimal(p, qp)) << trial;
    ASSERT_NEAR(qp.objective(), price(p, qp.x()), 1e-10 * (1 + std::abs(qp.objective())));
  }
}

TEST(QuadraticLaws, SoftRowsPayTheirPrice) {
  Rng rng(2);
  std::size_t broken = 0;
  for (int trial = 0; trial < 4000; ++trial) {
    const std::size_t n = 1 + rng.below(8), m = 1 + rng.below(12);
    Problem p = random_problem(rng, n, m, true);
    for (std::size_t r = 0; r < m; ++r) {
      const auto kind = rng.below(4);  // linear price, quadratic, both, both steep
      p.l1.push_back(kind == 1 ? 0 : (kind == 3 ? 50 : uniform(rng)));
      p.l2.push_back(kind == 0 ? 0 : 3 * uniform(rng) + 0.01);
    }
    QuadraticProgram qp;
    ASSERT_EQ(solved(qp, p), Status::kOptimal) << trial;
    ASSERT_NO_FATAL_FAILURE(expect_optimal(p, qp)) << trial;
    ASSERT_NEAR(qp.objective(), price(p, qp.x()), 1e-9 * (1 + std::abs(qp.objective()))) << trial;
    for (const double s : qp.slack()) broken += s > 0 ? 1 : 0;
    // From its own answer, and from a wrong one, it finds the same.
    std::vector<std::uint8_t> active(qp.activity().begin(), qp.activity().end());
    const std::vector<double> x(qp.x().begin(), qp.x().end());
    ASSERT_EQ(qp.solve(p.terms(), active), Status::kOptimal) << trial;
    for (std::size_t j = 0; j < n; ++j) ASSERT_NEAR(qp.x()[j], x[j], 1e-9) << trial;
    for (std::uint8_t& code : active) code = static_cast<std::uint8_t>(rng.below(16));
    ASSERT_EQ(qp.solve(p.terms(), active), Status::kOptimal) << trial;
    for (std::size_t j = 0; j < n; ++j) ASSERT_NEAR(qp.x()[j], x[j], 1e-9) << trial;
  }
  EXPECT_GT(broken, 1000u);
}

TEST(QuadraticLaws, AWarmStartIsAllThatIsRemembered) {
  Rng rng(3);
  for (int trial = 0; trial < 300; ++trial) {
    const std::size_t n = 2 + rng.below(10);
    Problem p = random_problem(rng, n, 2 * n, false);
    QuadraticProgram used, fresh;
    solved(used, p);
    std::vector<std::uint8_t> active(used.activity().begin(), used.activity().end());
    for (int step = 0; step < 5; ++step) {
      for (double& g : p.g) g += 0.3 * rng.normal();
      std::vector<std::uint8_t> start = active;
      ASSERT_EQ(used.solve(p.terms(), active), Status::kOptimal);
      fresh = QuadraticProgram();
      fresh.prepare(p.n, p.m);
      fresh.set_hessian(p.h);
      fresh.set_rows(p.a, p.m);
      ASSERT_EQ(fresh.solve(p.terms(), start), Status::kOptimal);
      ASSERT_EQ(start, active);
      for (std::size_t j = 0; j < n; ++j) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(used.x()[j]), std::bit_cast<std::uint64_t>(fresh.x()[j])) << trial << " step " << step;
      }
    }
  }
}

TEST(QuadraticLaws, SemidefiniteCurvatureIsSolvedAndOtherIsNamed) {
  // min x0 + 2 x1 over the simplex x0 + x1 + x2 = 1, x >= 0: a linear program.
  QuadraticProgram qp;
  qp.prepare(3, 1);
  const std::vector<double> zero(9, 0), ones(3, 1), one{1}, g{1, 2, 0.5}, low(3, 0), high(3, kNoBound);
  EXPECT_EQ(qp.set_hessian(zero), Curvature::kSemidefinite);
  ASSERT_TRUE(qp.set_rows(ones, 1));
  ASSERT_EQ(qp.solve({g, {}, one, one, low, high}), Status::kOptimal);
  EXPECT_NEAR(qp.x()[2], 1, 1e-15);
  EXPECT_NEAR(qp.objective(), 0.5, 1e-14);
  // Without the bounds it falls without end.
  EXPECT_EQ(qp.solve({g, {}, one, one, {}, {}}), Status::kUnbounded);
  // Rank one: 1/2 (x0 + x1 + x2)^2 - (x0 + x1 + x2), least where the sum is 1.
  const std::vector<double> full(9, 1), minus(3, -1), none{-kNoBound}, top{kNoBound};
  EXPECT_EQ(qp.set_hessian(full), Curvature::kSemidefinite);
  ASSERT_EQ(qp.solve({minus, {}, none, top, low, high}), Status::kOptimal);
  EXPECT_NEAR(qp.objective(), -0.5, 1e-12);
  std::vector<double> saddle(9, 0);
  saddle[0] = saddle[4] = 1;
  saddle[8] = -1;
  EXPECT_EQ(qp.set_hessian(saddle), Curvature::kNotConvex);
  EXPECT_EQ(qp.solve({g, {}, one, one, {}, {}}), Status::kBadInput);
  saddle[8] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(qp.set_hessian(saddle), Curvature::kNotFinite);
}

TEST(QuadraticLaws, BadNumbersAreNamedAndLeaveNoTrace) {
  Rng rng(4);
  Problem p = random_problem(rng, 4, 6, false);
  QuadraticProgram qp;
  ASSERT_EQ(solved(qp, p), Status::kOptimal);
  const std::vector<double> x(qp.x().begin(), qp.x().end());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, kNoBound, -kNoBound}) {
    Problem q = p;
    q.g[1] = bad;
    EXPECT_EQ(qp.solve(q.terms()), Status::kBadInput);
  }
  for (auto member : {&Problem::lo, &Problem::hi, &Problem::lower, &Problem::upper}) {
    Problem q = p;
    (q.*member)[2] = nan;
    EXPECT_EQ(qp.solve(q.terms()), Status::kBadInput);
  }
  Problem q = p;
  q.lo[3] = 2;
  q.hi[3] = 1;
  EXPECT_EQ(qp.solve(q.terms()), Status::kInfeasible);
  EXPECT_EQ(qp.inverted(), 3u);
  q = p;
  q.lo[3] = kNoBound;  // not "no bound"
  q.hi[3] = kNoBound;
  EXPECT_EQ(qp.solve(q.terms()), Status::kInfeasible);
  ASSERT_EQ(qp.solve(p.terms()), Status::kOptimal);
  for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(qp.x()[j], x[j]);
}

TEST(QuadraticLaws, DerivativesEqualDifferences) {
  Rng rng(5);
  std::size_t compared = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const std::size_t n = 2 + rng.below(5), m = 1 + rng.below(6);
    Problem p = random_problem(rng, n, std::min(m, n), false);
    if (trial % 2 == 1) {
      for (std::size_t r = 0; r < p.m; ++r) {
        p.l1.push_back(uniform(rng));
        p.l2.push_back(rng.below(2) == 0 ? 0 : 0.5);
      }
    }
    QuadraticProgram qp;
    ASSERT_EQ(solved(qp, p), Status::kOptimal);
    const std::vector<double> dx = normals(rng, n);
    std::vector<double> by_g(n), by_bound(p.m), by_box(n), by_a(p.m * n);
    qp.gradient(dx, by_g, by_bound, by_box);
    qp.gradient_of_rows(by_g, by_bound, by_a);
    const std::vector<std::uint8_t> activity(qp.activity().begin(), qp.activity().end());
    const auto loss = [&](bool& same) {
      QuadraticProgram other;
      EXPECT_EQ(solved(other, p), Status::kOptimal);
      same = same && std::equal(activity.begin(), activity.end(), other.activity().begin());
      double sum = 0;
      for (std::size_t j = 0; j < n; ++j) sum += dx[j] * other.x()[j];
      return sum;
    };
    const auto expect_slope = [&](double& at, double slope) {
      const double before = at, step = 1e-6;
      bool same = true;  // a corner between: no derivative there
      at = before + step;
      const double up = loss(same);
      at = before - step;
      const double down = loss(same);
      at = before;
      if (!same) return;
      ASSERT_NEAR((up - down) / (2 * step), slope, 1e-5 * (1 + std::abs(slope))) << trial;
      ++compared;
    };
    for (std::size_t j = 0; j < n; ++j) expect_slope(p.g[j], by_g[j]);
    for (std::size_t j = 0; j < n; ++j) {
      if (activity[p.m + j] == kAtLow) expect_slope(p.lower[j], by_box[j]);
      if (activity[p.m + j] == kAtHigh) expect_slope(p.upper[j], by_box[j]);
    }
    for (std::size_t r = 0; r < p.m; ++r) {
      if (p.lo[r] == p.hi[r]) continue;
      if ((activity[r] & kEquality) == kAtLow) expect_slope(p.lo[r], by_bound[r]);
      if ((activity[r] & kEquality) == kAtHigh) expect_slope(p.hi[r], by_bound[r]);
    }
    for (std::size_t e = 0; e < by_a.size(); ++e) expect_slope(p.a[e], by_a[e]);
  }
  EXPECT_GT(compared, 500u);
}

}  // namespace
}  // namespace kizzasi::solve
