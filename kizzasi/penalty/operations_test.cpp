#include "kizzasi/penalty/operations.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi {
namespace {

using autograd::Tape;

constexpr double kNone = std::numeric_limits<double>::infinity();

PenaltyConfig named(const std::string& name, double width = 0.5) {
  PenaltyConfig config;
  config.penalty = name;
  config.penalty_width = width;
  return config;
}

TEST(Penalty, GradientsAreDifferences) {
  Rng rng(1);
  for (const std::string name : {"hinge", "squared", "huber", "barrier", "exponential", "exact", "lagrangian", "augmented"}) {
    SCOPED_TRACE(name);
    const PenaltyConfig config = named(name);
    for (int i = 0; i < 20; ++i) {
      const auto x = autograd::uniform_input("x", {4, 3}, rng, -3, 3);
      const std::vector<double> low{-1, -kNone, -kNone}, high{0.5, 2, kNone};
      // Short steps: the hinge bends.
      const auto bounds = [&](const auto& v) { return bound_penalty(config, v[0], low, high); };
      autograd::expect_gradients({x}, bounds, 1e-6, 1e-6);
      autograd::expect_f32_near_f64({x}, bounds);
      const auto a = autograd::normal_input("a", {2, 3}, rng), b = autograd::normal_input("b", {2}, rng);
      const auto linear = [&](const auto& v) { return penalty(config, autograd::sub(autograd::linear(v[0], v[1]), v[2])); };
      autograd::expect_gradients({x, a, b}, linear, 1e-6, 1e-6);
    }
  }
}

TEST(Penalty, GrowsWithTheViolationAndIsNothingWellInside) {
  for (const std::string name : {"hinge", "squared", "huber", "barrier", "exponential", "exact", "lagrangian", "augmented"}) {
    Tape<double> tape;
    std::vector<double> g;
    for (double v = -5; v <= 5; v += 0.01) g.push_back(v);
    const auto cost = penalty(named(name), tape.constant({g.size()}, g));
    for (std::size_t i = 1; i < g.size(); ++i) {
      ASSERT_GE(cost.value()[i], cost.value()[i - 1]) << name;
      if (g[i] <= 0 && name != "barrier" && name != "exponential") {
        ASSERT_EQ(cost.value()[i], 0);
      }
      if (g[i - 1] > 0) {
        ASSERT_GT(cost.value()[i], cost.value()[i - 1]);
      }
    }
  }
}

TEST(Penalty, BoundsAreTheSumOfBothSides) {
  Tape<double> tape;
  const std::vector<double> x{-3, 0, 5, 1, 9, -9}, low{-1, -kNone, 0}, high{0.5, 4, kNone};
  const auto hinge = bound_penalty(named("hinge"), tape.constant({2, 3}, x), low, high);
  EXPECT_EQ(hinge.dims(), (autograd::Dims{2}));
  EXPECT_DOUBLE_EQ(hinge.value()[0], 2);
  EXPECT_DOUBLE_EQ(hinge.value()[1], 0.5 + 5 + 9);
}

// The textbook problem: minimise (x - 2)^2 with x <= 1; the multiplier is 2.
double minimum_of(PenaltyKind kind, double weight, double multiplier) {
  double x = 0;
  for (int i = 0; i < 200'000; ++i) {
    double slope = 0;
    price_of(kind, 1, weight, multiplier, x - 1, slope);
    x -= 1e-3 / (1 + weight) * (2 * (x - 2) + slope);
  }
  return x;
}

TEST(Penalty, MinimaAreThoseOfTheTextbook) {
  // (x - 2)^2 + w (x - 1)^2 is least at (2 + w) / (1 + w): never allowed.
  for (const double w : {1.0, 10.0, 100.0}) EXPECT_NEAR(minimum_of(PenaltyKind::kSquared, w, 0), (2 + w) / (1 + w), 1e-6);
  // Exact: allowed from the weight of the multiplier on, and no sooner.
  EXPECT_NEAR(minimum_of(PenaltyKind::kHinge, 1, 0), 1.5, 1e-6);
  EXPECT_NEAR(minimum_of(PenaltyKind::kExact, 2.5, 0), 1, 1e-2);
  // Augmented Lagrangian with weight 2: x = 1.5, 1.25, 1.125, ...
  double multiplier = 0, expected = 1.5;
  for (int i = 0; i < 6; ++i) {
    const double x = minimum_of(PenaltyKind::kAugmented, 2, multiplier);
    ASSERT_NEAR(x, expected, 1e-6);
    multiplier += 2 * (x - 1);
    expected = 1 + (expected - 1) / 2;
  }
  EXPECT_NEAR(multiplier, 2, 0.05);
}

TEST(Penalty, TrainingWithItViolatesLess) {
  // A line through data that rise above the limit 1 for x > 1/2: with the penalty the fit leaves it less far and less often.
  const auto violation = [](double weight) {
    Rng rng(2);
    std::vector<double> x(64), y(64);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = rng.uniform(-1, 1);
      y[i] = 2 * x[i] + 0.1 * rng.normal();
    }
    std::vector<double> slope{0}, bias{0};
    const std::vector<double> low{-kNone}, high{1};
    Tape<double> tape;
    double worst = 0;
    for (int step = 0; step < 400; ++step) {
      tape.clear();
      const auto a = tape.leaf({1, 1}, slope), b = tape.leaf({1}, bias);
      const auto fit = autograd::linear(tape.constant({64, 1}, x), a, b);
      const auto error = autograd::sub(fit, tape.constant({64, 1}, y));
      const auto cost = autograd::mean(bound_penalty(named("squared"), fit, low, high));
      tape.backward(autograd::add(autograd::mean(autograd::mul(error, error)), autograd::scale(cost, weight)));
      slope[0] -= 0.05 * tape.grad(a)[0];
      bias[0] -= 0.05 * tape.grad(b)[0];
      worst = 0;
      for (const double v : fit.value()) worst = std::max(worst, v - 1);
    }
    return worst;
  };
  const double without = violation(0), little = violation(1), much = violation(10);
  EXPECT_GT(without, 0.7);
  EXPECT_LT(little, 0.8 * without);
  EXPECT_LT(much, 0.6 * little);
}

