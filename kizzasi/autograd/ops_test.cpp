#include "kizzasi/autograd/ops.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi::autograd {
namespace {

CheckedInput random_input(Dims dims, Rng& rng, double low = -2, double high = 2) { return uniform_input("", dims, rng, low, high); }

Dims random_dims(Rng& rng, std::size_t rank_at_most = 4, std::size_t size_at_most = 5) {
  Dims dims;
  for (std::size_t rank = 1 + rng.below(rank_at_most); dims.size() < rank;) dims.push_back(1 + rng.below(size_at_most));
  return dims;
}

// The dims of an operand that may stand beside `dims`: the same, a trailing part, or one element.
Dims random_partner(const Dims& dims, Rng& rng) {
  const auto keep = rng.below(dims.size() + 1);
  return {dims.end() - static_cast<std::ptrdiff_t>(keep), dims.end()};
}

// Uniform in [low, high] with a random sign, so at least `low` away from 0.
CheckedInput away_from_zero(Dims dims, Rng& rng, double low = 0.3, double high = 2) {
  CheckedInput input = random_input(dims, rng, low, high);
  for (double& v : input.values) v = rng.below(2) == 0 ? v : -v;
  return input;
}

TEST(Ops, LinearIsADoubleLoop) {
  Rng rng(1);
  for (int i = 0; i < 40; ++i) {
    Dims dims = random_dims(rng, 3);
    dims.back() = 1 + rng.below(20);
    const std::size_t depth = dims.back(), outputs = 1 + rng.below(20), rows = elements(leading(dims));
    const bool biased = rng.below(2) == 0;
    std::vector<CheckedInput> inputs{random_input(dims, rng), random_input({outputs, depth}, rng)};
    if (biased) inputs.push_back(random_input({outputs}, rng));
    const auto build = [biased](const auto& v) { return linear(v[0], v[1], biased ? v[2] : std::decay_t<decltype(v[0])>{}); };
    expect_differentiable(inputs, build);
    Tape<double> tape;
    const auto y = evaluate(tape, inputs, build).value;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t o = 0; o < outputs; ++o) {
        double expected = biased ? inputs[2].values[o] : 0;
        for (std::size_t k = 0; k < depth; ++k) expected += inputs[0].values[r * depth + k] * inputs[1].values[o * depth + k];
        ASSERT_NEAR(y[r * outputs + o], expected, 1e-12);
      }
    }
  }
}

TEST(Ops, ArithmeticRepeatsTheSmallerOperand) {
  Rng rng(2);
  for (int i = 0; i < 60; ++i) {
    const Dims dims = random_dims(rng);
    const std::vector<CheckedInput> inputs{random_input(dims, rng), away_from_zero(random_partner(dims, rng), rng)};
    const auto check = [&](const auto& build, double (*f)(double, double)) {
      expect_differentiable(inputs, build);
      Tape<double> tape;
      const auto y = evaluate(tape, inputs, build).value;
      for (std::size_t k = 0; k < y.size(); ++k) {
        ASSERT_EQ(y[k], f(inputs[0].values[k], inputs[1].values[k % inputs[1].values.size()]));
      }
    };
    check([](const auto& v) { return add(v[0], v[1]); }, [](double a, double b) { return a + b; });
    check([](const auto& v) { return sub(v[0], v[1]); }, [](double a, double b) { return a - b; });
    check([](const auto& v) { return mul(v[0], v[1]); }, [](double a, double b) { return a * b; });
    check([](const auto& v) { return div(v[0], v[1]); }, [](double a, double b) { return a / b; });
  }
}

TEST(Ops, ScaleRowsIsAProductWithEachRowsNumber) {
  Rng rng(21);
  for (int i = 0; i < 20; ++i) {
    const Dims dims = random_dims(rng);
    const std::vector<CheckedInput> inputs{random_input(dims, rng), random_input(leading(dims), rng)};
    const auto build = [](const auto& v) { return scale_rows(v[0], v[1]); };
    expect_differentiable(inputs, build);
    Tape<double> tape;
    const auto y = evaluate(tape, inputs, build);
    EXPECT_EQ(y.dims, dims);
    for (std::size_t k = 0; k < y.value.size(); ++k) EXPECT_EQ(y.value[k], inputs[0].values[k] * inputs[1].values[k / dims.back()]);
  }
}

