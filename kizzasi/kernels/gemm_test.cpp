#include "kizzasi/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "kizzasi/kernels/every_target_test.h"

namespace kizzasi::kernels {
namespace {

struct Case {
  std::size_t m, n, k;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (std::size_t i = 1; i <= 300; ++i) all.push_back({1 + i * 7 % 30, i, 1 + i * 5 % 20});
  for (std::size_t i = 1; i <= 300; i += 3) all.push_back({i, 1 + i * 3 % 40, 1 + i * 11 % 30});
  for (std::size_t i = 250; i <= 270; i += 5) all.push_back({5, 9, 3 * i});  // through the boundary of the blocks of k
  all.push_back({100, 1030, 17});
  all.push_back({3, 4, 0});
  return all;
}

TEST(Gemm, EqualsTheSumInDoubleForEveryTransposition) {
  on_every_target([] {
    for (const Case& c : cases()) {
      for (const int kind : {0, 1, 2, 3}) {
        const bool swap_a = kind & 1, swap_b = kind & 2, accumulate = (c.m + c.n) % 2 == 0;
        SCOPED_TRACE(testing::Message() << c.m << " x " << c.n << " x " << c.k << " kind " << kind);
        const std::size_t a_stride = (swap_a ? c.m : c.k) + 3, b_stride = (swap_b ? c.k : c.n) + 1, c_stride = c.n + 2;
        const auto a = normal_values((swap_a ? c.k : c.m) * a_stride + 1, 1.0f, 1);
        const auto b = normal_values((swap_b ? c.n : c.k) * b_stride + 1, 1.0f, 2);
        const auto before = normal_values(c.m * c_stride, 1.0f, 3);
        const MatrixView left(a.data(), swap_a ? c.k : c.m, swap_a ? c.m : c.k, a_stride);
        const MatrixView right(b.data(), swap_b ? c.n : c.k, swap_b ? c.k : c.n, b_stride);
        auto fast = before, plain = before;
        const auto ta = Transpose{swap_a}, tb = Transpose{swap_b};
        gemm(ta, left, tb, right, {fast.data(), c.m, c.n, c_stride}, accumulate);
        gemm_plain(ta, left, tb, right, {plain.data(), c.m, c.n, c_stride}, accumulate);
        for (std::size_t i = 0; i < fast.size(); ++i) ASSERT_NEAR(fast[i], plain[i], 2e-6 * (4 + static_cast<double>(c.k))) << i;
        for (std::size_t i = 0; i < c.m; ++i) {
          for (std::size_t j = c.n; j < c_stride; ++j) ASSERT_EQ(fast[i * c_stride + j], before[i * c_stride + j]);
        }
      }
    }
  });
}

TEST(Gemm, PlainFormIsTheDoubleLoop) {
  const auto a = normal_values(6, 1.0f, 1), b = normal_values(6, 1.0f, 2);
  std::vector<float> c(4, 1.0f);
  gemm_plain(Transpose::kNo, {a.data(), 2, 3}, Transpose::kYes, {b.data(), 2, 3}, {c.data(), 2, 2}, true);
  EXPECT_NEAR(c[1], 1 + a[0] * b[3] + a[1] * b[4] + a[2] * b[5], 1e-6);
  EXPECT_NEAR(c[2], 1 + a[3] * b[0] + a[4] * b[1] + a[5] * b[2], 1e-6);
}

TEST(Gemm, GivesARowTheSameBitsAloneOnAnotherThreadAndOnEveryTargetThatFuses) {
  const std::size_t m = 37, n = 75, k = 700;
  const auto a = normal_values(m * k, 1.0f, 1), b = normal_values(k * n, 1.0f, 2);
  expect_same_bits_where_fused([&] {
    std::vector<float> whole(m * n), alone(m * n);
    gemm(Transpose::kNo, {a.data(), m, k}, Transpose::kNo, {b.data(), k, n}, {whole.data(), m, n}, false);
    std::thread other([&] {
      for (std::size_t i = 0; i < m; ++i) {
        gemm(Transpose::kNo, {a.data() + i * k, 1, k}, Transpose::kNo, {b.data(), k, n}, {alone.data() + i * n, 1, n}, false);
      }
    });
    other.join();
    EXPECT_EQ(bits(whole), bits(alone));
    return whole;
  });
}

}  // namespace
}  // namespace kizzasi::kernels
