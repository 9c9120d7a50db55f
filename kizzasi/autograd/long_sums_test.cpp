// Gradients that are sums over very many frames keep their digits in f32: as in f64 to a few units of its last place, where one running sum
// would have lost a hundredth.
#include <gtest/gtest.h>

#include <functional>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/base/rng.h"

namespace kizzasi::autograd {
namespace {

template <typename T>
using Op = std::function<Var<T>(const std::vector<Var<T>>&)>;

// All values of one sign, so that the sums grow with the rows: the case in which a running sum is worst.
std::vector<float> positive(const Dims& dims, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> values(elements(dims));
  for (float& v : values) v = static_cast<float>(rng.uniform(0.05, 0.15));
  return values;
}

template <typename T>
std::vector<std::vector<double>> gradients(const std::vector<Dims>& inputs, const Op<T>& op) {
  Tape<T> tape;
  std::vector<Var<T>> leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<float> values = positive(inputs[i], i);
    leaves.push_back(tape.leaf(inputs[i], std::span<const T>(std::vector<T>(values.begin(), values.end()))));
  }
  const Var<T> y = op(leaves);
  const std::vector<float> cotangent = positive(y.dims(), 99);
  tape.backward(y, std::span<const T>(std::vector<T>(cotangent.begin(), cotangent.end())));
  std::vector<std::vector<double>> all;
  for (const Var<T>& leaf : leaves) {
    const auto g = tape.grad(leaf.id);
    all.emplace_back(g.begin(), g.end());
  }
  return all;
}

// first: the input from which on gradients are sums over the rows.
void expect_digits(const std::vector<Dims>& inputs, std::size_t first, const Op<float>& narrow, const Op<double>& wide,
                   double tolerance = 2e-6) {
  const auto ours = gradients<float>(inputs, narrow), truth = gradients<double>(inputs, wide);
  for (std::size_t k = first; k < inputs.size(); ++k) {
    double largest = 0;
    for (const double v : truth[k]) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < truth[k].size(); ++i) EXPECT_NEAR(ours[k][i], truth[k][i], tolerance * largest) << k << " " << i;
  }
}

constexpr std::size_t kRows = 400'000;

TEST(LongSums, OfABias) {
  expect_digits(
      {{kRows, 3}, {5, 3}, {5}}, 2, [](const auto& v) { return linear(v[0], v[1], v[2]); },
      [](const auto& v) { return linear(v[0], v[1], v[2]); });
}

TEST(LongSums, OfWeights) {
  expect_digits(
      {{kRows, 3}, {5, 3}}, 1, [](const auto& v) { return linear(v[0], v[1]); }, [](const auto& v) { return linear(v[0], v[1]); });
}

TEST(LongSums, OfWhatRepeats) {
  expect_digits({{kRows, 3}, {3}}, 1, [](const auto& v) { return mul(v[0], v[1]); }, [](const auto& v) { return mul(v[0], v[1]); });
  expect_digits({{kRows, 3}, {1}}, 1, [](const auto& v) { return add(v[0], v[1]); }, [](const auto& v) { return add(v[0], v[1]); });
}

TEST(LongSums, OfNorms) {
  expect_digits(
      {{kRows, 6}, {6}}, 1, [](const auto& v) { return rms_norm_groups(v[0], 2, v[1], 1e-5f); },
      [](const auto& v) { return rms_norm_groups(v[0], 2, v[1], 1e-5); });
  // The normal values have both signs; their gain's gradient is small beside its terms.
  expect_digits(
      {{kRows, 6}, {6}, {6}}, 2, [](const auto& v) { return layer_norm(v[0], v[1], v[2], 1e-5f); },
      [](const auto& v) { return layer_norm(v[0], v[1], v[2], 1e-5); });
}

TEST(LongSums, OfConvolutions) {
  expect_digits(
      {{40, kRows / 40, 3}, {3, 4}, {3}}, 1, [](const auto& v) { return conv1d(v[0], v[1], v[2]); },
      [](const auto& v) { return conv1d(v[0], v[1], v[2]); });
}

TEST(LongSums, OfScans) {
  const std::size_t batch = 8, time = 5'000;
  const auto minus = [](auto a) { return scale(a, static_cast<std::remove_cvref_t<decltype(a.value()[0])>>(-1)); };
  const auto selective = [&](const auto& v) { return selective_scan(v[0], v[1], minus(v[2]), v[3], v[4], v[5]); };
  expect_digits({{batch, time, 3}, {batch, time, 3}, {3, 2}, {batch, time, 2}, {batch, time, 2}, {3}}, 2, selective, selective, 5e-6);
  const auto matrix = [&](const auto& v) { return ssd(v[0], v[1], minus(v[2]), v[3], v[4], v[5], 64); };
  expect_digits({{batch, time, 2, 3}, {batch, time, 2}, {2}, {batch, time, 1, 2}, {batch, time, 1, 2}, {2}}, 2, matrix, matrix, 5e-6);
  const auto diagonal = [&](const auto& v) { return diagonal_scan(v[0], v[1], v[2], v[3]); };
  expect_digits({{batch, time, 3}, {2, 2, 3}, {2, 2, 3}, {3}}, 1, diagonal, diagonal, 5e-6);
}

TEST(LongSums, OfADecayAndABonusThatAreTheSameAtEveryStep) {
  const Dims rows{1, kRows, 1, 2};
  const auto op = [](const auto& v) { return linear_attention(v[0], v[1], v[2], v[3], v[4]); };
  expect_digits({rows, rows, rows, {1, 2}, {1, 2}}, 3, op, op);
}

}  // namespace
}  // namespace kizzasi::autograd
