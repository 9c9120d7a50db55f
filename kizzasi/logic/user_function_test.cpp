// Functions of a caller's own: what they mean is what the same expression written in the language means.
#include "kizzasi/signal/user_function.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/consistency.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/monitor/offline.h"
#include "kizzasi/logic/monitor/online.h"
#include "kizzasi/logic/monitor/smooth.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
using Functions = std::vector<std::shared_ptr<const UserFunction>>;

std::shared_ptr<const UserFunction> function(UserFunction f) { return std::make_shared<const UserFunction>(std::move(f)); }

// Two that the language has words for, and one that it has none for.
Functions usual() {
  return {function({.name = "plus2",
                    .arguments = 2,
                    .value =
                        [](std::span<const double> x, std::span<double> slopes) {
                          if (!slopes.empty()) slopes[0] = 1, slopes[1] = 2;
                          return x[0] + 2 * x[1];
                        },
                    .shape = FunctionShape::kAffine}),
          function({.name = "bowl",
                    .arguments = 2,
                    .value =
                        [](std::span<const double> x, std::span<double> slopes) {
                          if (!slopes.empty()) slopes[0] = 2 * x[0] - x[1], slopes[1] = 4 * x[1] - x[0];
                          return x[0] * x[0] - x[0] * x[1] + 2 * x[1] * x[1];
                        },
                    .shape = FunctionShape::kConvex}),
          function({.name = "growth",
                    .value =
                        [](std::span<const double> x, std::span<double> slopes) {
                          if (!slopes.empty()) slopes[0] = std::exp(x[0]);
                          return std::exp(x[0]);
                        },
                    .shape = FunctionShape::kConvex}),
          function({.name = "wave", .value = [](std::span<const double> x, std::span<double> slopes) {
                      if (!slopes.empty()) slopes[0] = std::cos(x[0]);
                      return std::sin(x[0]);
                    }})};
}

Schema two_channels() {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}, {"y", "", Role::kTarget}};
  schema.step_ns = kSecond;
  return schema;
}

ConstraintText text(const std::string& that, const Functions& functions) {
  ConstraintText out{.name = that, .that = that, .where = "test"};
  out.functions = functions;
  return out;
}

struct Stream {
  std::unique_ptr<Guard> guard;
  std::vector<std::byte> state;
  std::vector<double> scratch;
  GuardReport report;
  std::int64_t time = 0;

  explicit Stream(const std::vector<ConstraintText>& texts) {
    auto made = compile_guard(two_channels(), texts, {});
    if (!made) throw std::runtime_error(made.error().text());
    guard = std::move(*made);
    state.resize(guard->state_bytes());
    scratch.resize(guard->scratch_doubles());
    guard->prepare(report);
    guard->reset(state);
  }
  std::vector<double> roll(std::vector<double> x) {
    guard->propose(state, time, x, report, scratch);
    guard->accept(state, time, {}, x);
    time += kSecond;
    return x;
  }
};

// Each formula beside what it says in the language's own words.
const std::pair<const char*, const char*> kTwins[] = {
    {"plus2(x, y) <= 1", "x + 2 * y <= 1"},
    {"bowl(x, y) <= 2", "x * x - x * y + 2 * y * y <= 2"},
    {"plus2(x - 1, prev(y, 1)) >= -3", "x - 1 + 2 * prev(y, 1) >= -3"},
    {"always (plus2(x, y) > 0 -> eventually[0, 2] bowl(x, y) <= 1)",
     "always (x + 2 * y > 0 -> eventually[0, 2] x * x - x * y + 2 * y * y <= 1)"},
    {"mean(plus2(x, y), 3 [samples]) <= 0.5", "mean(x + 2 * y, 3 [samples]) <= 0.5"},
    {"rate(bowl(x, x)) <= 1", "rate(x * x - x * x + 2 * x * x) <= 1"},
};