TEST(Ops, ElementwiseFunctionsHaveTheirDerivatives) {
  Rng rng(3);
  for (int i = 0; i < 30; ++i) {
    const Dims dims = random_dims(rng);
    const std::vector<CheckedInput> any{random_input(dims, rng, -5, 5)}, apart{away_from_zero(dims, rng)},
        positive{random_input(dims, rng, 0.2, 4)};
    expect_differentiable(any, [](const auto& v) { return scale(v[0], std::decay_t<decltype(v[0].value()[0])>(-1.5)); });
    expect_differentiable(any, [](const auto& v) { return add_scalar(v[0], std::decay_t<decltype(v[0].value()[0])>(0.7)); });
    expect_differentiable(any, [](const auto& v) { return exp(v[0]); });
    expect_differentiable(any, [](const auto& v) { return square(v[0]); });
    expect_differentiable(any, [](const auto& v) { return sigmoid(v[0]); });
    expect_differentiable(any, [](const auto& v) { return tanh(v[0]); });
    expect_differentiable(any, [](const auto& v) { return silu(v[0]); });
    expect_differentiable(any, [](const auto& v) { return gelu(v[0]); });
    expect_differentiable(any, [](const auto& v) { return gelu_tanh(v[0]); });
    expect_differentiable(any, [](const auto& v) { return sin(v[0]); });
    expect_differentiable(any, [](const auto& v) { return cos(v[0]); });
    expect_differentiable(any, [](const auto& v) { return softplus(v[0]); });
    expect_differentiable(positive, [](const auto& v) { return log(v[0]); });
    expect_differentiable(positive, [](const auto& v) { return sqrt(v[0]); });
    expect_differentiable(apart, [](const auto& v) { return abs(v[0]); });
    expect_differentiable(apart, [](const auto& v) { return relu(v[0]); });
    expect_differentiable(apart, [](const auto& v) {
      using T = std::decay_t<decltype(v[0].value()[0])>;
      return clamp(v[0], T(-0.25), T(0.25));
    });
    expect_differentiable(any, [](const auto& v) {
      using T = std::decay_t<decltype(v[0].value()[0])>;
      return clamp(v[0], T(-10), T(10));
    });
  }
}

