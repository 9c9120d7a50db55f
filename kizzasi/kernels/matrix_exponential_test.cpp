#include "kizzasi/kernels/matrix_exponential.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "kizzasi/kernels/lu.h"

namespace kizzasi::kernels {
namespace {

using Square = std::vector<double>;

Square uniform_square(std::size_t n, double scale, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Square a(n * n);
  for (double& v : a) v = uniform(engine);
  return a;
}

Square product(const Square& a, const Square& b, std::size_t n) {
  Square c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return c;
}

Square exponential(const Square& a, std::size_t n) {
  Square e(n * n);
  EXPECT_TRUE(matrix_exponential(a, n, e));
  return e;
}

double largest(const Square& a) {
  double most = 0;
  for (const double v : a) most = std::max(most, std::abs(v));
  return most;
}

void expect_square(const Square& a, const Square& truth, double tolerance) {
  ASSERT_EQ(a.size(), truth.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], truth[i], tolerance * std::max(1.0, largest(truth))) << i;
}

// ---- lu

TEST(Lu, SolvesWhatItMultiplied) {
  for (const std::size_t n : {1, 2, 3, 8, 33}) {
    for (const std::size_t columns : {1, 4}) {
      const Square a = uniform_square(n, 1, static_cast<unsigned>(n));
      std::mt19937 engine(7);
      std::normal_distribution<double> normal;
      std::vector<double> x(n * columns), b(n * columns);
      for (double& v : x) v = normal(engine);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n; ++k) {
          for (std::size_t c = 0; c < columns; ++c) b[i * columns + c] += a[i * n + k] * x[k * columns + c];
        }
      }
      Square factors = a;
      std::vector<std::size_t> pivots(n);
      ASSERT_TRUE(lu(factors, n, pivots));
      lu_solve(factors, n, pivots, b, columns);
      expect_square(b, x, 1e-11);
    }
  }
}

TEST(Lu, NeedsItsPivots) {
  Square factors = {1e-20, 1, 1, 1};  // without pivoting the solution of this is (0, 1)
  std::vector<std::size_t> pivots(2);
  ASSERT_TRUE(lu(factors, 2, pivots));
  std::vector<double> b = {1, 2};
  lu_solve(factors, 2, pivots, b, 1);
  EXPECT_DOUBLE_EQ(b[0], 1);
  EXPECT_DOUBLE_EQ(b[1], 1);
}

TEST(Lu, RefusesWhatIsSingularOrNotFinite) {
  std::vector<std::size_t> pivots(3);
  for (Square a : {Square{1, 2, 3, 4, 5, 6, 7, 8, 9}, Square(9, 0.0), Square{1, 0, 0, 0, std::nan(""), 0, 0, 0, 1}}) {
    EXPECT_FALSE(lu(a, 3, pivots));
  }
}

// ---- matrix_exponential

TEST(MatrixExponential, OfANilpotentMatrixIsAShortSum) {
  expect_square(exponential({0, 1, 2, 0, 0, 3, 0, 0, 0}, 3), {1, 1, 3.5, 0, 1, 3, 0, 0, 1}, 1e-15);
  expect_square(exponential(Square(16, 0.0), 4), {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}, 0);
}

TEST(MatrixExponential, OfATurnIsARotation) {
  for (const double angle : {1e-8, 0.5, std::numbers::pi, 20.0, 100.0}) {
    const double c = std::cos(angle), s = std::sin(angle);
    expect_square(exponential({0, -angle, angle, 0}, 2), {c, -s, s, c}, 1e-13 * std::max(1.0, angle));
  }
}

TEST(MatrixExponential, OfADiagonalIsThatOfItsElements) {
  const Square e = exponential({-700, 0, 0, 0, 0.25, 0, 0, 0, 300}, 3);
  EXPECT_NEAR(e[0] / std::exp(-700.0), 1, 1e-11);
  EXPECT_NEAR(e[4] / std::exp(0.25), 1, 1e-12);
  EXPECT_NEAR(e[8] / std::exp(300.0), 1, 1e-11);
}