TEST(UserFunctions, ArePrintedAndReadAsWritten) {
  const Functions functions = usual();
  for (const auto& [own, plain] : kTwins) {
    const ConstraintText first = text(own, functions);
    const auto formula = logic::parse_formula(logic::source_of(first));
    ASSERT_TRUE(formula) << formula.error().text();
    const ConstraintText printed = text(logic::print(*formula), functions);
    const auto again = logic::parse_formula(logic::source_of(printed));
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_TRUE(*again == *formula) << printed.that;
  }
  const auto told = [&](const char* that) {
    const ConstraintText one = text(that, functions);
    const auto formula = logic::parse_formula(logic::source_of(one));
    return formula ? "read" : formula.error().text();
  };
  EXPECT_NE(told("bwl(x, y) <= 1").find("Did you mean 'bowl'?"), std::string::npos) << told("bwl(x, y) <= 1");
  EXPECT_EQ(told("bowl(x) <= 1"), "test:1: bowl takes 2 arguments, not 1 (expected 2 arguments).");
  EXPECT_NE(told("bowl(x, y > 1) <= 1"), "read");
  EXPECT_NE(told("bowl(x, y <= 1"), "read");
}

TEST(UserFunctions, MonitorsJudgeThemAsTheirTwins) {
  const Functions functions = usual();
  Rng rng(3);
  for (const auto& [own, plain] : kTwins) {
    for (int turn = 0; turn < 20; ++turn) {
      std::vector<double> frames;
      for (int i = 0; i < 2 * 12; ++i) frames.push_back(rng.below(15) == 0 ? std::nan("") : std::round(8 * rng.normal()) / 8);
      const auto watch = [&](const char* that) {
        const auto monitor = Monitor::create(two_channels(), std::vector{text(that, functions)});
        if (!monitor) throw std::runtime_error(monitor.error().text());
        std::vector<std::byte> state((*monitor)->state_bytes());
        std::vector<double> scratch((*monitor)->scratch_doubles());
        (*monitor)->reset(state);
        std::vector<std::array<double, 4>> seen;
        for (std::size_t t = 0; t < 12; ++t) {
          MonitorVerdict verdict;
          (*monitor)->step(state, static_cast<std::int64_t>(t) * kSecond, std::span(frames).subspan(2 * t, 2), std::span(&verdict, 1),
                           scratch);
          seen.push_back({static_cast<double>(verdict.position), static_cast<double>(verdict.truth), verdict.low, verdict.high});
        }
        return seen;
      };
      EXPECT_EQ(watch(own), watch(plain)) << own;
      const auto smooth = [&](const char* that) {
        const ConstraintText one = text(that, functions);
        const auto graph = logic::build_graph(*logic::parse_formula(logic::source_of(one)), two_channels(), logic::source_of(one));
        std::vector<double> whole = frames, slopes(frames.size());
        for (double& value : whole) value = std::isnan(value) ? 0.5 : value;
        const auto value = logic::smooth_robustness(*graph, whole, 6, logic::SmoothKind::kSoftmax, 5, slopes);
        slopes.push_back(value ? *value : -99);
        return slopes;
      };
      const auto a = smooth(own), b = smooth(plain);
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * std::max(1.0, std::abs(b[i]))) << own;
    }
  }
}

TEST(UserFunctions, GuardsMoveToTheNearestPointAsForTheirTwins) {
  const Functions functions = usual();
  Rng rng(4);
  for (const auto& [own, plain] : {kTwins[0], kTwins[1], kTwins[2], kTwins[4]}) {
    Stream mine({text(own, functions), text("x <= 3", {})}), theirs({text(plain, {}), text("x <= 3", {})});
    for (int t = 0; t < 60; ++t) {
      const std::vector<double> raw{4 * rng.normal(), 4 * rng.normal()};
      const std::vector<double> a = mine.roll(raw), b = theirs.roll(raw);
      for (std::size_t c = 0; c < 2; ++c) ASSERT_NEAR(a[c], b[c], 2e-6 * (1 + std::abs(b[c]))) << own << " frame " << t;
      ASSERT_EQ(mine.report.status, theirs.report.status);
    }
  }
}

