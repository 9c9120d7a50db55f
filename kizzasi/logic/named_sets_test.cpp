// Sets by name are the conditions that they stand for, and are enforced as the closed forms of their nearest points say.
#include "kizzasi/logic/named_sets.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/solve/projection.h"
#include "kizzasi/solve/quadric_projection.h"

namespace kizzasi {
namespace {

std::string read(const std::string& text) {
  const auto formula = logic::parse_formula({text, "t", 0, 1});
  return formula ? print(*formula) : formula.error().text();
}

TEST(NamedSets, StandForConditions) {
  const char* const cases[][2] = {
      {"(x, y) in ball(3)", "norm(x, y) <= 3"},
      {"(x, y) in ball([1, 0], 3 [m])", "norm(x - 1, y) <= 3 [m]"},
      {"(x, y) in l1ball([1, -2], 3)", "norm1(x - 1, y - -2) <= 3"},
      {"(x, y, z) in linfball(r)", "norminf(x, y, z) <= r"},
      {"(x, y) in box([0, -1], [2 [m], y + z])", "x in [0, 2 [m]] and y in [-1, y + z]"},
      {"(x, y) in ellipsoid([2, 3])", "norm(x / 2, y / 3) <= 1"},
      {"(x, y) in ellipsoid([1, 1], [2, 3])", "norm((x - 1) / 2, (y - 1) / 3) <= 1"},
      {"(x, y) in simplex()", "x >= 0 and y >= 0 and x + y == 1"},
      {"(x, y, z) in simplex(5 [l])", "x >= 0 and y >= 0 and z >= 0 and x + y + z == 5 [l]"},
      {"(x, y) in polytope([1, 2, 4], [0, -1, 0], [1, 0, 9])", "x + 2 * y <= 4 and -1 * y <= 0 and x <= 9"},
      {"x in ball(3)", "norm(x) <= 3"},
      {"(rate(x), y - z) in ball(3)", "norm(rate(x), y - z) <= 3"},
      {"not (x, y) in box([0, 0], [1, 1]) -> z > 2", "not (x in [0, 1] and y in [0, 1]) -> z > 2"},
      {"always ((x, y) in ball(3) or z > 1)", "always (norm(x, y) <= 3 or z > 1)"},
      {"ball in [1, 2]", "ball in [1, 2]"},  // the words stay free for channels
      {"(ball, box) in ball(2)", "norm(ball, box) <= 2"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(read(one[0]), one[1]) << one[0];
    const auto formula = logic::parse_formula({one[0], "t"}), again = logic::parse_formula({one[1], "t"});
    ASSERT_TRUE(formula && again) << one[0];
    EXPECT_EQ(*formula, *again) << one[0];
    EXPECT_EQ(formula->depth, again->depth) << one[0];
  }
}

TEST(NamedSets, MistakesAreNamedWithTheirPlace) {
  const char* const cases[][2] = {
      {"(x, y) in bal(2)",
       "t:11: there is no set 'bal' (expected one of box, ball, l1ball, linfball, ellipsoid, simplex, polytope, or [low, high]). Did you "
       "mean 'ball'?"},
      {"(x, y) in ball([1], 2)",
       "t:11: ball does not take these arguments (expected ball(radius) or ball([centre, ...], radius), a list with 2 numbers)."},
      {"(x, y) in ball(-2)", "t:16: the radius is -2 (expected a number above 0)."},
      {"(x, y) in ellipsoid([1, 0])", "t:25: a half axis is 0 (expected a number above 0)."},
      {"(x, y) in polytope([1, 2])", "t:20: a list of 2 numbers stands here (expected [a, ..., b] with 3 numbers for a . x <= b)."},
      {"(x, y) in polytope([0, 0, 2])", "t:20: all factors of a plane are 0 (expected one that is not)."},
      {"(x, y) <= 3", "t:8: '<=' stands here (expected in and a set, such as ball(2), after a list)."},
      {"(x, y) in [1, 2]",
       "t:1: a list stands where one number should (expected a number). Lists stand in front of a set alone: (x, y) in ball(2)."},
      {"(x, y)", "t:7: the constraint ends too early (expected in and a set, such as ball(2), after a list)."},
      {"(x, y > 2) in ball(1)", "t:7: '>' stands here (expected a closing ))."},
      {"(x, (y, z) in ball(1)) in ball(1)", "t:12: 'in' stands here (expected a closing ))."},
      {"* in ball(1)", "t:1: * stands before a set (expected the channels by name)."},
      {"(x, y) in ball([1, 2, 3)", "t:24: ')' stands here (expected , between numbers, or a closing ])."},
  };
  for (const auto& one : cases) EXPECT_EQ(read(one[0]), one[1]) << one[0];
}

std::vector<double> guarded(const std::string& text, std::vector<double> value) {
  Schema schema;
  for (const char* name : {"x", "y", "z"}) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = 1'000'000'000;
  const ConstraintText one{.name = "one", .that = text, .where = "test"};
  const auto guard = compile_guard(schema, {&one, 1}, {});
  if (!guard) throw std::runtime_error(guard.error().text());
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles());
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  (void)(*guard)->propose(state, 0, value, report, scratch);
  EXPECT_EQ(report.broken[0], 0) << text;
  return value;
}

TEST(NamedSets, TheGuardGivesTheirNearestPoints) {
  Rng rng(5);
  const std::vector<double> centre{1, -2, 0.5}, low{-1, 0, -3}, high{2, 1, -1};
  solve::QuadricProjection quadric;
  quadric.prepare(3, 0);
  // (x - c)' diag(1 / a^2) (x - c) <= 1 with a = (2, 3, 0.5), multiplied out.
  const std::vector<double> squared{4, 9, 0.25};
  std::vector<double> q(9, 0.0), linear(3);
  double edge = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    q[4 * i] = 1 / squared[i];
    linear[i] = -2 * centre[i] / squared[i];
    edge -= centre[i] * centre[i] / squared[i];
  }
  ASSERT_NE(quadric.set_quadric(q, linear, edge), solve::Curvature::kNotConvex);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> y(3), x(3), scratch(6);
    for (double& value : y) value = 4 * rng.normal();
    double multiplier = 0;
    const auto near = [&](const std::string& text, double tolerance) {
      const std::vector<double> moved = guarded(text, y);
      double off = 0, asked = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        off = std::max(off, std::abs(moved[i] - x[i]));
        asked = std::max(asked, std::abs(y[i]));
      }
      EXPECT_LE(off, tolerance * (1 + asked)) << text;
    };
    ASSERT_EQ(solve::nearest_in_box(y, low, high, x), solve::Status::kOptimal);
    near("(x, y, z) in box([-1, 0, -3], [2, 1, -1])", 0);
    ASSERT_EQ(solve::nearest_in_ball(y, centre, 2, solve::Norm::kL2, x, scratch, multiplier), solve::Status::kOptimal);
    near("(x, y, z) in ball([1, -2, 0.5], 2)", 1e-7);
    ASSERT_EQ(solve::nearest_in_ball(y, centre, 2, solve::Norm::kL1, x, scratch, multiplier), solve::Status::kOptimal);
    near("(x, y, z) in l1ball([1, -2, 0.5], 2)", 1e-12);
    ASSERT_EQ(solve::nearest_in_ball(y, centre, 2, solve::Norm::kLInf, x, scratch, multiplier), solve::Status::kOptimal);
    near("(x, y, z) in linfball([1, -2, 0.5], 2)", 1e-12);
    ASSERT_EQ(solve::nearest_in_simplex(y, 3, x, scratch), solve::Status::kOptimal);
    near("(x, y, z) in simplex(3)", 1e-12);
    ASSERT_EQ(quadric.nearest(y, x), solve::Status::kOptimal);
    near("(x, y, z) in ellipsoid([1, -2, 0.5], [2, 3, 0.5])", 1e-6);
    ASSERT_EQ(solve::nearest_in_slab(y, std::vector<double>{1, 2, -1}, -INFINITY, 2, {}, x, multiplier), solve::Status::kOptimal);
    near("(x, y, z) in polytope([1, 2, -1, 2])", 1e-12);
  }
}

}  // namespace
}  // namespace kizzasi
