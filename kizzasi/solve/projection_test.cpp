// Nearest points: the published ones of every family, and laws on random sets.
#include "kizzasi/solve/projection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/polytope_projection.h"
#include "kizzasi/solve/published_test.h"
#include "kizzasi/solve/quadric_projection.h"

namespace kizzasi::solve {
namespace {

struct Case {
  std::string id, family;
  std::vector<double> y, lower, upper, a, lo, hi, weight;
  std::size_t n = 0, m = 0;
  Polytope set() const { return {a, lo, hi, lower, upper}; }
};

Case read(const Json& line) {
  Case c;
  c.id = line.find("id")->string();
  c.family = line.find("family")->string();
  c.y = numbers(line.find("y"));
  c.n = c.y.size();
  c.lower = numbers(line.find("lower"));
  c.upper = numbers(line.find("upper"));
  c.a = numbers(line.find("A"));
  c.m = c.a.size() / c.n;
  c.lo = numbers(line.find("lo"));
  c.hi = numbers(line.find("hi"));
  c.weight = numbers(line.find("weight"));
  return c;
}

double largest(std::span<const double> v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

double value_of(const Case& c, std::size_t row, std::span<const double> x) {
  double sum = 0;
  for (std::size_t j = 0; j < c.n; ++j) sum += c.a[row * c.n + j] * x[j];
  return sum;
}

// Every row and bound as a user would evaluate it; `thin`: a set without an inside, whose rows are met like equalities.
void expect_inside(const Case& c, std::span<const double> x, bool thin = false) {
  for (std::size_t j = 0; j < c.n && !c.lower.empty(); ++j) {
    EXPECT_GE(x[j], c.lower[j]) << c.id;
    EXPECT_LE(x[j], c.upper[j]) << c.id;
  }
  for (std::size_t i = 0; i < c.m; ++i) {
    const double value = value_of(c, i, x);
    if (c.lo[i] == c.hi[i] || (thin && (value < c.lo[i] || value > c.hi[i]))) {
      const double bound = value > c.hi[i] ? c.hi[i] : c.lo[i];
      double size = std::abs(bound);
      for (std::size_t j = 0; j < c.n; ++j) size += std::abs(c.a[i * c.n + j] * x[j]);
      EXPECT_LE(std::abs(value - bound), 8 * std::numeric_limits<double>::epsilon() * size) << c.id << " row " << i;
    } else {
      EXPECT_GE(value, c.lo[i]) << c.id << " row " << i;
      EXPECT_LE(value, c.hi[i]) << c.id << " row " << i;
    }
  }
}

void expect_point(const Json& line, const Case& c, std::span<const double> x, double tolerance) {
  const std::vector<double> expected = numbers(line.find("x"));
  const bool unchanged = line.find("unchanged") != nullptr && line.find("unchanged")->boolean();
  for (std::size_t j = 0; j < c.n; ++j) {
    if (unchanged) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(x[j]), std::bit_cast<std::uint64_t>(c.y[j])) << c.id;
    }
    EXPECT_NEAR(x[j], expected[j], tolerance * std::max(1.0, largest(c.y))) << c.id << " " << c.family;
  }
}

double tolerance_of(const Json& line) {
  const Json* kind = line.find("kind");
  const bool near_parallel = kind != nullptr && kind->string() == "nearly parallel rows";
  return near_parallel || line.find("scale") != nullptr ? 1e-9 : 1e-12;
}

void expect_published_polytope(const Json& line, const Case& c) {
  PolytopeProjection p;
  p.prepare(c.n, c.m);
  ASSERT_TRUE(p.set_rows(c.a, c.m, c.weight)) << c.id;
  std::vector<double> x(c.n);
  const Status status = p.nearest(c.y, c.set(), x);
  ASSERT_EQ(name(status), line.find("status")->string()) << c.id;
  if (status == Status::kOptimal) {
    expect_point(line, c, x, tolerance_of(line));
    const Json* kind = line.find("kind");
    const bool thin = kind != nullptr && (kind->string() == "opposite rows" || kind->string() == "vertex with more rows than dimensions");
    if (!thin) {
      EXPECT_TRUE(p.obeys()) << c.id;
    }
    if (!p.unchanged()) expect_inside(c, x, !p.obeys());
    EXPECT_NEAR(p.distance(), line.find("distance")->number(), 1e-12 * std::max(1.0, largest(c.y))) << c.id;
    const Json* m = line.find("multipliers");
    if (m != nullptr && line.find("unique_multipliers")->boolean()) {
      const std::vector<double> rows = numbers(m->find("rows")), box = numbers(m->find("box"));
      for (std::size_t i = 0; i < c.m; ++i) EXPECT_NEAR(p.row_multipliers()[i], rows[i], 1e-8 * (1 + largest(rows))) << c.id;
      for (std::size_t j = 0; j < c.n; ++j) EXPECT_NEAR(p.box_multipliers()[j], box[j], 1e-8 * (1 + largest(box))) << c.id;
    }
    return;
  }
  if (const Json* least = line.find("least_slack")) {
    std::vector<double> slack(c.m);
    ASSERT_EQ(p.least_slack(c.y, c.set(), {}, x, slack), Status::kOptimal) << c.id;
    const std::vector<double> expected = numbers(least->find("x")), expected_slack = numbers(least->find("slack"));
    for (std::size_t j = 0; j < c.n; ++j) EXPECT_NEAR(x[j], expected[j], 1e-9 * std::max(1.0, largest(c.y))) << c.id;
    for (std::size_t i = 0; i < c.m; ++i) EXPECT_NEAR(slack[i], expected_slack[i], 1e-10 * std::max(1.0, largest(c.y))) << c.id;
  }
}

TEST(Projection, GivesThePublishedNearestPoints) {
  std::size_t cases = 0;
  for (const Json& line : published("nearest.jsonl", "projection/projection.jsonl")) {
    const Case c = read(line);
    const bool feasible = line.find("status")->string() == "ok";
    std::vector<double> x(c.n), scratch(2 * c.n);
    double multiplier = 0;
    ++cases;
    if (c.family == "box and rate") {
      const std::vector<double> previous = numbers(line.find("previous")), rate = numbers(line.find("rate"));
      const Status status = nearest_in_box_and_rate(c.y, c.lower, c.upper, previous, rate, x);
      EXPECT_EQ(status == Status::kOptimal, feasible) << c.id;
      if (feasible) expect_point(line, c, x, 1e-12);
      for (std::size_t j = 0; j < c.n; ++j) {
        EXPECT_GE(x[j], c.lower[j]);
        EXPECT_LE(x[j], c.upper[j]);
        if (feasible) {
          EXPECT_LE(std::abs(x[j] - previous[j]), rate[j]) << c.id;
        } else if (line.find("box_wins")->items()[j].is_number()) {
          EXPECT_EQ(x[j], line.find("box_wins")->items()[j].number()) << c.id;
        }
      }
    } else if (c.family == "ball") {
      const std::string& norm = line.find("norm")->string();
      const Norm kind = norm == "l1" ? Norm::kL1 : (norm == "l2" ? Norm::kL2 : Norm::kLInf);
      const std::vector<double> centre = numbers(line.find("center"));
      const double radius = line.find("radius")->number();
      ASSERT_EQ(nearest_in_ball(c.y, centre, radius, kind, x, scratch, multiplier), Status::kOptimal) << c.id;
      expect_point(line, c, x, 1e-12);
      EXPECT_LE(norm_of(x, centre, kind), radius) << c.id;
      if (line.find("multiplier") != nullptr && kind == Norm::kL2) {
        EXPECT_NEAR(multiplier, line.find("multiplier")->number(), 1e-10 * (1 + multiplier)) << c.id;
      }
    } else if (c.family == "norm cap") {
      std::vector<double> part, capped;
      for (const double j : numbers(line.find("index"))) part.push_back(c.y[static_cast<std::size_t>(j)]);
      capped = part;
      const double radius = line.find("radius")->number();
      ASSERT_EQ(nearest_in_ball(part, {}, radius, Norm::kL2, capped, scratch, multiplier), Status::kOptimal) << c.id;
      x = c.y;
      std::size_t k = 0;
      for (const double j : numbers(line.find("index"))) x[static_cast<std::size_t>(j)] = capped[k++];
      expect_point(line, c, x, 1e-12);
      EXPECT_LE(norm_of(capped, {}, Norm::kL2), radius) << c.id;
    } else if (c.family == "cone") {
      const double slope = line.find("slope")->number();
      ASSERT_EQ(nearest_in_cone(c.y, slope, x), Status::kOptimal) << c.id;
      expect_point(line, c, x, 1e-12);
      EXPECT_LE(norm_of(std::span(x).subspan(1), {}, Norm::kL2), slope * x[0]) << c.id;
    } else if (c.family == "ellipsoid" || c.family == "ball and polytope") {
      QuadricProjection q;
      q.prepare(c.n, c.m);
      Status status = Status::kBadInput;
      if (c.family == "ellipsoid") {
        ASSERT_NE(q.set_quadric(numbers(line.find("Q")), numbers(line.find("c")), line.find("b")->number()), Curvature::kNotConvex);
        status = q.nearest(c.y, x);
      } else {
        q.set_ball(numbers(line.find("center")), line.find("radius")->number());
        ASSERT_TRUE(q.set_rows(c.a, c.m));
        status = q.nearest(c.y, c.set(), x);
      }
      ASSERT_EQ(status == Status::kOptimal, feasible) << c.id << " " << name(status);
      if (!feasible) continue;
      expect_point(line, c, x, 1e-12);
      EXPECT_TRUE(q.obeys(x)) << c.id;
      const Json* m = line.find(c.family == "ellipsoid" ? "multiplier" : "ball_multiplier");
      EXPECT_NEAR(q.multiplier(), m->number(), 1e-9 * (1 + q.multiplier())) << c.id;
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_published_polytope(line, c));
    }
  }
  EXPECT_GT(cases, 40u);
}

