#include "kizzasi/autograd/causal_convolution.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {
namespace {

TEST(CausalConvolution, IsItsSumAndHasTheGradientsOfIt) {
  Rng rng(1);
  for (const auto& [batch, time, channels] : {std::array<std::size_t, 3>{1, 1, 1}, {2, 7, 3}, {3, 16, 17}, {1, 33, 2}, {4, 5, 40}}) {
    const auto x = normal_input("x", {batch, time, channels}, rng), k = normal_input("k", {time, channels}, rng);
    Tape<double> tape;
    const auto y =
        causal_convolution(tape.leaf(x.dims, std::span<const double>(x.values)), tape.leaf(k.dims, std::span<const double>(k.values)));
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t t = 0; t < time; ++t) {
        for (std::size_t e = 0; e < channels; ++e) {
          double truth = 0;
          for (std::size_t s = 0; s <= t; ++s) truth += k.values[s * channels + e] * x.values[(b * time + t - s) * channels + e];
          EXPECT_NEAR(y.value()[(b * time + t) * channels + e], truth, 1e-12);
        }
      }
    }
    expect_gradients({x, k}, [](const auto& v) { return causal_convolution(v[0], v[1]); });
  }
}

// Coefficients of a stable system: a (2, N, E), c the same, p small, d (E).
std::vector<CheckedInput> system_of(std::size_t batch, std::size_t time, std::size_t states, std::size_t channels, Rng& rng) {
  CheckedInput a{"a", {2, states, channels}, std::vector<double>(2 * states * channels)};
  for (std::size_t i = 0; i < states * channels; ++i) {
    const double radius = rng.uniform(0.5, 0.995), angle = rng.uniform(0, 3);
    a.values[i] = radius * std::cos(angle);
    a.values[states * channels + i] = radius * std::sin(angle);
  }
  return {normal_input("x", {batch, time, channels}, rng),
          a,
          normal_input("c", a.dims, rng),
          normal_input("d", {channels}, rng),
          normal_input("b", a.dims, rng),
          normal_input("p", a.dims, rng, 0.02),
          normal_input("r", a.dims, rng, 0.02)};
}

// The value and gradients of two forms of one function agree within `tolerance` of the largest.
template <typename T, typename A, typename B>
void expect_same(const std::vector<CheckedInput>& inputs, double tolerance, const A& one, const B& other) {
  Tape<T> first, second;
  const Evaluation a = evaluate(first, inputs, one), b = evaluate(second, inputs, other);
  const auto compare = [&](const std::vector<double>& x, const std::vector<double>& y, const std::string& what) {
    ASSERT_EQ(x.size(), y.size());
    double largest = 0;
    for (const double v : y) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance * largest) << what << "[" << i << "]";
  };
  compare(a.value, b.value, "value");
  for (std::size_t k = 0; k < inputs.size(); ++k) compare(a.gradients[k], b.gradients[k], inputs[k].name);
}

TEST(CausalConvolution, OfAnImpulseResponseIsTheScan) {
  Rng rng(2);
  for (const auto& [batch, time, states, channels] : {std::array<std::size_t, 4>{1, 9, 2, 3}, {3, 40, 5, 19}, {4, 300, 3, 8}}) {
    const auto inputs = system_of(batch, time, states, channels, rng);
    const std::vector<CheckedInput> diagonal(inputs.begin(), inputs.begin() + 4);
    const auto scan = [](const auto& v) { return diagonal_scan(v[0], v[1], v[2], v[3]); };
    const auto convolution = [](const auto& v) { return diagonal_convolution(v[0], v[1], v[2], v[3]); };
    expect_same<double>(diagonal, 1e-12, convolution, scan);
    expect_same<float>(diagonal, 1e-5, convolution, scan);
    const auto coefficients = [](const auto& v) {
      using T = std::decay_t<decltype(v[0].value()[0])>;
      return DplrCoefficients<T>{v[1], v[4], v[2], v[5], v[6], v[3]};
    };
    const auto dplr = [&](const auto& v) { return dplr_scan(v[0], coefficients(v)); };
    const auto by_transforms = [&](const auto& v) { return dplr_convolution(v[0], coefficients(v)); };
    expect_same<double>(inputs, 1e-12, by_transforms, dplr);
    expect_same<float>(inputs, 2e-5, by_transforms, dplr);
  }
}

TEST(CausalConvolution, PaysForManyStatesAndSequencesAndWholeWindows) {
  EXPECT_TRUE(convolution_pays(8, 1024, 32, kDiagonalState));
  EXPECT_FALSE(convolution_pays(8, 1024, 8, kDiagonalState));
  EXPECT_TRUE(convolution_pays(8, 1024, 16, kDplrState));
  EXPECT_FALSE(convolution_pays(2, 1024, 32, kDiagonalState));  // the kernel alone is half of the scan
  EXPECT_FALSE(convolution_pays(8, 100, 32, kDiagonalState));
  EXPECT_FALSE(convolution_pays(8, 1025, 16, kDiagonalState));  // padded to four times its length
}

}  // namespace
}  // namespace kizzasi::autograd
