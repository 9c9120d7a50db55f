#include "kizzasi/autograd/attention.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi::autograd {
namespace {

// As defined, one query at a time.
std::vector<double> truth(const std::vector<CheckedInput>& in, std::size_t window) {
  const Dims& d = in[0].dims;
  const std::size_t time = d[1], heads = d[2], width = d[3], kv_heads = in[1].dims[2];
  std::vector<double> y;
  for (std::size_t b = 0; b < d[0]; ++b) {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        const std::size_t kv = h / (heads / kv_heads);
        std::vector<double> out(width);
        double sum = 0;
        for (std::size_t j = t + 1 > window ? t + 1 - window : 0; j <= t; ++j) {
          double dot = 0;
          for (std::size_t i = 0; i < width; ++i) {
            dot += in[0].values[((b * time + t) * heads + h) * width + i] * in[1].values[((b * time + j) * kv_heads + kv) * width + i];
          }
          const double weight = std::exp(dot / std::sqrt(static_cast<double>(width)));
          sum += weight;
          for (std::size_t i = 0; i < width; ++i) out[i] += weight * in[2].values[((b * time + j) * kv_heads + kv) * width + i];
        }
        for (const double each : out) y.push_back(each / sum);
      }
    }
  }
  return y;
}

TEST(AttentionOp, IsItsDefinitionAndItsGradientsAreThoseOfDifferences) {
  Rng rng(31);
  struct Size {
    std::size_t time, heads, kv_heads, width, window;
  };
  for (const Size& s : {Size{1, 1, 1, 1, 1}, {9, 4, 2, 3, 100}, {9, 3, 1, 4, 3}, {150, 2, 2, 2, 40}, {70, 1, 1, 2, 500}}) {
    const std::vector<CheckedInput> inputs{normal_input("q", {2, s.time, s.heads, s.width}, rng),
                                           normal_input("k", {2, s.time, s.kv_heads, s.width}, rng),
                                           normal_input("v", {2, s.time, s.kv_heads, s.width}, rng)};
    const auto op = [&](const auto& v) { return attention(v[0], v[1], v[2], s.window); };
    Tape<double> tape;
    const Evaluation got = evaluate(tape, inputs, op, false);
    const std::vector<double> wanted = truth(inputs, s.window);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got.value[i], wanted[i], 1e-13) << i;
    expect_gradients(inputs, op, 1e-8, 1e-4, 12);
    expect_f32_near_f64(inputs, op, 4e-6);
  }
}

TEST(RotaryOp, TurnsPairsAndItsGradientsAreThoseOfDifferences) {
  Rng rng(32);
  const std::vector<CheckedInput> inputs{normal_input("x", {2, 7, 3, 10}, rng)};
  const auto op = [](const auto& v) { return rotary(v[0], 500.0, 6); };
  Tape<double> tape;
  const Evaluation got = evaluate(tape, inputs, op, false);
  for (std::size_t row = 0; row < 42; ++row) {
    const double* from = inputs[0].values.data() + row * 10;
    const double* to = got.value.data() + row * 10;
    for (std::size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(row / 3 % 7) * std::pow(500.0, -2.0 * static_cast<double>(i) / 6);
      EXPECT_NEAR(to[i], from[i] * std::cos(angle) - from[i + 3] * std::sin(angle), 1e-6);
      EXPECT_NEAR(to[i + 3], from[i + 3] * std::cos(angle) + from[i] * std::sin(angle), 1e-6);
    }
    for (std::size_t i = 6; i < 10; ++i) EXPECT_EQ(to[i], from[i]);
  }
  expect_gradients(inputs, op);
  expect_f32_near_f64(inputs, op);
}

}  // namespace
}  // namespace kizzasi::autograd