double uniform(Rng& rng) { return static_cast<double>(rng.below(1'000'001)) / 1e6; }

std::vector<double> normals(Rng& rng, std::size_t n, double size = 1) {
  std::vector<double> v(n);
  for (double& x : v) x = size * rng.normal();
  return v;
}

// A polytope around `inside`, with all its shapes: halves, slabs, boxes.
Case random_case(Rng& rng, std::size_t n, std::size_t m, const std::vector<double>& inside) {
  Case c;
  c.n = n;
  c.m = m;
  c.y = normals(rng, n, 5);
  c.a = normals(rng, m * n);
  for (std::size_t i = 0; i < m; ++i) {
    const double at = value_of(c, i, inside);
    c.lo.push_back(rng.below(2) == 0 ? -kNoBound : at - uniform(rng) - 1e-3);
    c.hi.push_back(rng.below(3) == 0 ? kNoBound : at + uniform(rng) + 1e-3);
  }
  for (std::size_t j = 0; j < n; ++j) {
    c.lower.push_back(rng.below(2) == 0 ? -kNoBound : inside[j] - uniform(rng));
    c.upper.push_back(rng.below(2) == 0 ? kNoBound : inside[j] + uniform(rng));
  }
  return c;
}

// No point between the answer and any point inside is nearer to y: what makes it the nearest of a convex set.
void expect_nothing_nearer(std::span<const double> y, std::span<const double> weight, std::span<const double> x,
                           std::span<const double> inside) {
  double slope = 0, size = 1;
  for (std::size_t j = 0; j < y.size(); ++j) {
    slope += (weight.empty() ? 1 : weight[j]) * (x[j] - y[j]) * (inside[j] - x[j]);
    size += std::abs((x[j] - y[j]) * (inside[j] - x[j]));
  }
  ASSERT_GE(slope, -1e-11 * size);
}

