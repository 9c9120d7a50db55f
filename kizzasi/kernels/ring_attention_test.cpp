#include "kizzasi/kernels/ring_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

using Values = std::vector<float>;

void expect_near(const Values& ours, const Values& truth, float tolerance) {
  ASSERT_EQ(ours.size(), truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(ours[i], truth[i], tolerance * std::max(1.0f, std::abs(truth[i]))) << i;
}

struct Case {
  RingAttention s;
  Values keys, values, q;
  explicit Case(const RingAttention& sizes) : s(sizes), keys(s.cache_size(), 1e9f), values(s.cache_size(), 1e9f) {
    q = normal_values(s.heads * s.head_dim, 1.0f, 5);
  }
  Values attend(std::size_t count, decltype(&ring_attention) form = ring_attention) const {
    Values out(s.heads * s.head_dim), scores(s.window);
    form(s, q, keys, values, count, scores, out);
    return out;
  }
};

TEST(RingAttention, IsItsPlainFormOnEveryTarget) {
  for (const std::size_t dim : {1u, 3u, 16u, 64u}) {
    for (const std::size_t window : {1u, 5u, 70u}) {
      for (const auto& [heads, kv_heads] : {std::pair<std::size_t, std::size_t>{1, 1}, {6, 2}, {4, 1}}) {
        Case c({heads, kv_heads, dim, window, 1 / std::sqrt(static_cast<float>(dim))});
        // Frames come in one after the other, past the end of the ring; what was never written is not read.
        for (std::size_t t = 0; t < 2 * window + 3; ++t) {
          ring_store(c.s, normal_values(kv_heads * dim, 1.0f, static_cast<unsigned>(2 * t)),
                     normal_values(kv_heads * dim, 1.0f, static_cast<unsigned>(2 * t + 1)), t % window, c.keys, c.values);
          const std::size_t count = std::min(t + 1, window);
          const Values truth = c.attend(count, ring_attention_plain);
          on_every_target([&] { expect_near(c.attend(count), truth, 2e-6f); });
          if (testing::Test::HasFailure()) return;
        }
        expect_same_bits_where_fused([&] { return c.attend(window); });
      }
    }
  }
}

TEST(RingAttention, AveragesValuesWhereAllKeysAreAlike) {
  Case c({2, 1, 4, 8, 0.5f});
  Values mean(4);
  for (std::size_t t = 0; t < 8; ++t) {
    const Values value = normal_values(4, 1.0f, static_cast<unsigned>(t));
    ring_store(c.s, Values{1, 2, 3, 4}, value, t, c.keys, c.values);
    for (std::size_t i = 0; i < 4; ++i) mean[i] += value[i] / 8;
  }
  mean.insert(mean.end(), mean.begin(), mean.end());
  expect_near(c.attend(8), mean, 1e-6f);
}

}  // namespace
}  // namespace kizzasi::kernels
