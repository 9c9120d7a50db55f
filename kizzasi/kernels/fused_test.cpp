#include "kizzasi/kernels/fused.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi::kernels {
namespace {

constexpr std::array<Elementwise, 7> kFunctions{silu, sigmoid, tanh, softplus, gelu, gelu_tanh, relu};
constexpr std::array kPrecisions{Precision::kF32, Precision::kBf16, Precision::kF16, Precision::kI8, Precision::kI4};

struct Rows {
  Rows(std::size_t n, std::size_t width, unsigned seed) : values(normal_values(n * width, 1.0f, seed)), rows(n), cols(width) {}
  MatrixView view() const { return {values.data(), rows, cols}; }
  MatrixSpan span() { return {values.data(), rows, cols}; }
  std::vector<float> values;
  std::size_t rows, cols;
};

void apply(Elementwise f, Rows& y) {
  for (std::size_t r = 0; r < y.rows; ++r) f(y.span().row(r), y.span().row(r));
}

// Sizes on both sides of a block of outputs, of a tile of rows and of the depth that many rows go through together.
TEST(Fused, AProductAndAFunctionAreTheOneAfterTheOther) {
  on_every_target([] {
    unsigned seed = 1;
    for (const Precision precision : kPrecisions) {
      for (const std::size_t outputs : {1u, 63u, 64u, 70u, 192u}) {
        for (const std::size_t inputs : {0u, 5u, 64u, 600u}) {
          for (const std::size_t rows : {1u, 3u, 6u, 7u, 20u}) {
            const Elementwise f = kFunctions[seed++ % kFunctions.size()];
            const auto w = PackedWeight::pack(normal_values(outputs * inputs, 0.3f, seed), outputs, inputs, precision);
            const std::vector<float> bias = seed % 3 == 0 ? std::vector<float>{} : normal_values(outputs, 1.0f, seed + 1);
            const Rows x(rows, inputs, seed + 2);
            Rows fused(rows, outputs, seed + 3), parts(rows, outputs, seed + 4);
            linear_then(w, x.view(), bias, f, fused.span());
            linear(w, x.view(), bias, parts.span());
            apply(f, parts);
            ASSERT_EQ(bits(fused.values), bits(parts.values)) << outputs << " x " << inputs << ", " << rows << " rows";
          }
        }
      }
    }
  });
}

TEST(Fused, ANormAndAFunctionAreTheOneAfterTheOther) {
  on_every_target([] {
    unsigned seed = 50;
    for (const std::size_t size : {1u, 7u, 64u, 1023u, 1024u, 1025u, 5000u}) {
      for (const Elementwise f : kFunctions) {
        const auto x = normal_values(size, 3.0f, ++seed), gain = normal_values(size, 1.0f, ++seed),
                   bias = normal_values(size, 1.0f, ++seed);
        std::vector<float> fused(size), parts(size);
        layer_norm_then(x, gain, bias, 1e-5f, f, fused);
        layer_norm(x, gain, bias, 1e-5f, parts);
        f(parts, parts);
        ASSERT_EQ(bits(fused), bits(parts)) << size;
        fused = x;
        rms_norm_then(fused, gain, 1e-5f, f, fused);  // in place
        rms_norm(x, gain, 1e-5f, parts);
        f(parts, parts);
        ASSERT_EQ(bits(fused), bits(parts)) << size;
      }
    }
  });
}

TEST(Fused, AFeedForwardIsItsThreeParts) {
  on_every_target([] {
    unsigned seed = 90;
    for (const Precision precision : kPrecisions) {
      for (const std::size_t rows : {1u, 47u, 48u, 49u, 130u}) {
        constexpr std::size_t kWidth = 40, kInner = 150;
        const auto up = PackedWeight::pack(normal_values(kInner * kWidth, 0.2f, ++seed), kInner, kWidth, precision);
        const auto down = PackedWeight::pack(normal_values(kInner * kWidth, 0.2f, ++seed), kWidth, kInner, precision);
        const auto up_bias = normal_values(kInner, 1.0f, ++seed), down_bias = normal_values(kWidth, 1.0f, ++seed);
        const Rows x(rows, kWidth, ++seed);
        Rows fused(rows, kWidth, ++seed), parts(rows, kWidth, ++seed), between(rows, kInner, ++seed);
        std::vector<float> hidden(feed_forward_floats(rows, kInner));
        feed_forward(up, up_bias, gelu_tanh, down, down_bias, x.view(), fused.span(), hidden);
        linear(up, x.view(), up_bias, between.span());
        apply(gelu_tanh, between);
        linear(down, between.view(), down_bias, parts.span());
        ASSERT_EQ(bits(fused.values), bits(parts.values)) << rows << " rows";
        fused = x;
        feed_forward(up, up_bias, gelu_tanh, down, down_bias, fused.view(), fused.span(), hidden);
        ASSERT_EQ(bits(fused.values), bits(parts.values)) << rows << " rows in place";
      }
    }
  });
}

// Queries, keys and values by one product, their matrices one under the other.
TEST(Fused, StackedProductsAreThoseOfEachMatrix) {
  on_every_target([] {
    unsigned seed = 200;
    for (const Precision precision : kPrecisions) {
      constexpr std::size_t kWidth = 96;
      const std::array<std::size_t, 3> outputs{96, 32, 32};
      std::vector<float> stacked;
      std::vector<std::vector<float>> each;
      for (const std::size_t n : outputs) {
        each.push_back(normal_values(n * kWidth, 0.2f, ++seed));
        stacked.insert(stacked.end(), each.back().begin(), each.back().end());
      }
      const Rows x(9, kWidth, ++seed);
      Rows together(9, 160, ++seed);
      linear(PackedWeight::pack(stacked, 160, kWidth, precision), x.view(), {}, together.span());
      std::size_t at = 0;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        Rows alone(9, outputs[i], ++seed);
        linear(PackedWeight::pack(each[i], outputs[i], kWidth, precision), x.view(), {}, alone.span());
        for (std::size_t r = 0; r < 9; ++r) {
          const std::span<const float> part = together.view().row(r).subspan(at, outputs[i]);
          ASSERT_EQ(bits(part), bits(alone.view().row(r)));
        }
        at += outputs[i];
      }
    }
  });
}

}  // namespace
}  // namespace kizzasi::kernels
