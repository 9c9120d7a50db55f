#include "kizzasi/kernels/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

struct Case {
  std::size_t rows, inputs, outputs;
  bool biased;
};

// Rows longer than they need be, so that strides are tried too.
struct Rows {
  std::vector<float> values;
  std::size_t rows, cols, stride;
  Rows(std::size_t r, std::size_t c, std::size_t s, unsigned seed)
      : values(normal_values(r * s, 1.0f, seed)), rows(r), cols(c), stride(s) {}
  MatrixSpan span() { return {values.data(), rows, cols, stride}; }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t n = 1; n <= 300; ++n) all.push_back({1 + n % 13, 1 + n * 7 % 40, n, n % 2 == 0});
  for (std::size_t k = 1; k <= 300; ++k) all.push_back({1 + k % 8, k, 1 + k * 5 % 150, k % 3 == 0});
  for (std::size_t rows = 1; rows <= 40; ++rows) all.push_back({rows, 24, 88, true});
  all.push_back({9, 1300, 130, true});  // deeper than a block of inputs
  all.push_back({3, 0, 70, true});
  all.push_back({8, 0, 64, false});
  all.push_back({0, 5, 64, false});
  return all;
}

TEST(Linear, IsTheChainOfFusedMultiplyAddsBitForBit) {
  on_every_target([] {
    for (const Case& c : cases()) {
      SCOPED_TRACE(testing::Message() << c.rows << " rows, " << c.inputs << " -> " << c.outputs);
      const auto weights = normal_values(c.outputs * c.inputs, 1.0f, 1), bias = normal_values(c.outputs, 1.0f, 2);
      const PackedWeight w = PackedWeight::pack(weights, c.outputs, c.inputs);
      ASSERT_EQ(w.precision(), Precision::kF32);
      const std::span<const float> b = c.biased ? std::span<const float>(bias) : std::span<const float>();
      Rows x(c.rows, c.inputs, c.inputs + 3, 3), fast(c.rows, c.outputs, c.outputs + 5, 4);
      const std::vector<float> before = fast.values;
      linear(w, x.span(), b, fast.span());
      for (std::size_t r = 0; r < c.rows; ++r) {
        for (std::size_t o = 0; o < c.outputs; ++o) {
          float chain = c.biased ? bias[o] : 0.0f;
          double size = std::abs(chain);
          for (std::size_t k = 0; k < c.inputs; ++k) {
            chain = std::fma(x.values[r * x.stride + k], weights[o * c.inputs + k], chain);
            size += std::abs(double{x.values[r * x.stride + k]} * weights[o * c.inputs + k]);
          }
          const float value = fast.values[r * fast.stride + o];
          if (fuses_multiply_and_add()) {
            ASSERT_EQ(value, chain) << r << " " << o;
          } else {
            ASSERT_NEAR(value, chain, 1e-5 * size) << r << " " << o;
          }
        }
        for (std::size_t o = c.outputs; o < fast.stride; ++o) ASSERT_EQ(fast.values[r * fast.stride + o], before[r * fast.stride + o]);
      }
    }
  });
}

