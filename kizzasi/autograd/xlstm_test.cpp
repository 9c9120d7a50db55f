#include "kizzasi/autograd/xlstm.h"

#include <gtest/gtest.h>

#include <array>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {
namespace {

TEST(LogMaxScanOp, IsTheMaximumOfDecayedInputsAndItsGradientsAreThoseOfDifferences) {
  Rng rng(41);
  const std::vector<CheckedInput> inputs{uniform_input("decay", {2, 12, 3}, rng, -2, -0.01), normal_input("in", {2, 12, 3}, rng, 2)};
  const auto op = [](const auto& v) { return log_max_scan(v[0], v[1]); };
  Tape<double> tape;
  const Evaluation got = evaluate(tape, inputs, op, false);
  for (std::size_t b = 0; b < 2; ++b) {
    for (std::size_t t = 0; t < 12; ++t) {
      for (std::size_t j = 0; j < 3; ++j) {
        // The zero before the first frame, and every input since, each less what decayed after it.
        const auto decays_after = [&](std::size_t from) {
          double sum = 0;
          for (std::size_t k = from; k <= t; ++k) sum += inputs[0].values[(b * 12 + k) * 3 + j];
          return sum;
        };
        double most = decays_after(0);
        for (std::size_t from = 0; from <= t; ++from)
          most = std::max(most, inputs[1].values[(b * 12 + from) * 3 + j] + decays_after(from + 1));
        EXPECT_NEAR(got.value[(b * 12 + t) * 3 + j], most, 1e-13);
      }
    }
  }
  expect_gradients(inputs, op);
}

// The cell of the paper without its running exponent, step by step from primitives; each head on its own.
template <typename T>
Var<T> composed(Var<T> x, Var<T> r) {
  const std::size_t batch = x.dims()[0], time = x.dims()[1], heads = r.dims()[0], width = r.dims()[2], d = heads * width;
  const std::vector<T> zeros(batch * width);
  std::vector<Var<T>> h(heads, x.tape->constant({batch, width}, zeros)), c = h, n = h, all;
  for (std::size_t t = 0; t < time; ++t) {
    std::vector<Var<T>> row;
    for (std::size_t head = 0; head < heads; ++head) {
      const Var<T> inside = linear(h[head], reshape(slice(r, 0, head, head + 1), {4 * width, width}));
      const auto raw = [&](std::size_t g) {
        const std::size_t at = g * d + head * width;
        return add(reshape(slice(slice(x, 1, t, t + 1), 2, at, at + width), {batch, width}), slice(inside, 1, g * width, (g + 1) * width));
      };
      const Var<T> in = exp(raw(0)), keep = sigmoid(raw(1));
      c[head] = add(mul(keep, c[head]), mul(in, tanh(raw(2))));
      n[head] = add(mul(keep, n[head]), in);
      h[head] = mul(sigmoid(raw(3)), div(c[head], n[head]));
      row.push_back(reshape(h[head], {batch, 1, width}));
    }
    all.push_back(concat(std::span<const Var<T>>(row), 2));
  }
  return concat(std::span<const Var<T>>(all), 1);
}

TEST(SlstmOp, IsItsCellAndItsGradientsAreThoseOfDifferences) {
  Rng rng(42);
  for (const auto& [time, heads, width] : {std::array<std::size_t, 3>{1, 1, 1}, {9, 2, 3}, {20, 3, 2}}) {
    const std::vector<CheckedInput> inputs{normal_input("x", {2, time, 4 * heads * width}, rng),
                                           normal_input("r", {heads, 4 * width, width}, rng)};
    const auto op = [](const auto& v) { return slstm(v[0], v[1]); };
    Tape<double> tape, other;
    const Evaluation got = evaluate(tape, inputs, op);
    const Evaluation wanted = evaluate(other, inputs, [](const auto& v) { return composed(v[0], v[1]); });
    for (std::size_t i = 0; i < wanted.value.size(); ++i) ASSERT_NEAR(got.value[i], wanted.value[i], 1e-12);
    for (std::size_t k = 0; k < 2; ++k) {
      for (std::size_t i = 0; i < wanted.gradients[k].size(); ++i) ASSERT_NEAR(got.gradients[k][i], wanted.gradients[k][i], 1e-11);
    }
    expect_gradients(inputs, op);
    expect_f32_near_f64(inputs, op, 1e-5);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
