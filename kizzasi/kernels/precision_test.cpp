#include "kizzasi/kernels/precision.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

// What IEEE 754 says that bits of a format mean, in double.
double meaning(std::uint32_t bits, int exponent_bits, int digit_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  const int exponent = static_cast<int>(bits >> digit_bits) & top, digits = static_cast<int>(bits) & ((1 << digit_bits) - 1);
  const double sign = (bits >> (exponent_bits + digit_bits)) != 0 ? -1.0 : 1.0;
  if (exponent == top) return digits == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(digits, 1 - bias - digit_bits);
  return sign * std::ldexp((1 << digit_bits) + digits, exponent - bias - digit_bits);
}

TEST(Precision, HalfFloatsMeanWhatTheirFormatsSay) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double small = meaning(bits, 5, 10), brain = meaning(bits, 8, 7);
    if (std::isnan(small)) {
      ASSERT_TRUE(std::isnan(from_f16(half)) && std::isnan(from_f16(to_f16(from_f16(half)))));
    } else {
      ASSERT_EQ(static_cast<double>(from_f16(half)), small) << bits;
      ASSERT_EQ(std::signbit(from_f16(half)), std::signbit(small));
      ASSERT_EQ(to_f16(static_cast<float>(small)), half);
    }
    if (std::isnan(brain)) {
      ASSERT_TRUE(std::isnan(from_bf16(half)) && std::isnan(from_bf16(to_bf16(from_bf16(half)))));
    } else {
      ASSERT_EQ(static_cast<double>(from_bf16(half)), brain) << bits;
      ASSERT_EQ(to_bf16(static_cast<float>(brain)), half);
    }
  }
}

TEST(Precision, RoundsToTheNearestHalfFloatTiesToEven) {
  for (std::uint32_t bits = 0; bits + 1 < 0x7C00; ++bits) {  // between every two neighbours
    const float low = from_f16(static_cast<std::uint16_t>(bits)), high = from_f16(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(to_f16(middle), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(to_f16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(to_f16(std::nextafter(middle, 1e9f)), bits + 1);
    ASSERT_EQ(to_f16(-middle), 0x8000u | (bits % 2 == 0 ? bits : bits + 1));
  }
  EXPECT_EQ(from_f16(to_f16(65519.0f)), 65504.0f);
  EXPECT_EQ(from_f16(to_f16(65520.0f)), std::numeric_limits<float>::infinity());
  for (std::uint32_t bits = 0; bits + 1 < 0x7F80; ++bits) {
    const std::uint32_t low = bits << 16;
    ASSERT_EQ(to_bf16(std::bit_cast<float>(low | 0x7FFFu)), bits);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(low | 0x8000u)), bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(to_bf16(std::bit_cast<float>(low | 0x8001u)), bits + 1);
  }
}

TEST(Precision, IntegersStandWithinHalfAStepOfTheirValuesAndStayThere) {
  for (std::size_t n = 1; n <= 100; ++n) {
    const auto values = normal_values(n, n % 7 == 0 ? 1e-20f : 3.0f, static_cast<unsigned>(n));
    std::vector<std::int8_t> q(n), again(n);
    const float scale = quantize_i8(values, q);
    std::vector<float> kept(n);
    for (std::size_t i = 0; i < n; ++i) {
      kept[i] = scale * static_cast<float>(q[i]);
      EXPECT_LE(std::abs(kept[i] - values[i]), scale * 0.77f);  // half a step, and what the scale's own rounding clips of the largest
    }
    EXPECT_EQ(quantize_i8(kept, again), scale);
    EXPECT_EQ(again, q);
    std::vector<float> rounded = values;
    round_to(Precision::kI8, rounded, n);
    EXPECT_EQ(rounded, kept);
  }
  for (std::size_t n = 1; n <= kI4Block; ++n) {
    const auto values = normal_values(n, 2.0f, static_cast<unsigned>(n));
    std::vector<std::uint8_t> q(n), again(n);
    const float scale = quantize_i4(values, q);
    std::vector<float> kept(n);
    for (std::size_t i = 0; i < n; ++i) {
      kept[i] = scale * (static_cast<float>(q[i]) - 8.0f);
      EXPECT_LE(std::abs(kept[i] - values[i]), std::abs(scale) * 1.04f);  // a whole step at the end that has one number fewer
    }
    EXPECT_EQ(quantize_i4(kept, again), scale);
    EXPECT_EQ(again, q);
    std::vector<float> rounded = values;
    round_to(Precision::kI4, rounded, n);
    EXPECT_EQ(rounded, kept);
  }
}

TEST(Precision, RoundingTwiceChangesNothing) {
  for (const Precision precision : kPrecisions) {
    for (const std::size_t inputs : {1, 31, 32, 33, 100}) {
      std::vector<float> once = normal_values(7 * inputs, 0.3f, 5);
      for (std::size_t k = 0; k < inputs; ++k) once[k] = 0;  // a row of zeros
      round_to(precision, once, inputs);
      std::vector<float> twice = once;
      round_to(precision, twice, inputs);
      EXPECT_EQ(bits(twice), bits(once)) << precision_name(precision) << " " << inputs;
    }
  }
}

TEST(Precision, HasANameThatReadsBack) {
  for (const Precision precision : kPrecisions) EXPECT_EQ(precision_from_name(precision_name(precision)), precision);
  EXPECT_EQ(precision_from_name("int16"), std::nullopt);
}

}  // namespace
}  // namespace kizzasi::kernels
