#include "kizzasi/autograd/sequences.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/autograd/attention.h"
#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const Lengths kLengths[] = {{3, 1, 5}, {4}, {0, 2, 0, 7}, {6, 6}};

TEST(Sequences, ArePaddedToTheLongestOrToAFixedLength) {
  const std::vector<double> sequences[] = {{1, 2, 3, 4}, {}, {5, 6}};
  for (const std::size_t time : {0, 3}) {
    const auto padded = pad(std::span<const std::vector<double>>(sequences), 2, time, -1.0);
    ASSERT_TRUE(padded);
    EXPECT_EQ(padded->lengths, (Lengths{2, 0, 1}));
    EXPECT_EQ(padded->dims, (Dims{3, time == 0 ? std::size_t{2} : time, 2}));
  }
  EXPECT_EQ(pad(std::span<const std::vector<double>>(sequences), 2, 3, -1.0)->values,
            (std::vector<double>{1, 2, 3, 4, -1, -1, -1, -1, -1, -1, -1, -1, 5, 6, -1, -1, -1, -1}));
}

TEST(Sequences, ThatDoNotFitAreNamed) {
  const std::vector<float> sequences[] = {{1, 2}, {1, 2, 3, 4, 5, 6}, {1, 2, 3}};
  const auto text = [&](std::size_t count, std::size_t width, std::size_t time) {
    return pad(std::span<const std::vector<float>>(sequences, count), width, time).error().text();
  };
  EXPECT_NE(text(2, 2, 2).find("sequence 1: it has 3 rows (expected at most the 2"), std::string::npos) << text(2, 2, 2);
  EXPECT_NE(text(3, 2, 0).find("sequence 2: it has 3 values (expected a multiple of the 2"), std::string::npos) << text(3, 2, 0);
  EXPECT_NE(text(1, 0, 0).find("sequence 0"), std::string::npos);
}

