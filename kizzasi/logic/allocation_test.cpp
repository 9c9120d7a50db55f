// Checking and moving a frame takes no memory.
#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"
#include "tests/allocations/count.h"

namespace kizzasi {
namespace {

void step_without_memory(const std::vector<ConstraintText>& texts, int decimals, std::int64_t steps);

TEST(Allocation, SteppingAGuardAllocatesNothing) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  std::vector<ConstraintText> texts{{"range", "-5 <= a <= 5"},       {"slew", "abs(rate(a)) <= 3"}, {"hold", "b <= 4", "hold"},
                                    {"reject", "d <= 90", "reject"}, {"sum", "b + c - 2 * d == 1"}, {"warn", "c <= 1", "warn"}};
  texts.push_back({.name = "soft", .that = "a <= 1", .soft = true});
  for (const int decimals : {-1, 3}) {
    if (decimals == 3) texts[4].that = "b + c - 2 * d == 1 +- 0.1";
    step_without_memory(texts, decimals, 10'000);
  }
}

TEST(Allocation, NeitherDoesOneThatSolvesProgramsAndRemembers) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  std::vector<ConstraintText> texts{{"sum", "a + b + c <= 4"},
                                    {"other", "a - b + d >= -3"},
                                    {"choice", "a >= 2 -> b <= 0 or c <= 0"},
                                    {"far", "abs(d) >= 1"},
                                    {"ball", "norm(a, b) <= 3 or norm(a - 4, c) <= 2"},
                                    {"window", "mean(c, 100ms) <= 2"},
                                    {"past", "once[0, 5] a > 1 -> d <= 4", "hold"},
                                    {"deadline", "a > 3 -> eventually[0, 5] d < 2"},
                                    {"accel", "abs(accel(a)) <= 90000", "warn"}};
  texts.push_back({.name = "soft", .that = "b + c <= 0 or d >= 0", .soft = true});
  texts.push_back({.name = "curved and soft", .that = "norm(a, d) <= 5", .soft = true});
  texts.push_back({.name = "own", .that = "own(a, b) <= 9"});
  texts.back().functions = {std::make_shared<const UserFunction>(UserFunction{.name = "own",
                                                                              .arguments = 2,
                                                                              .value =
                                                                                  [](std::span<const double> x, std::span<double> slopes) {
                                                                                    if (!slopes.empty())
                                                                                      slopes[0] = 2 * x[0], slopes[1] = 1;
                                                                                    return x[0] * x[0] + x[1];
                                                                                  },
                                                                              .shape = FunctionShape::kConvex})};
  for (const int decimals : {-1, 3}) step_without_memory(texts, decimals, 300);
}

void step_without_memory(const std::vector<ConstraintText>& texts, int decimals, std::int64_t steps) {
  Schema schema;
  for (const char* name : {"a", "b", "c", "d"}) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = 10'000'000;
  const auto guard = compile_guard(schema, texts, {decimals});
  ASSERT_TRUE(guard) << guard.error().text();
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles()), value(4);
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  Rng rng(9);
  const std::size_t before = allocations_so_far();
  for (std::int64_t t = 0; t < steps; ++t) {
    for (double& x : value) x = rng.below(20) == 0 ? std::numeric_limits<double>::quiet_NaN() : 50 * rng.normal();
    (*guard)->propose(state, t * schema.step_ns, value, report, scratch);
    (*guard)->check(state, t * schema.step_ns, value, report);
    double low = 0, high = 0;
    for (std::size_t channel = 0; channel < 4; ++channel) (*guard)->interval(state, t * schema.step_ns, channel, low, high);
    (*guard)->accept(state, t * schema.step_ns, {}, value);
  }
  EXPECT_EQ(allocations_so_far() - before, 0u);
}

}  // namespace
}  // namespace kizzasi