// --- The nearest point as a layer -------------------------------------------------------------------------------------------------------

template <typename T>
autograd::Var<T> nearest_of(const std::vector<autograd::Var<T>>& v, std::span<const double> weight = {}) {
  auto x = nearest<T>(v[0], v[1], v[2], v[3], weight);
  EXPECT_TRUE(x) << (x ? "" : x.error().text());
  return *x;
}

TEST(NearestLayer, DerivativesEqualDifferences) {
  Rng rng(11);
  int held = 0;
  for (int turn = 0; turn < 60; ++turn) {
    const std::size_t n = 2 + rng.below(4), m = 1 + rng.below(4);
    auto y = autograd::normal_input("y", {3, n}, rng, 3), rows = autograd::normal_input("rows", {m, n}, rng);
    auto lo = autograd::uniform_input("lo", {m}, rng, -2, -0.5), hi = autograd::uniform_input("hi", {m}, rng, 0.5, 2);
    if (turn % 4 == 0) lo.values[0] = -kNone, lo.wants_gradient = false;
    std::vector<double> weight(n);
    for (double& w : weight) w = rng.uniform(0.3, 3);
    const auto layer = [&](const auto& v) {
      const auto& y_var = v[0];
      const std::vector<std::decay_t<decltype(y_var)>> all(v.begin(), v.end());
      return nearest_of(all, weight);
    };
    autograd::expect_gradients({y, rows, lo, hi}, layer, 1e-6, 1e-7);
    Tape<double> tape;
    const auto x = autograd::evaluate(tape, {y, rows, lo, hi}, layer, false).value;
    held += x != y.values;
  }
  EXPECT_GT(held, 40);
}

