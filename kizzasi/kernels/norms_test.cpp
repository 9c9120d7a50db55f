#include "kizzasi/kernels/norms.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

constexpr float kEpsilon = 1e-5f;

using Values = std::vector<float>;

// gain (x - centre) / sqrt(mean((x - centre)^2) + epsilon) + bias, in double; centre: the mean, or 0.
std::vector<double> truth(const Values& x, bool centred, const Values& gain, const Values& bias) {
  double mean = 0, square = 0;
  for (const float v : x) mean += centred ? v : 0.0;
  mean /= static_cast<double>(x.size());
  for (const float v : x) square += (v - mean) * (v - mean);
  const double scale = 1 / std::sqrt(square / static_cast<double>(x.size()) + kEpsilon);
  std::vector<double> out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    out[i] = (gain.empty() ? 1.0 : gain[i]) * (x[i] - mean) * scale + (bias.empty() ? 0.0 : bias[i]);
  return out;
}

TEST(Norms, EqualTheSumInDoubleOnEveryTarget) {
  on_every_target([] {
    for (std::size_t size = 1; size <= 300; ++size) {
      for (const float scale : {1e-6f, 1.0f, 1e6f}) {
        const auto x = normal_values(size, scale, 7u + static_cast<unsigned>(size));
        for (const bool plain : {false, true}) {
          const Values gain = plain ? Values{} : normal_values(size, 1.0f, 11u), bias = plain ? Values{} : normal_values(size, 1.0f, 12u);
          Values rms(size), layer(size);
          rms_norm(x, gain, kEpsilon, rms);
          layer_norm(x, gain, bias, kEpsilon, layer);
          const auto rms_truth = truth(x, false, gain, {}), layer_truth = truth(x, true, gain, bias);
          for (std::size_t i = 0; i < size; ++i) {
            ASSERT_NEAR(rms[i], rms_truth[i], 2e-6 * (1e-3 + std::abs(rms_truth[i]))) << size << " scale " << scale;
            ASSERT_NEAR(layer[i], layer_truth[i], 4e-6 * (1 + std::abs(layer_truth[i]))) << size << " scale " << scale;
          }
        }
      }
    }
  });
}

TEST(Norms, TakeTheMeanOutBeforeSquaring) {
  on_every_target([] {
    auto x = normal_values(64, 1.0f, 3u);
    for (float& v : x) v += 4096.0f;  // E[x^2] - E[x]^2 would keep no digit of the variance
    Values out(64);
    layer_norm(x, {}, {}, kEpsilon, out);
    const auto right = truth(x, true, {}, {});
    for (std::size_t i = 0; i < 64; ++i) ASSERT_NEAR(out[i], right[i], 1e-3);
  });
}

TEST(Norms, OfGroupsAreNormsOfThePieces) {
  on_every_target([] {
    for (const std::size_t groups : {1, 2, 3, 8}) {
      for (const std::size_t size : {1, 5, 32, 77}) {
        const auto x = normal_values(groups * size, 1.0f, 5u), gain = normal_values(groups * size, 1.0f, 6u);
        Values whole(x.size()), piece(size);
        rms_norm_groups(x, groups, gain, kEpsilon, whole);
        for (std::size_t g = 0; g < groups; ++g) {
          rms_norm(std::span(x).subspan(g * size, size), std::span(gain).subspan(g * size, size), kEpsilon, piece);
          ASSERT_EQ(bits(piece), bits(std::span(whole).subspan(g * size, size)));
        }
      }
    }
  });
}

TEST(Norms, GiveTheSameBitsOnEveryTargetThatFusesWhereverTheyStand) {
  for (std::size_t size = 1; size <= 300; ++size) {
    expect_same_bits_where_fused([&] {
      const auto x = normal_values(size, 1.0f, static_cast<unsigned>(size)), gain = normal_values(size, 1.0f, 9u);
      Values rms(size), layer(size), shifted(size + 1);
      rms_norm(x, gain, kEpsilon, rms);
      layer_norm(x, gain, gain, kEpsilon, layer);
      std::copy(x.begin(), x.end(), shifted.begin() + 1);
      rms_norm({shifted.data() + 1, size}, gain, kEpsilon, {shifted.data() + 1, size});  // in place, elsewhere in memory
      EXPECT_EQ(bits(rms), bits({shifted.data() + 1, size}));
      rms.insert(rms.end(), layer.begin(), layer.end());
      return rms;
    });
  }
}

TEST(Norms, OfZeroAreZeroAndNanIsNotHidden) {
  on_every_target([] {
    Values x(8, 0.0f), out(8), gain(8, 1.0f);
    rms_norm(x, gain, kEpsilon, out);
    EXPECT_EQ(out, x);
    layer_norm(x, gain, {}, kEpsilon, out);
    EXPECT_EQ(out, x);
    x[3] = std::numeric_limits<float>::quiet_NaN();
    rms_norm(x, gain, kEpsilon, out);
    for (const float v : out) EXPECT_TRUE(v != v);
    layer_norm(x, gain, {}, kEpsilon, out);
    for (const float v : out) EXPECT_TRUE(v != v);
  });
}

}  // namespace
}  // namespace kizzasi::kernels