TEST(ProjectionLaws, APolytopesNearestPointIsInsideNearestAndItself) {
  Rng rng(21);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + rng.below(12), m = rng.below(16);
    const std::vector<double> inside = normals(rng, n);
    Case c = random_case(rng, n, m, inside);
    if (trial % 3 == 0) {
      for (std::size_t j = 0; j < n; ++j) c.weight.push_back(0.1 + uniform(rng));
    }
    PolytopeProjection p;
    p.prepare(n, m);
    ASSERT_TRUE(p.set_rows(c.a, m, c.weight));
    std::vector<double> x(n), again(n);
    ASSERT_EQ(p.nearest(c.y, c.set(), x), Status::kOptimal) << trial;
    ASSERT_TRUE(p.obeys()) << trial;
    expect_inside(c, x);
    expect_nothing_nearer(c.y, c.weight, x, inside);
    ASSERT_EQ(p.nearest(x, c.set(), again), Status::kOptimal);
    ASSERT_TRUE(p.unchanged()) << trial;
    ASSERT_EQ(x, again);
  }
}

TEST(ProjectionLaws, SlabsAndSimplicesEqualTheQuadraticProgram) {
  Rng rng(22);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + rng.below(10);
    Case c;
    c.n = n;
    c.m = 1;
    c.y = normals(rng, n, 3);
    c.a = normals(rng, n);
    c.lo = {rng.normal()};
    c.hi = {trial % 4 == 0 ? c.lo[0] : c.lo[0] + uniform(rng)};
    if (trial % 2 == 0) {
      for (std::size_t j = 0; j < n; ++j) c.weight.push_back(0.1 + uniform(rng));
    }
    PolytopeProjection p;
    p.prepare(n, 1);
    std::vector<double> x(n), expected(n), scratch(n);
    double multiplier = 0;
    ASSERT_TRUE(p.set_rows(c.a, 1, c.weight));
    ASSERT_EQ(p.nearest(c.y, {c.a, c.lo, c.hi, {}, {}}, expected), Status::kOptimal);
    ASSERT_EQ(nearest_in_slab(c.y, c.a, c.lo[0], c.hi[0], c.weight, x, multiplier), Status::kOptimal) << trial;
    expect_inside(c, x);
    for (std::size_t j = 0; j < n; ++j) ASSERT_NEAR(x[j], expected[j], 1e-13 * (1 + largest(c.y) + largest(expected))) << trial;
    ASSERT_NEAR(multiplier, p.row_multipliers()[0], 1e-12 * (1 + std::abs(multiplier)));

    const double total = uniform(rng) + 0.01;
    const std::vector<double> ones(n, 1), low(n, 0), high(n, kNoBound), sum{total};
    ASSERT_TRUE(p.set_rows(ones, 1));
    ASSERT_EQ(p.nearest(c.y, {ones, sum, sum, low, high}, expected), Status::kOptimal);
    ASSERT_EQ(nearest_in_simplex(c.y, total, x, scratch), Status::kOptimal);
    for (std::size_t j = 0; j < n; ++j) ASSERT_NEAR(x[j], expected[j], 1e-13 * (1 + largest(c.y))) << trial;
  }
}

