#include "kizzasi/train/penalty.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/train/losses.h"
#include "kizzasi/train/optimizer.h"

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
  for (const std::string name : {"hinge", "squared", "huber", "barrier"}) {
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
  for (const std::string name : {"hinge", "squared", "huber", "barrier"}) {
    Tape<double> tape;
    std::vector<double> g;
    for (double v = -5; v <= 5; v += 0.01) g.push_back(v);
    const auto cost = penalty(named(name), tape.constant({g.size()}, g));
    for (std::size_t i = 1; i < g.size(); ++i) {
      ASSERT_GE(cost.value()[i], cost.value()[i - 1]) << name;
      if (g[i] <= 0 && name != "barrier") {
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

TEST(Penalty, TrainingWithItViolatesLess) {
  // A line through data that rise above the limit 1 for x > 1/2: with the penalty the fit leaves it less far and less often.
  const auto violation = [](double weight) {
    Rng rng(2);
    std::vector<float> x(64), y(64);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(rng.uniform(-1, 1));
      y[i] = 2 * x[i] + 0.1f * static_cast<float>(rng.normal());
    }
    NamedTensors weights{{"bias", Tensor({1})}, {"slope", Tensor({1, 1})}};
    OptimizerConfig config;
    config.optimizer = "sgd";
    config.weight_decay = 0;
    auto optimizer = *Optimizer::of(config, ParameterLayout(weights));
    const std::vector<double> low{-kNone}, high{1};
    Tape<float> tape;
    double worst = 0;
    for (int step = 0; step < 200; ++step) {
      tape.clear();
      const auto slope = tape.borrow({1, 1}, weights["slope"].values), bias = tape.borrow({1}, weights["bias"].values);
      const auto fit = autograd::linear(tape.constant({64, 1}, x), slope, bias);
      const auto loss = losses::mse(fit, tape.constant({64, 1}, y));
      const auto cost = autograd::mean(bound_penalty(named("squared"), fit, low, high));
      tape.backward(autograd::add(loss, autograd::scale(cost, static_cast<float>(weight))));
      const std::vector<float> gradient{tape.grad(bias)[0], tape.grad(slope)[0]};
      optimizer.step(weights, gradient, 0.02);
      worst = 0;
      for (const float v : fit.value()) worst = std::max(worst, static_cast<double>(v) - 1);
    }
    return worst;
  };
  const double without = violation(0), little = violation(1), much = violation(10);
  EXPECT_GT(without, 0.7);
  EXPECT_LT(little, 0.8 * without);
  EXPECT_LT(much, 0.6 * little);
}

}  // namespace
}  // namespace kizzasi