// In every precision: the bits of the plain form, and the product of the rounded weights in double.
TEST(Linear, IsItsPlainFormInEveryPrecision) {
  std::vector<Case> some;
  for (const Case& c : cases()) {
    if (c.outputs % 5 == 0 || c.inputs % 5 == 0) some.push_back(c);
  }
  some.push_back({5, 9000, 70, true});  // inputs rounded in three pieces
  for (const Precision precision : kPrecisions) {
    for (const Case& c : some) {
      SCOPED_TRACE(testing::Message() << precision_name(precision) << ", " << c.rows << " rows, " << c.inputs << " -> " << c.outputs);
      auto weights = normal_values(c.outputs * c.inputs, 1.0f, 1);
      const auto bias = normal_values(c.outputs, 1.0f, 2);
      const PackedWeight w = PackedWeight::pack(weights, c.outputs, c.inputs, precision);
      round_to(precision, weights, c.inputs);
      const std::span<const float> b = c.biased ? std::span<const float>(bias) : std::span<const float>();
      Rows x(c.rows, c.inputs, c.inputs + 3, 3), plain(c.rows, c.outputs, c.outputs + 5, 4), fast = plain;
      linear_plain(w, x.span(), b, plain.span());
      for (std::size_t r = 0; r < c.rows; ++r) {
        const std::span<const float> row = x.span().row(r);
        float most = 0;
        for (const float value : row) most = std::max(most, std::abs(value));
        for (std::size_t o = 0; o < c.outputs; ++o) {
          double sum = c.biased ? bias[o] : 0.0, size = std::abs(sum), all = 0;
          for (std::size_t k = 0; k < c.inputs; ++k) {
            const double weight = weights[o * c.inputs + k];
            sum += row[k] * weight, size += std::abs(row[k] * weight), all += std::abs(weight);
          }
          const bool integers = precision == Precision::kI8 || precision == Precision::kI4;
          const double half_a_level = integers ? all * most / 4128 / 2 : 0;
          ASSERT_NEAR(plain.values[r * plain.stride + o], sum, 1e-5 * size + half_a_level) << r << " " << o;
        }
      }
      on_every_target([&] {
        linear(w, x.span(), b, fast.span());
        if (fuses_multiply_and_add()) {
          ASSERT_EQ(bits(fast.values), bits(plain.values));
        } else {
          for (std::size_t i = 0; i < fast.values.size(); ++i) {
            ASSERT_NEAR(fast.values[i], plain.values[i], 1e-4 * std::sqrt(1.0 + static_cast<double>(c.inputs)));
          }
        }
      });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Linear, GivesARowTheSameBitsAloneAndInAnyBatchOnEveryTarget) {
  on_every_target([] {
    for (const Precision precision : kPrecisions) {
      for (const std::size_t inputs : {5, 600}) {
        for (const std::size_t outputs : {10, 64, 200}) {
          const PackedWeight w = PackedWeight::pack(normal_values(outputs * inputs, 1.0f, 1), outputs, inputs, precision);
          Rows x(23, inputs, inputs, 2), whole(23, outputs, outputs, 3), alone(23, outputs, outputs, 4);
          linear(w, x.span(), {}, whole.span());
          for (std::size_t r = 0; r < 23; ++r) linear(w, x.span().slice(r, 1), {}, alone.span().slice(r, 1));
          ASSERT_EQ(bits(whole.values), bits(alone.values)) << precision_name(precision) << " " << inputs << " -> " << outputs;
        }
      }
    }
  });
}

TEST(Linear, WithIntegerWeightsGivesNanForARowThatIsNotFiniteAndTheBiasForOneOfZeros) {
  on_every_target([] {
    for (const Precision precision : {Precision::kI8, Precision::kI4}) {
      const PackedWeight w = PackedWeight::pack(normal_values(70 * 9, 1.0f, 1), 70, 9, precision);
      const auto bias = normal_values(70, 1.0f, 2);
      Rows x(6, 9, 9, 3), y(6, 70, 70, 4);
      x.values[1 * 9 + 8] = std::numeric_limits<float>::quiet_NaN();
      x.values[4 * 9] = -std::numeric_limits<float>::infinity();
      for (std::size_t k = 0; k < 9; ++k) x.values[2 * 9 + k] = 0;
      linear(w, x.span(), bias, y.span());
      for (std::size_t r = 0; r < 6; ++r) {
        for (std::size_t o = 0; o < 70; ++o) {
          ASSERT_EQ(std::isnan(y.values[r * 70 + o]), r == 1 || r == 4) << r << " " << o;
          ASSERT_TRUE(r != 2 || y.values[r * 70 + o] == bias[o]);
        }
      }
    }
  });
}

TEST(Linear, KeepsNanInItsRowAndItsOutput) {
  on_every_target([] {
    std::vector<float> weights = normal_values(70 * 9, 1.0f, 1);
    weights[33 * 9 + 4] = std::numeric_limits<float>::quiet_NaN();
    const PackedWeight w = PackedWeight::pack(weights, 70, 9);
    Rows x(7, 9, 9, 2), y(7, 70, 70, 3);
    x.values[5 * 9 + 2] = std::numeric_limits<float>::quiet_NaN();
    linear(w, x.span(), {}, y.span());
    for (std::size_t r = 0; r < 7; ++r) {
      for (std::size_t o = 0; o < 70; ++o) ASSERT_EQ(std::isnan(y.values[r * 70 + o]), r == 5 || o == 33) << r << " " << o;
    }
  });
}

TEST(PackedWeight, IsIndependentOfWhatItWasCopiedOrMovedFrom) {
  const auto values = normal_values(70 * 3, 1.0f, 1);
  Rows x(1, 3, 3, 2), expected(1, 70, 70, 3), y(1, 70, 70, 4);
  PackedWeight copy, moved;
  {
    PackedWeight w = PackedWeight::pack(values, 70, 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w.data()) % 64, 0u);
    EXPECT_EQ(w.bytes(), 2u * 3 * 64 * sizeof(float));
    linear(w, x.span(), {}, expected.span());
    copy = w;
    moved = std::move(w);
  }
  linear(copy, x.span(), {}, y.span());
  EXPECT_EQ(y.values, expected.values);
  linear(moved, x.span(), {}, y.span());
  EXPECT_EQ(y.values, expected.values);
  EXPECT_NE(copy.data(), moved.data());
}

}  // namespace
}  // namespace kizzasi::kernels