TEST(ProjectionLaws, BallsConesAndRatesAreInsideAndNearest) {
  Rng rng(23);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::size_t n = 1 + rng.below(10);
    const std::vector<double> y = normals(rng, n, 3), centre = normals(rng, n);
    std::vector<double> x(n), inside(n), scratch(2 * n);
    double multiplier = 0;
    const double radius = uniform(rng) + 0.01;
    for (const Norm norm : {Norm::kL1, Norm::kL2, Norm::kLInf}) {
      ASSERT_EQ(nearest_in_ball(y, centre, radius, norm, x, scratch, multiplier), Status::kOptimal);
      ASSERT_LE(norm_of(x, centre, norm), radius);
      for (int tries = 0; tries < 10; ++tries) {
        const std::vector<double> far = normals(rng, n, 2);
        ASSERT_EQ(nearest_in_ball(far, centre, radius, norm, inside, scratch, multiplier), Status::kOptimal);
        expect_nothing_nearer(y, {}, x, inside);
      }
    }
    const double slope = uniform(rng) + 0.05;
    ASSERT_EQ(nearest_in_cone(y, slope, x), Status::kOptimal);
    ASSERT_LE(norm_of(std::span(x).subspan(1), {}, Norm::kL2), slope * x[0]);
    for (int tries = 0; tries < 10; ++tries) {
      ASSERT_EQ(nearest_in_cone(normals(rng, n, 2), slope, inside), Status::kOptimal);
      expect_nothing_nearer(y, {}, x, inside);
    }
    std::vector<double> lower(n), upper(n), previous(n), rate(n);
    for (std::size_t j = 0; j < n; ++j) {
      lower[j] = std::round(10 * rng.normal()) / 10;
      upper[j] = lower[j] + std::round(20 * uniform(rng)) / 10;
      rate[j] = std::round(10 * uniform(rng)) / 10;
      previous[j] = lower[j] + (upper[j] - lower[j]) * uniform(rng);
    }
    ASSERT_EQ(nearest_in_box_and_rate(y, lower, upper, previous, rate, x), Status::kOptimal);
    for (std::size_t j = 0; j < n; ++j) {
      ASSERT_TRUE(x[j] >= lower[j] && x[j] <= upper[j] && x[j] - previous[j] <= rate[j] && previous[j] - x[j] <= rate[j]) << trial;
      const double best = std::min(std::max(y[j], std::max(lower[j], previous[j] - rate[j])), std::min(upper[j], previous[j] + rate[j]));
      ASSERT_NEAR(x[j], best, 1e-15 * (1 + std::abs(best)));
    }
  }
}