TEST(NearestLayer, HasTheClosedFormOnABoxAndOnAPlane) {
  Tape<double> tape;
  const std::vector<double> y{3, 0.2, -5}, eye{1, 0, 0, 0, 1, 0, 0, 0, 1}, low(3, -1), high(3, 1), ones{1, 1, 1};
  const auto point = tape.leaf({3}, y);
  const auto boxed = *nearest<double>(point, tape.constant({3, 3}, eye), tape.constant({3}, low), tape.constant({3}, high));
  EXPECT_EQ(std::vector<double>(boxed.value().begin(), boxed.value().end()), (std::vector<double>{1, 0.2, -1}));
  tape.backward(boxed, std::span<const double>(ones));
  const auto mask = tape.grad(point);
  EXPECT_EQ(std::vector<double>(mask.begin(), mask.end()), (std::vector<double>{0, 1, 0}));
  // On the plane 1'x = 1 the derivative is I - 11'/3, whatever y is; and that of the level is 1/3 a coordinate.
  tape.clear();
  const auto again = tape.leaf({3}, y);
  const std::vector<double> one{1}, cotangent{1, 2, 4};
  const auto lo = tape.leaf({1}, one), hi = tape.leaf({1}, one);
  const auto flat = *nearest<double>(again, tape.constant({1, 3}, ones), lo, hi);
  tape.backward(flat, std::span<const double>(cotangent));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(flat.value()[i], y[i] - (-1.8 - 1) / 3, 1e-12);
    EXPECT_NEAR(tape.grad(again)[i], cotangent[i] - 7.0 / 3, 1e-12);
  }
  EXPECT_NEAR(tape.grad(lo)[0] + tape.grad(hi)[0], 7.0 / 3, 1e-12);
}

TEST(NearestLayer, LeavesWhatObeysAndNamesWhatCannot) {
  Tape<float> tape;
  const std::vector<float> y{0.1f, 0.2f, 5, 5}, rows{1, 1}, low{-1}, high{1}, cotangent{1, 2, 3, 4};
  const auto point = tape.leaf({2, 2}, y);
  const auto x = *nearest<float>(point, tape.constant({1, 2}, rows), tape.constant({1}, low), tape.constant({1}, high));
  EXPECT_EQ(x.value()[0], 0.1f);
  EXPECT_EQ(x.value()[1], 0.2f);
  tape.backward(x, std::span<const float>(cotangent));
  const auto g = tape.grad(point);
  EXPECT_EQ(std::vector<float>(g.begin(), g.end()), (std::vector<float>{1, 2, -0.5f, 0.5f}));
  const auto none = nearest<float>(point, tape.constant({1, 2}, rows), tape.constant({1}, high), tape.constant({1}, low));
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().text().find("no point obeys"), std::string::npos) << none.error().text();
  EXPECT_FALSE(nearest<float>(point, tape.constant({1, 2}, rows), tape.constant({2}, rows), tape.constant({1}, high)));
}

// --- Robustness -------------------------------------------------------------------------------------------------------------------------

TEST(RobustnessOperation, IsThatOfTheFormulaWithItsGradient) {
  Schema schema;
  schema.channels = {{"x", "", Role::kTarget}, {"y", "", Role::kTarget}};
  schema.step_ns = 1'000'000'000;
  const char* text = "always[0,3] (x > 0.2 -> eventually[0,4] y < rate(x))";
  const logic::Source source{text, "test", 0, 1};
  const auto graph = logic::build_graph(*logic::parse_formula(source), schema, source);
  ASSERT_TRUE(graph);
  Rng rng(4);
  const auto frames = autograd::normal_input("frames", {3, 10, 2}, rng);
  for (const auto kind : {logic::SmoothKind::kLogSumExp, logic::SmoothKind::kSoftmax}) {
    const auto operation = [&](const auto& v) { return *robustness(*graph, v[0], 1, kind, 3); };
    autograd::expect_differentiable({frames}, operation, 1e-7);
    Tape<double> tape;
    const auto value = autograd::evaluate(tape, {frames}, operation, false);
    EXPECT_EQ(value.dims, (autograd::Dims{3}));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(value.value[i], *logic::smooth_robustness(*graph, std::span(frames.values).subspan(20 * i, 20), 1, kind, 3, {}));
    }
  }
  Tape<double> tape;
  EXPECT_FALSE(robustness(*graph, tape.constant({20, 3}, std::vector<double>(60)), 0, logic::SmoothKind::kLogSumExp, 3));
}

}  // namespace
}  // namespace kizzasi
