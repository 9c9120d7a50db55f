#include "kizzasi/kernels/ridge.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kizzasi::kernels {
namespace {

std::vector<double> normal_values(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  for (double& v : values) v = normal(engine);
  return values;
}

struct Problem {
  std::size_t rows, inputs, outputs;
  std::vector<double> x, y;
  RidgeSums sums() const {
    RidgeSums all(inputs, outputs);
    all.add(x, y);
    return all;
  }
};

Problem random_problem(std::size_t rows, std::size_t inputs, std::size_t outputs, unsigned seed) {
  return {rows, inputs, outputs, normal_values(rows * inputs, seed), normal_values(rows * outputs, seed + 1)};
}

// At the minimum the gradient of |xW + b - y|^2 + lambda |W|^2 vanishes: the law, checked row by row without any normal equation.
void expect_no_gradient(const Problem& p, double lambda, bool with_bias) {
  std::vector<double> w(p.inputs * p.outputs), b(with_bias ? p.outputs : 0);
  ASSERT_TRUE(p.sums().solve(lambda, w, b));
  for (std::size_t j = 0; j < p.outputs; ++j) {
    std::vector<double> gradient(p.inputs, 0.0);
    double of_bias = 0;
    for (std::size_t r = 0; r < p.rows; ++r) {
      double error = (with_bias ? b[j] : 0) - p.y[r * p.outputs + j];
      for (std::size_t i = 0; i < p.inputs; ++i) error += p.x[r * p.inputs + i] * w[i * p.outputs + j];
      for (std::size_t i = 0; i < p.inputs; ++i) gradient[i] += p.x[r * p.inputs + i] * error;
      of_bias += error;
    }
    for (std::size_t i = 0; i < p.inputs; ++i)
      ASSERT_NEAR(gradient[i] + lambda * w[i * p.outputs + j], 0, 1e-9 * static_cast<double>(p.rows));
    if (!with_bias) continue;
    ASSERT_NEAR(of_bias, 0, 1e-9 * static_cast<double>(p.rows));
  }
}

TEST(Ridge, StandsWhereTheGradientVanishes) {
  unsigned seed = 1;
  for (const std::size_t inputs : {1u, 2u, 7u, 40u}) {
    for (const std::size_t outputs : {1u, 3u, 24u}) {
      for (const double lambda : {0.0, 1e-3, 10.0, 1e4}) {
        expect_no_gradient(random_problem(inputs * 3 + 5, inputs, outputs, seed), lambda, true);
        expect_no_gradient(random_problem(inputs * 3 + 5, inputs, outputs, ++seed), lambda, false);
      }
    }
  }
}

TEST(Ridge, FindsTheLineThatMadeTheData) {
  Problem p = random_problem(200, 5, 1, 3);
  for (std::size_t r = 0; r < p.rows; ++r) {
    p.y[r] = 4;
    for (std::size_t i = 0; i < 5; ++i) p.y[r] += static_cast<double>(i + 1) * p.x[r * 5 + i];
  }
  std::vector<double> w(5), b(1);
  ASSERT_TRUE(p.sums().solve(0, w, b));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(w[i], static_cast<double>(i + 1), 1e-12);
  EXPECT_NEAR(b[0], 4, 1e-12);
}

TEST(Ridge, BitsDoNotDependOnTheBlocks) {
  const Problem p = random_problem(101, 9, 4, 8);
  std::vector<double> whole(36), whole_bias(4), split(36), split_bias(4);
  ASSERT_TRUE(p.sums().solve(0.1, whole, whole_bias));
  for (const std::size_t block : {1u, 3u, 8u, 17u, 100u}) {
    RidgeSums sums(9, 4);
    for (std::size_t r = 0; r < p.rows; r += block) {
      const std::size_t n = std::min(block, p.rows - r);
      sums.add(std::span(p.x).subspan(r * 9, n * 9), std::span(p.y).subspan(r * 4, n * 4));
    }
    ASSERT_TRUE(sums.solve(0.1, split, split_bias));
    EXPECT_EQ(split, whole);
    EXPECT_EQ(split_bias, whole_bias);
  }
  RidgeSums joined(9, 4), rest(9, 4);
  joined.add(std::span(p.x).first(450), std::span(p.y).first(200));
  rest.add(std::span(p.x).subspan(450), std::span(p.y).subspan(200));
  joined.add(rest);
  EXPECT_EQ(joined.rows(), p.rows);
  ASSERT_TRUE(joined.solve(0.1, split, split_bias));
  for (std::size_t i = 0; i < 36; ++i) EXPECT_NEAR(split[i], whole[i], 1e-12);
}

TEST(Ridge, SaysWhereThereIsNoUniqueAnswer) {
  std::vector<double> w(2, 7), b(1, 7);
  EXPECT_FALSE(RidgeSums(2, 1).solve(1, w, b));
  RidgeSums twins(2, 1);  // two equal inputs
  twins.add(std::vector<double>{1, 1, 2, 2, 5, 5}, std::vector<double>{1, 2, 3});
  EXPECT_FALSE(twins.solve(0, w, b));
  EXPECT_EQ(w[0], 7);
  EXPECT_TRUE(twins.solve(1e-6, w, b));
  EXPECT_NEAR(w[0], w[1], 1e-9);
}

}  // namespace
}  // namespace kizzasi::kernels