TEST(ProjectionLaws, EllipsoidsCutByPolytopesMeetTheirConditions) {
  Rng rng(24);
  int curved = 0, empty = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const std::size_t n = 2 + rng.below(5), m = rng.below(6), rank = trial % 4 == 3 ? n - 1 : n;
    const std::vector<double> inside = normals(rng, n), root = normals(rng, n * n);
    Case c = random_case(rng, n, m, inside);
    std::vector<double> q(n * n), linear = normals(rng, n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < rank; ++k) q[i * n + j] += root[i * n + k] * root[j * n + k];
      }
    }
    for (std::size_t i = 0; i < n && rank == n; ++i) q[i * n + i] += 0.05;
    double at = 0;
    for (std::size_t i = 0; i < n; ++i) {
      at += linear[i] * inside[i];
      for (std::size_t j = 0; j < n; ++j) at += inside[i] * q[i * n + j] * inside[j];
    }
    QuadricProjection p;
    p.prepare(n, m);
    ASSERT_NE(p.set_quadric(q, linear, at + 0.1 * uniform(rng) + 1e-3), Curvature::kNotConvex);
    ASSERT_TRUE(p.set_rows(c.a, m));
    std::vector<double> x(n);
    ASSERT_EQ(p.nearest(c.y, c.set(), x), Status::kOptimal) << trial;
    ASSERT_TRUE(p.obeys(x));
    expect_nothing_nearer(c.y, {}, x, inside);
    curved += p.multiplier() > 0 ? 1 : 0;
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double gradient = x[i] - c.y[i] + p.multiplier() * linear[i] + p.box_multipliers()[i];
      for (std::size_t j = 0; j < n; ++j) gradient += 2 * p.multiplier() * q[i * n + j] * x[j];
      for (std::size_t r = 0; r < m; ++r) gradient += p.row_multipliers()[r] * c.a[r * n + i];
      worst = std::max(worst, std::abs(gradient));
    }
    ASSERT_LE(worst, 1e-9 * (1 + largest(c.y)) * (1 + p.multiplier())) << trial;
    // Alone.
    ASSERT_EQ(p.nearest(c.y, x), Status::kOptimal) << trial;
    ASSERT_TRUE(p.obeys(x));
    expect_nothing_nearer(c.y, {}, x, inside);
    // Below its bottom nothing is left.
    if (rank == n) {
      p.set_quadric(q, linear, -1e6);
      ASSERT_EQ(p.nearest(c.y, x), Status::kInfeasible);
      ASSERT_EQ(p.nearest(c.y, c.set(), x), Status::kInfeasible);
      ++empty;
    }
  }
  EXPECT_GT(curved, 300);
  EXPECT_GT(empty, 300);
}