// Moler and Van Loan 1978, example 2: eigenvalues -1 and -17; summing the Taylor series gives nonsense.
TEST(MatrixExponential, OfTheStiffExampleIsItsClosedForm) {
  const double slow = std::exp(-1.0), fast = std::exp(-17.0);
  expect_square(exponential({-49, 24, -64, 31}, 2), {-2 * slow + 3 * fast, 1.5 * (slow - fast), -4 * (slow - fast), 3 * slow - 2 * fast},
                1e-13);
}

// The first five elements of the first row for a[i][j] = scale sin(1 + 3 i + 7 j + i j), and the last row of HiPPO-LegS, by scipy 1.10.1.
TEST(MatrixExponential, EqualsScipy) {
  const struct {
    std::size_t n;
    double scale;
    std::vector<double> row;
  } cases[] = {
      {1, 1, {2.319776824715853}},
      {2, 0.01, {1.0084126322980371, 0.009908631390454852}},
      {5, 1, {1.8074526662725643, 1.582270327146452, 1.9004586001380948, -0.3235786927382659, -2.557672675228382}},
      {5, 4, {61.632182986904205, 47.71778255861855, 185.54659839675477, -120.18134177643229, -216.23725281431683}},
      {16, 0.5, {1.2403835628622213, 0.7563948926919495, 0.4428934436243496, 0.14390311482428714, -1.6810616451784794}},
  };
  for (const auto& each : cases) {
    Square a(each.n * each.n);
    for (std::size_t k = 0; k < a.size(); ++k) {
      const auto i = static_cast<double>(k / each.n), j = static_cast<double>(k % each.n);
      a[k] = each.scale * std::sin(1 + 3 * i + 7 * j + i * j);
    }
    Square e = exponential(a, each.n);
    e.resize(each.row.size());
    expect_square(e, each.row, 1e-12);
  }
  Square legs(64);
  for (std::size_t i = 0; i < 8; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      legs[i * 8 + j] = -std::sqrt(2.0 * static_cast<double>(i) + 1) * std::sqrt(2.0 * static_cast<double>(j) + 1);
    legs[i * 8 + i] = -static_cast<double>(i + 1);
  }
  const Square e = exponential(legs, 8);
  expect_square({e.end() - 8, e.end()},
                {-0.030381330355248513, -0.009104816161780513, 0.1189372616139382, 0.2605285910732727, -0.24263247154833553,
                 0.06893119050902173, -0.008049257996842888, 0.00033546262790251185},
                1e-12);
}

TEST(MatrixExponential, UndoesThatOfTheNegativeAndAddsUpOverTime) {
  for (unsigned seed = 1; seed < 40; ++seed) {
    const std::size_t n = 1 + seed % 9;
    const Square a = uniform_square(n, 0.05 * seed, seed);
    Square back = a, twice = a, one(n * n);
    for (double& v : back) v = -v;
    for (double& v : twice) v *= 2;
    for (std::size_t i = 0; i < n; ++i) one[i * n + i] = 1;
    const Square e = exponential(a, n), inverse = exponential(back, n);
    expect_square(product(e, inverse, n), one, 1e-13 * static_cast<double>(n) * std::max(1.0, largest(e) * largest(inverse)));
    expect_square(product(e, e, n), exponential(twice, n), 1e-12);
  }
}

TEST(MatrixExponential, RefusesWhatHasNone) {
  Square out = {7, 7, 7, 7};
  EXPECT_FALSE(matrix_exponential(Square{1, 0, 0, std::nan("")}, 2, out));
  EXPECT_FALSE(matrix_exponential(Square{1, std::numeric_limits<double>::infinity(), 0, 1}, 2, out));
  EXPECT_FALSE(matrix_exponential(Square{800, 0, 0, 1}, 2, out));
  EXPECT_EQ(out, (Square{7, 7, 7, 7}));
}

TEST(MatrixExponential, MayTakeThePlaceOfItsMatrix) {
  Square a = {-49, 24, -64, 31};
  const Square e = exponential(a, 2);
  ASSERT_TRUE(matrix_exponential(a, 2, a));
  EXPECT_EQ(a, e);
}

}  // namespace
}  // namespace kizzasi::kernels
