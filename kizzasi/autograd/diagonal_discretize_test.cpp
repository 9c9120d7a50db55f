#include "kizzasi/autograd/diagonal_discretize.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi::autograd {
namespace {

using Complex = std::complex<double>;

TEST(DiagonalDiscretize, ZohIsExactForAHeldInput) {
  // x' = lambda x + u with u held at 1 has the closed form x(dt) = e^(lambda dt) x0 + (e^(lambda dt) - 1) / lambda, at lambda = 0: x0 + dt.
  Rng rng(1);
  for (int round = 0; round < 1000; ++round) {
    const Complex lambda(-std::exp(rng.uniform(-12, 3)), round % 3 == 0 ? 0.0 : rng.normal() * 20);
    const double dt = std::exp(rng.uniform(-9, 0));
    const DiscreteElement e = discretize(Discretization::kZoh, lambda, dt);
    // In long double, where the subtraction loses 1e-19 / (lambda dt).
    const std::complex<long double> wide(lambda.real(), lambda.imag());
    const auto a = std::exp(wide * static_cast<long double>(dt));
    const auto b = (a - 1.0L) / wide;
    EXPECT_NEAR(static_cast<double>(std::abs(std::complex<long double>(e.a) - a)), 0, 1e-14);
    EXPECT_NEAR(static_cast<double>(std::abs(std::complex<long double>(e.b) / b - 1.0L)), 0, 1e-12 + 4e-19 / std::abs(lambda * dt))
        << lambda << " " << dt;
  }
  EXPECT_EQ(discretize(Discretization::kZoh, 0.0, 0.25).b, Complex(0.25));
}

TEST(DiagonalDiscretize, BilinearConvergesInTheSecondOrder) {
  // x' = lambda x over one unit of time: halving the step cuts the error four times.
  const Complex lambda(-0.5, 2.0);
  const auto error = [&](int steps) {
    const DiscreteElement e = discretize(Discretization::kBilinear, lambda, 1.0 / steps);
    return std::abs(std::pow(e.a, steps) - std::exp(lambda));
  };
  for (int steps = 8; steps <= 128; steps *= 2) EXPECT_NEAR(error(steps) / error(2 * steps), 4, 0.1);
  const DiscreteElement e = discretize(Discretization::kBilinear, lambda, 0.25);
  EXPECT_NEAR(std::abs(e.b - 0.25 / (1.0 - 0.125 * lambda)), 0, 1e-15);
}

TEST(DiagonalDiscretize, EulerConvergesInTheFirstOrder) {
  // x' = lambda x over one unit of time: halving the step halves the error; ZOH has none.
  const Complex lambda(-0.5, 2.0);
  const auto error = [&](Discretization rule, int steps) {
    return std::abs(std::pow(discretize(rule, lambda, 1.0 / steps).a, steps) - std::exp(lambda));
  };
  for (int steps = 64; steps <= 1024; steps *= 2) {
    EXPECT_NEAR(error(Discretization::kEuler, steps) / error(Discretization::kEuler, 2 * steps), 2, 0.1);
    EXPECT_LT(error(Discretization::kZoh, steps), 1e-12);
  }
  EXPECT_EQ(discretize(Discretization::kEuler, lambda, 0.25).b, Complex(0.25));
}

TEST(DiagonalDiscretize, GradientsAreCentralDifferences) {
  for (const Discretization rule : {Discretization::kZoh, Discretization::kBilinear, Discretization::kEuler}) {
    Rng rng(4);
    const std::size_t channels = 5, states = 3;
    std::vector<CheckedInput> inputs{uniform_input("log_dt", {channels}, rng, -7, -1),
                                     uniform_input("log_a_real", {channels, states}, rng, -3, 1),
                                     normal_input("a_imag", {channels, states}, rng, 5), normal_input("c", {channels, states, 2}, rng)};
    inputs[2].values[4] = 0;  // a purely real eigenvalue
    expect_gradients(inputs, [rule](const auto& in) { return diagonal_discretize(rule, in[0], in[1], in[2], in[3]); }, 1e-6);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