TEST(Sequences, MasksAndBeginsAreThoseOfTheirLengths) {
  EXPECT_EQ(mask({2, 0, 3}, 3), (std::vector<std::uint8_t>{1, 1, 0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(begins({2, 0, 3}), (std::vector<std::uint8_t>{1, 0, 1, 0, 0}));
}

TEST(Sequences, PackAndUnpackAreEachOthersInverse) {
  Rng rng(1);
  for (const Lengths& lengths : kLengths) {
    Tape<double> tape;
    const std::size_t time = longest(lengths) + 2, rows = total(lengths);
    const auto in = normal_input("x", {rows, 2, 3}, rng);
    const Var<double> packed = tape.constant(in.dims, std::span<const double>(in.values));
    const Var<double> padded = unpack(packed, lengths, time), again = pack(padded, lengths);
    EXPECT_EQ(padded.dims(), (Dims{lengths.size(), time, 2, 3}));
    EXPECT_EQ(std::vector<double>(again.value().begin(), again.value().end()), in.values);
    const auto valid = mask(lengths, time);
    std::size_t next = 0;
    for (std::size_t i = 0; i < padded.value().size(); ++i) {
      ASSERT_EQ(padded.value()[i], valid[i / 6] != 0 ? in.values[next++] : 0.0);
    }
  }
}

TEST(Sequences, MaskedSumsAndMeansAreThoseOfTheRowsAndTheirGradientsThoseOfDifferences) {
  Rng rng(2);
  for (const Lengths& lengths : kLengths) {
    const std::size_t time = longest(lengths) + 1;
    const std::vector<CheckedInput> inputs{normal_input("x", {lengths.size(), time, 3}, rng)};
    const auto of = [&](auto op) { return [&, op](const auto& v) { return op(square(v[0]), lengths); }; };
    const auto sums = of([](auto x, const Lengths& l) { return masked_sum(x, l); });
    const auto means = of([](auto x, const Lengths& l) { return masked_mean(x, l); });
    double truth = 0;
    const auto valid = mask(lengths, time);
    for (std::size_t i = 0; i < inputs[0].values.size(); ++i) truth += valid[i / 3] * inputs[0].values[i] * inputs[0].values[i];
    Tape<double> tape;
    EXPECT_NEAR(evaluate(tape, inputs, sums, false).value[0], truth, 1e-13);
    EXPECT_NEAR(evaluate(tape, inputs, means, false).value[0], truth / static_cast<double>(3 * total(lengths)), 1e-13);
    expect_differentiable(inputs, sums);
    expect_differentiable(inputs, means);
    expect_differentiable(inputs, [&](const auto& v) { return without_padding(square(v[0]), lengths); });
  }
}

TEST(Sequences, NaNInThePaddingChangesNothing) {
  Rng rng(3);
  const Lengths lengths{3, 0, 5};
  const auto x = normal_input("x", {3, 6, 2}, rng), w = normal_input("w", {4, 2}, rng);
  const auto with = [&](double padding) {
    std::vector<CheckedInput> inputs{x, w};
    const auto valid = mask(lengths, 6);
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      if (valid[i / 2] == 0) inputs[0].values[i] = padding;
    }
    Tape<double> tape;
    return evaluate(tape, inputs,
                    [&](const auto& v) { return masked_mean(square(linear(without_padding(v[0], lengths), v[1])), lengths); });
  };
  const Evaluation clean = with(0), spoilt = with(kNan);
  EXPECT_EQ(clean.value, spoilt.value);
  EXPECT_EQ(clean.gradients, spoilt.gradients);
  for (const double g : spoilt.gradients[0]) EXPECT_TRUE(std::isfinite(g));
}

TEST(Sequences, OfNoRowsHaveNoMeanAndNoGradient) {
  Tape<double> tape;
  const std::vector<double> values(8, kNan);
  const Var<double> x = tape.leaf({2, 4}, std::span<const double>(values));
  const Var<double> y = masked_mean(x, {0, 0});
  EXPECT_EQ(y.value()[0], 0);
  tape.backward(y);
  for (const double g : tape.grad(x)) EXPECT_EQ(g, 0);
}

// Attention of packed sequences is that of each alone, and nothing flows from one to another.
TEST(PackedAttention, EqualsThatOfEachSequenceAlone) {
  Rng rng(4);
  for (const Lengths& lengths : {Lengths{3, 1, 5}, Lengths{70, 0, 90, 1}, Lengths{64, 64}, Lengths{9}}) {
    for (const std::size_t window : {1, 4, 500}) {
      const std::size_t rows = total(lengths);
      const std::vector<CheckedInput> inputs{normal_input("q", {2, rows, 4, 2}, rng), normal_input("k", {2, rows, 2, 2}, rng),
                                             normal_input("v", {2, rows, 2, 2}, rng)};
      const auto packed = [&](const auto& v) {
        return attention(rotary(v[0], 100.0, 2, lengths), rotary(v[1], 100.0, 2, lengths), v[2], window, lengths);
      };
      const auto alone = [&](const auto& v) {
        auto parts = std::vector(v.begin(), v.begin());
        std::size_t at = 0;
        for (const std::size_t length : lengths) {
          if (length == 0) continue;
          const auto part = [&](std::size_t i) { return slice(v[i], 1, at, at + length); };
          parts.push_back(attention(rotary(part(0), 100.0, 2), rotary(part(1), 100.0, 2), part(2), window));
          at += length;
        }
        return concat(std::span(std::as_const(parts)), 1);
      };
      Tape<double> one, other;
      const Evaluation a = evaluate(one, inputs, packed), b = evaluate(other, inputs, alone);
      ASSERT_EQ(a.dims, b.dims);
      for (std::size_t i = 0; i < b.value.size(); ++i) ASSERT_NEAR(a.value[i], b.value[i], 1e-13) << i;
      for (std::size_t k = 0; k < 3; ++k) {
        for (std::size_t i = 0; i < b.gradients[k].size(); ++i) ASSERT_NEAR(a.gradients[k][i], b.gradients[k][i], 1e-12) << k << " " << i;
      }
      expect_f32_near_f64(inputs, packed, 4e-6);
    }
  }
}

TEST(PackedAttention, ItsGradientsAreThoseOfDifferences) {
  Rng rng(5);
  const Lengths lengths{3, 6, 2};
  const std::vector<CheckedInput> inputs{normal_input("q", {1, 11, 2, 2}, rng), normal_input("k", {1, 11, 1, 2}, rng),
                                         normal_input("v", {1, 11, 1, 2}, rng)};
  expect_gradients(inputs, [&](const auto& v) { return attention(rotary(v[0], 9.0, 2, lengths), v[1], v[2], 4, lengths); });
}

}  // namespace
}  // namespace kizzasi::autograd
