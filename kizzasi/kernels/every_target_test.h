// Tests only: the same law on every instruction set of this machine.
#pragma once

#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <bit>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace kizzasi::kernels {

inline std::vector<float> normal_values(std::size_t n, float scale, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& v : values) v = normal(engine);
  return values;
}

inline std::vector<float> uniform_values(std::size_t n, float low, float high, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float& v : values) v = uniform(engine);
  return values;
}

// Runs `law` once for every target. Masked with HWY_TARGETS: forcing one that was not compiled would run the baseline without a word.
template <typename Law>
void on_every_target(Law law) {
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  for (std::int64_t left = all; left != 0; left &= left - 1) {
    const std::int64_t target = left & -left;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    SCOPED_TRACE(hwy::TargetName(target));
    law();
    if (testing::Test::HasFatalFailure()) break;
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline bool fuses_multiply_and_add() { return (hwy::SupportedTargets() & (HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL | HWY_NEON)) != 0; }

inline std::vector<std::uint32_t> bits(std::span<const float> values) {
  std::vector<std::uint32_t> all;
  all.reserve(values.size());
  for (const float v : values) all.push_back(std::bit_cast<std::uint32_t>(v));
  return all;
}

// The law: `values()` gives the same bits on every target that fuses multiply and add.
template <typename Values>
void expect_same_bits_where_fused(Values values) {
  std::vector<std::uint32_t> first;
  on_every_target([&] {
    if (!fuses_multiply_and_add()) return;
    const std::vector<std::uint32_t> now = bits(values());
    if (first.empty()) first = now;
    ASSERT_EQ(now, first);
  });
}

}  // namespace kizzasi::kernels