TEST(UserFunctions, WhatTheLanguageHasNoWordForIsObeyedAndNearest) {
  const Functions functions = usual();
  Stream s({text("growth(x) + y <= 2", functions), text("y >= -4", {})});
  Rng rng(5);
  for (int turn = 0; turn < 50; ++turn) {
    const double x0 = 4 * rng.normal(), y0 = 4 * rng.normal();
    const std::vector<double> at = s.roll({x0, y0});
    ASSERT_LE(std::exp(at[0]) + at[1], 2);
    ASSERT_GE(at[1], -4);
    const double distance = std::hypot(at[0] - x0, at[1] - y0);
    for (int other = 0; other < 2000; ++other) {  // nothing nearer obeys
      const double far = std::exp(-8 * rng.uniform()), x = at[0] + far * rng.normal(), y = at[1] + far * rng.normal();
      if (std::exp(x) + y > 2 || y < -4) continue;
      ASSERT_GE(std::hypot(x - x0, y - y0), distance - 1e-7 * (1 + distance));
    }
  }
}

TEST(UserFunctions, OfAnyShapeAreJudgedAndNotProjected) {
  const Functions functions = usual();
  ConstraintText wave = text("wave(x) <= 0.5", functions);
  const auto refused = compile_guard(two_channels(), std::vector{wave}, {});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("not convex"), std::string::npos) << refused.error().text();
  wave.otherwise = "reject";
  Stream s({wave});
  s.roll({1.5, 0});
  EXPECT_EQ(s.report.status, GuardStatus::kRejected);
  s.roll({0.1, 0});
  EXPECT_EQ(s.report.status, GuardStatus::kClean);
  wave.otherwise = "warn";
  Stream w({wave});
  EXPECT_EQ(w.roll({1.5, 0}), (std::vector<double>{1.5, 0}));
  EXPECT_EQ(w.report.status, GuardStatus::kWarned);
  // A set with such a condition is not called consistent, nor contradictory.
  const auto consistency = check_consistency(two_channels(), std::vector{text("wave(x) <= 0.5", functions)});
  ASSERT_TRUE(consistency) << consistency.error().text();
  EXPECT_FALSE(consistency->unjudged.empty());
}

TEST(UserFunctions, ANumberThatIsNoneLeavesTheConditionUnknown) {
  const Functions nothing{function({.name = "nothing", .value = [](std::span<const double>, std::span<double> slopes) {
                                      if (!slopes.empty()) slopes[0] = 0;
                                      return std::numeric_limits<double>::quiet_NaN();
                                    }})};
  ConstraintText one = text("nothing(x) <= 1", nothing);
  one.otherwise = "reject";
  Stream s({one});
  EXPECT_EQ(s.roll({5, 0}), (std::vector<double>{5, 0}));
  EXPECT_EQ(s.report.status, GuardStatus::kClean);
}

TEST(UserFunctions, WrongSlopesAreFound) {
  const std::vector<double> points{0.3, -1.2, 2, 0.5};
  for (const auto& good : usual()) EXPECT_TRUE(check_slopes(*good, points)) << good->name;
  const UserFunction wrong{.name = "wrong", .arguments = 2, .value = [](std::span<const double> x, std::span<double> slopes) {
                             if (!slopes.empty()) slopes[0] = x[1], slopes[1] = -x[0];
                             return x[0] * x[1];
                           }};
  const auto found = check_slopes(wrong, points);
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().where, "wrong(0.3, -1.2)");
  EXPECT_NE(found.error().what.find("argument 2"), std::string::npos);
  EXPECT_FALSE(check_slopes(wrong, std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace kizzasi