TEST(Ops, DerivativesAtTheKinks) {
  Tape<double> tape;
  const std::vector<double> at{-1, 0, 1};
  const auto gradient = [&](auto f) {
    tape.clear();
    const auto x = tape.leaf({3}, at);
    tape.backward(sum(f(x)));
    return std::vector<double>(tape.grad(x).begin(), tape.grad(x).end());
  };
  EXPECT_EQ(gradient([](Var<double> x) { return abs(x); }), (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(gradient([](Var<double> x) { return relu(x); }), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(gradient([](Var<double> x) { return clamp(x, -1.0, 0.5); }), (std::vector<double>{1, 1, 0}));
}

TEST(Ops, ExtremeValuesKeepFiniteDerivatives) {
  const std::vector<float> at{-3e38f, -1000, -88, -30, -1e-30f, 0, 1e-40f, 1e-30f, 30, 88, 1000, 3e38f};
  const auto expect_derivatives = [&](auto f, double (*truth)(double)) {
    Tape<float> tape;
    const auto x = tape.leaf({at.size()}, at);
    const std::vector<float> ones(at.size(), 1.0f);
    tape.backward(f(x), std::span<const float>(ones));
    for (std::size_t i = 0; i < at.size(); ++i) EXPECT_NEAR(tape.grad(x)[i], truth(static_cast<double>(at[i])), 1e-6) << at[i];
  };
  const auto step = [](double x) { return x < -29 ? 0.0 : x < 29 ? 0.5 : 1.0; };
  expect_derivatives([](Var<float> x) { return silu(x); }, step);
  expect_derivatives([](Var<float> x) { return gelu(x); }, step);
  expect_derivatives([](Var<float> x) { return gelu_tanh(x); }, step);
  expect_derivatives([](Var<float> x) { return softplus(x); }, step);
  expect_derivatives([](Var<float> x) { return sigmoid(x); }, [](double x) { return std::abs(x) < 29 ? 0.25 : 0.0; });
  expect_derivatives([](Var<float> x) { return tanh(x); }, [](double x) { return std::abs(x) < 29 ? 1.0 : 0.0; });
}

TEST(Ops, SoftmaxAndLogSumExp) {
  Rng rng(4);
  for (int i = 0; i < 30; ++i) {
    const std::vector<CheckedInput> inputs{random_input(random_dims(rng), rng, -6, 6)};
    expect_differentiable(inputs, [](const auto& v) { return softmax(v[0]); });
    expect_differentiable(inputs, [](const auto& v) { return log_sum_exp(v[0]); });
    Tape<double> tape;
    const auto y = evaluate(tape, inputs, [](const auto& v) { return softmax(v[0]); }).value;
    const auto lse = evaluate(tape, inputs, [](const auto& v) { return log_sum_exp(v[0]); }).value;
    for (std::size_t k = 0; k < y.size(); ++k) {
      ASSERT_NEAR(std::log(y[k]), inputs[0].values[k] - lse[k / inputs[0].dims.back()], 1e-12);
    }
  }
}

TEST(Ops, LogSumExpOfHugeAndImpossibleLogits) {
  const double inf = std::numeric_limits<double>::infinity();
  Tape<double> tape;
  const std::vector<double> logits{1000, 1000, -inf, 5, -inf, -inf, -inf, -inf, -inf};
  const auto x = tape.leaf({3, 3}, logits);
  const auto y = log_sum_exp(x);
  EXPECT_DOUBLE_EQ(y.value()[0], 1000 + std::log(2));
  EXPECT_DOUBLE_EQ(y.value()[1], 5);
  EXPECT_EQ(y.value()[2], -inf);
  tape.backward(sum(y));
  const std::vector<double> expected{0.5, 0.5, 0, 1, 0, 0, 0, 0, 0};
  for (std::size_t i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(tape.grad(x)[i], expected[i]);
}

TEST(Ops, NormsWithAndWithoutGain) {
  Rng rng(5);
  for (int i = 0; i < 40; ++i) {
    const std::size_t groups = 1 + rng.below(4);
    Dims dims = random_dims(rng, 3);
    dims.back() = groups * (2 + rng.below(9));
    const bool gain = rng.below(2) == 0;
    const std::vector<CheckedInput> inputs{random_input(dims, rng), random_input({dims.back()}, rng), random_input({dims.back()}, rng)};
    const auto pick = [](const auto& v, std::size_t k, bool on) { return on ? v[k] : std::decay_t<decltype(v[0])>{}; };
    const auto epsilon = [](const auto& v) { return std::decay_t<decltype(v[0].value()[0])>(1e-2); };
    const std::vector<CheckedInput> one{inputs[0]}, two{inputs[0], inputs[1]};
    expect_differentiable(gain ? two : one, [&](const auto& v) { return rms_norm(v[0], pick(v, 1, gain), epsilon(v)); });
    expect_differentiable(gain ? two : one, [&](const auto& v) { return rms_norm_groups(v[0], groups, pick(v, 1, gain), epsilon(v)); });
    if (gain) {
      expect_differentiable(inputs, [&](const auto& v) { return layer_norm(v[0], v[1], v[2], epsilon(v)); });
      expect_differentiable(two, [&](const auto& v) { return layer_norm(v[0], v[1], {}, epsilon(v)); });
    } else {
      expect_differentiable(two, [&](const auto& v) { return layer_norm(v[0], {}, v[1], epsilon(v)); });
      expect_differentiable(one, [&](const auto& v) { return layer_norm(v[0], {}, {}, epsilon(v)); });
    }
  }
}

TEST(Ops, NormsAreTheirFormulas) {
  Rng rng(6);
  const std::vector<CheckedInput> inputs{random_input({3, 8}, rng), random_input({8}, rng), random_input({8}, rng)};
  const auto &x = inputs[0].values, &gain = inputs[1].values, &bias = inputs[2].values;
  Tape<double> tape;
  const auto grouped = evaluate(tape, inputs, [](const auto& v) {
                         return rms_norm_groups(v[0], 2, v[1], std::decay_t<decltype(v[0].value()[0])>(0.1));
                       }).value;
  const auto layer = evaluate(tape, inputs, [](const auto& v) {
                       return layer_norm(v[0], v[1], v[2], std::decay_t<decltype(v[0].value()[0])>(0.1));
                     }).value;
  for (std::size_t row = 0; row < 3; ++row) {
    double mean = 0, variance = 0;
    for (std::size_t k = 0; k < 8; ++k) mean += x[row * 8 + k] / 8;
    for (std::size_t k = 0; k < 8; ++k) variance += (x[row * 8 + k] - mean) * (x[row * 8 + k] - mean) / 8;
    for (std::size_t i = 0; i < 8; ++i) {
      double square = 0;
      for (std::size_t k = i / 4 * 4; k < i / 4 * 4 + 4; ++k) square += x[row * 8 + k] * x[row * 8 + k] / 4;
      EXPECT_NEAR(grouped[row * 8 + i], gain[i] * x[row * 8 + i] / std::sqrt(square + 0.1), 1e-14);
      EXPECT_NEAR(layer[row * 8 + i], gain[i] * (x[row * 8 + i] - mean) / std::sqrt(variance + 0.1) + bias[i], 1e-14);
    }
  }
}

TEST(Ops, PermuteMovesEveryElementToItsPlace) {
  Rng rng(7);
  for (int i = 0; i < 80; ++i) {
    const CheckedInput input = random_input(random_dims(rng, 5, 4), rng);
    const std::size_t rank = input.dims.size();
    Dims order = input.dims;
    std::iota(order.begin(), order.end(), 0);
    for (std::size_t k = rank; k > 1; --k) std::swap(order[k - 1], order[rng.below(k)]);
    const auto build = [&](const auto& v) { return permute(v[0], order); };
    expect_differentiable({input}, build);
    Tape<double> tape;
    const Evaluation y = evaluate(tape, {input}, build);
    for (std::size_t flat = 0; flat < y.value.size(); ++flat) {
      Dims place = input.dims;
      for (std::size_t axis = rank, left = flat; axis-- > 0; left /= y.dims[axis]) place[order[axis]] = left % y.dims[axis];
      std::size_t from = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) from = from * input.dims[axis] + place[axis];
      ASSERT_EQ(y.value[flat], input.values[from]);
    }
  }
}

TEST(Ops, ReshapeIsTheSameNodeUnderOtherDims) {
  Rng rng(8);
  expect_differentiable({random_input({4, 6}, rng)}, [](const auto& v) {
    // The source is used directly and through two aliases.
    const auto wide = reshape(v[0], {2, 12}), flat = reshape(wide, {24});
    return add(mul(flat, flat), reshape(mul(v[0], reshape(wide, {4, 6})), {24}));
  });
}

TEST(Ops, ConcatOfSlicesIsTheWhole) {
  Rng rng(9);
  for (int i = 0; i < 60; ++i) {
    const CheckedInput input = random_input(random_dims(rng), rng);
    const std::size_t axis = rng.below(input.dims.size()), cut = rng.below(input.dims[axis] + 1);
    const auto whole = [&](const auto& v) {
      using V = std::decay_t<decltype(v[0])>;
      const std::vector<V> parts{slice(v[0], axis, 0, cut), slice(v[0], axis, cut, input.dims[axis])};
      return concat<std::decay_t<decltype(v[0].value()[0])>>(parts, axis);
    };
    expect_differentiable({input}, whole);
    Tape<double> tape;
    EXPECT_EQ(evaluate(tape, {input}, whole).value, input.values);
    // A part used twice, and in squares, so that gradients of parts meet.
    expect_differentiable({input}, [&](const auto& v) {
      using V = std::decay_t<decltype(v[0])>;
      const V part = slice(v[0], axis, 0, cut);
      const std::vector<V> parts{part, square(part), v[0]};
      return concat<std::decay_t<decltype(v[0].value()[0])>>(parts, axis);
    });
  }
}

TEST(Ops, SliceTakesThePlacesItNames) {
  Tape<double> tape;
  std::vector<double> values(24);
  std::iota(values.begin(), values.end(), 0);
  const auto x = tape.leaf({2, 3, 4}, values);
  const auto y = slice(x, 1, 1, 3);
  EXPECT_EQ(y.dims(), (Dims{2, 2, 4}));
  const std::vector<double> expected{4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23};
  EXPECT_EQ(std::vector<double>(y.value().begin(), y.value().end()), expected);
}

TEST(Ops, GatherAddsUpRepeatedRows) {
  Rng rng(10);
  for (int i = 0; i < 40; ++i) {
    const CheckedInput input = random_input(random_dims(rng, 3), rng);
    std::vector<std::size_t> index(1 + rng.below(12));
    for (std::size_t& k : index) k = rng.below(input.dims[0]);
    const auto build = [&](const auto& v) { return gather(square(v[0]), index); };
    expect_differentiable({input}, build);
    Tape<double> tape;
    const auto y = evaluate(tape, {input}, build).value;
    const std::size_t width = y.size() / index.size();
    for (std::size_t k = 0; k < y.size(); ++k) {
      const double from = input.values[index[k / width] * width + k % width];
      ASSERT_EQ(y[k], from * from);
    }
  }
}

TEST(Ops, Sums) {
  Rng rng(11);
  for (int i = 0; i < 40; ++i) {
    const CheckedInput input = random_input(random_dims(rng, 3, 12), rng);
    expect_differentiable({input}, [](const auto& v) { return sum(v[0]); });
    expect_differentiable({input}, [](const auto& v) { return mean(v[0]); });
    expect_differentiable({input}, [](const auto& v) { return sum_last(square(v[0])); });
    Tape<double> tape;
    const double total = std::accumulate(input.values.begin(), input.values.end(), 0.0);
    EXPECT_NEAR(evaluate(tape, {input}, [](const auto& v) { return sum(v[0]); }).value[0], total, 1e-12);
    EXPECT_NEAR(evaluate(tape, {input}, [](const auto& v) { return sum(sum_last(v[0])); }).value[0], total, 1e-12);
    EXPECT_NEAR(evaluate(tape, {input}, [](const auto& v) { return mean(v[0]); }).value[0] * static_cast<double>(input.values.size()),
                total, 1e-12);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
