#include "kizzasi/kernels/core_limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "kizzasi/kernels/gemm.h"

namespace kizzasi::kernels {
namespace {

// The law of a limit: nothing that computes goes faster. A quarter is allowed for a clock frequency that changes between the two.
TEST(CoreLimits, AreAboveWhatAProductReaches) {
  const std::size_t size = 192;
  const std::vector<float> a(size * size, 0.5f), b(size * size, 0.25f);
  std::vector<float> c(size * size);
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    gemm(Transpose::kNo, {a.data(), size, size}, Transpose::kNo, {b.data(), size, size}, {c.data(), size, size}, false);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    best = std::max(best, 2.0 * static_cast<double>(size * size * size) / seconds);
  }
  EXPECT_GT(fused_flops_per_second() * 1.25, best);
}

TEST(CoreLimits, OfASmallMemoryAreThoseOfTheCache) {
  const std::vector<float> small(2048, 1.0f), large(std::size_t{8} << 20, 1.0f);
  EXPECT_GT(read_bytes_per_second(small), read_bytes_per_second(large));
  EXPECT_GT(read_bytes_per_second(large), 1e7);
}

}  // namespace
}  // namespace kizzasi::kernels
