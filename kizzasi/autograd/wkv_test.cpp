#include "kizzasi/autograd/wkv.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {
namespace {

const auto wkv4_op = [](const auto& v) { return wkv4(v[0], v[1], v[2], v[3]); };

// Without a recurrence: the average of all values so far, weighted by e^(k_s + (t - 1 - s) w), and by e^(u + k_t) for the newest.
std::vector<double> truth(const std::vector<CheckedInput>& in) {
  const Dims& d = in[0].dims;
  std::vector<double> y;
  for (std::size_t b = 0; b < d[0]; ++b) {
    for (std::size_t t = 0; t < d[1]; ++t) {
      for (std::size_t c = 0; c < d[2]; ++c) {
        double above = 0, below = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          const std::size_t at = (b * d[1] + s) * d[2] + c;
          const double age = static_cast<double>(t) - 1 - static_cast<double>(s);
          const double weight = std::exp(in[0].values[at] + (s == t ? in[3].values[c] : age * in[2].values[c]));
          above += weight * in[1].values[at];
          below += weight;
        }
        y.push_back(above / below);
      }
    }
  }
  return y;
}

TEST(Wkv4Op, IsTheWeightedAverageAndItsGradientsAreThoseOfDifferences) {
  Rng rng(21);
  for (const auto& [time, channels] : {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {40, 19}}) {
    const std::vector<CheckedInput> inputs{normal_input("k", {2, time, channels}, rng), normal_input("v", {2, time, channels}, rng),
                                           uniform_input("w", {channels}, rng, -2, -0.01), normal_input("u", {channels}, rng)};
    Tape<double> tape;
    const Evaluation got = evaluate(tape, inputs, wkv4_op, false);
    const std::vector<double> wanted = truth(inputs);
    ASSERT_EQ(got.value.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(got.value[i], wanted[i], 1e-12) << i;
    expect_gradients(inputs, wkv4_op);
    expect_f32_near_f64(inputs, wkv4_op, 5e-6);
  }
}

TEST(DecayOp, IsTheExponentialOfMinusAnExponential) {
  Rng rng(23);
  const std::vector<CheckedInput> inputs{uniform_input("x", {40}, rng, -9, 1.5)};
  const auto op = [](const auto& v) { return decay_of(v[0]); };
  Tape<double> tape;
  const Evaluation got = evaluate(tape, inputs, op, false);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_DOUBLE_EQ(got.value[i], std::exp(-std::exp(inputs[0].values[i])));
  expect_gradients(inputs, op);
}

TEST(ShiftedOp, GivesTheRowBefore) {
  Rng rng(22);
  for (const std::size_t time : {1u, 2u, 9u}) {
    const std::vector<CheckedInput> inputs{normal_input("x", {2, time, 3}, rng)};
    const auto op = [](const auto& v) { return shifted(v[0]); };
    Tape<double> tape;
    const Evaluation got = evaluate(tape, inputs, op, false);
    for (std::size_t i = 0; i < got.value.size(); ++i) {
      EXPECT_EQ(got.value[i], i % (time * 3) < 3 ? 0.0 : inputs[0].values[i - 3]) << i;
    }
    expect_gradients(inputs, op);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