// x <= 1 first, then x >= 3 and y >= 2, then x + y == 10: each level gives way to the ones before, by as little as it can.
TEST(ProjectionLaws, PrioritiesAreSolvedInOrder) {
  const std::vector<double> a{1, 0, 1, 0, 0, 1, 1, 1}, lo{-kNoBound, 3, 2, 10}, hi{1, kNoBound, kNoBound, 10}, y{0, 0};
  PolytopeProjection p;
  p.prepare(2, 4);
  ASSERT_TRUE(p.set_rows(a, 4));
  std::vector<double> x(2), slack(4);
  ASSERT_EQ(p.least_slack(y, {a, lo, hi, {}, {}}, std::vector<int>{0, 1, 1, 2}, x, slack), Status::kOptimal);
  EXPECT_NEAR(x[0], 1, 1e-12);
  EXPECT_NEAR(x[1], 9, 1e-12);  // y >= 2 holds with room, so the last level is met
  EXPECT_NEAR(slack[1], -2, 1e-12);
  EXPECT_NEAR(slack[3], 0, 1e-11);
  ASSERT_EQ(p.least_slack(y, {a, lo, hi, {}, {}}, std::vector<int>{2, 0, 0, 1}, x, slack), Status::kOptimal);
  EXPECT_NEAR(x[0], 3, 1e-12);
  EXPECT_NEAR(x[1], 7, 1e-12);
  EXPECT_NEAR(slack[0], 2, 1e-12);
  // All equal: shared.
  ASSERT_EQ(p.least_slack(y, {a, lo, hi, {}, {}}, {}, x, slack), Status::kOptimal);
  EXPECT_NEAR(slack[0], 1, 1e-10);
  EXPECT_NEAR(slack[1], -1, 1e-10);
}

TEST(ProjectionLaws, NoNanPasses) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> y{1, nan, 2}, zero(3, 0), one(3, 1);
  std::vector<double> x(3, 7), scratch(6);
  double multiplier = 0;
  for (const auto& bad : {y, std::vector<double>{1, kNoBound, 2}}) {
    EXPECT_EQ(nearest_in_box(bad, zero, one, x), Status::kBadInput);
    EXPECT_EQ(nearest_in_box_and_rate(bad, zero, one, zero, one, x), Status::kBadInput);
    EXPECT_EQ(nearest_in_slab(bad, one, 0, 1, {}, x, multiplier), Status::kBadInput);
    EXPECT_EQ(nearest_in_simplex(bad, 1, x, scratch), Status::kBadInput);
    EXPECT_EQ(nearest_in_ball(bad, {}, 1, Norm::kL2, x, scratch, multiplier), Status::kBadInput);
    EXPECT_EQ(nearest_in_cone(bad, 1, x), Status::kBadInput);
    PolytopeProjection p;
    p.prepare(3, 1);
    ASSERT_TRUE(p.set_rows(one, 1));
    EXPECT_EQ(p.nearest(bad, {one, std::vector<double>{0}, std::vector<double>{1}, {}, {}}, x), Status::kBadInput);
  }
  for (const double v : x) EXPECT_EQ(v, 7);
}

}  // namespace
}  // namespace kizzasi::solve
