#include "kizzasi/kernels/backend.h"

#include <thread>

#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/watching_backend.h"

namespace kizzasi::kernels {
namespace {

// Offers one kernel, with an answer of its own.
struct Sevens final : Backend {
  std::string_view name() const noexcept override { return "sevens"; }
  bool offers(Kernel kernel) const noexcept override { return kernel == Kernel::kGatedScan; }
  void gated_scan(MatrixView, MatrixView, std::span<float>, MatrixSpan y) noexcept override {
    for (std::size_t t = 0; t < y.rows; ++t) std::fill_n(y.row(t).data(), y.cols, 7.0f);
  }
};

struct Product {
  std::vector<float> w = normal_values(12, 1, 1), x = normal_values(8, 1, 2), y = std::vector<float>(6);
  PackedWeight packed = PackedWeight::pack(w, 3, 4);
  std::vector<float> operator()() {
    linear(packed, {x.data(), 2, 4}, {}, {y.data(), 2, 3});
    return y;
  }
};

float scanned() {
  const std::vector<float> a(6, 0.5f), x(6, 1.0f);
  std::vector<float> h(3), y(6);
  gated_scan({a.data(), 2, 3}, {x.data(), 2, 3}, h, {y.data(), 2, 3});
  return y[3];
}

TEST(Backend, TakesWhatItOffersForAsLongAsItsScopeLasts) {
  Sevens sevens;
  Product product;
  const std::vector<float> cpu = product();
  EXPECT_EQ(scanned(), 1.5f);
  {
    const BackendScope scope(sevens, NotOffered::kOnCpu);
    EXPECT_EQ(scanned(), 7.0f);
    EXPECT_EQ(bits(product()), bits(cpu));
    {
      const BackendScope inner = BackendScope::cpu();
      EXPECT_EQ(scanned(), 1.5f);
    }
    EXPECT_EQ(scanned(), 7.0f);
    std::thread([] { EXPECT_EQ(scanned(), 1.5f); }).join();
  }
  EXPECT_EQ(scanned(), 1.5f);
}

TEST(BackendDeathTest, WhatIsNotOfferedNeverGoesToTheCpuUnasked) {
  Sevens sevens;
  Product product;
  EXPECT_DEATH(
      {
        const BackendScope scope(sevens);
        product();
      },
      "");
}

struct Counts final : WatchingBackend {
  std::size_t calls = 0, rows = 0, multiply_adds = 0;
  void see(const KernelCall& call) noexcept override {
    ++calls;
    rows += call.rows;
    multiply_adds += call.multiply_adds;
  }
};

TEST(WatchingBackend, SeesEachCallOnceAndChangesNothing) {
  Product product;
  const std::vector<float> cpu = product();
  Counts counts;
  const BackendScope scope(counts);
  EXPECT_EQ(bits(product()), bits(cpu));
  EXPECT_EQ(counts.calls, 1u);
  EXPECT_EQ(counts.rows, 2u);
  EXPECT_EQ(counts.multiply_adds, 24u);
  std::vector<float> c(9);
  gemm(Transpose::kYes, {product.x.data(), 2, 3, 4}, Transpose::kNo, {product.x.data(), 2, 3, 4}, {c.data(), 3, 3}, false);
  EXPECT_EQ(counts.calls, 2u);
  EXPECT_EQ(counts.multiply_adds, 24u + 18u);
}

TEST(Backend, KernelsHaveNamesOfTheirOwn) {
  for (const Kernel a : kKernels) {
    EXPECT_FALSE(kernel_name(a).empty());
    for (const Kernel b : kKernels) EXPECT_EQ(kernel_name(a) == kernel_name(b), a == b);
  }
}

}  // namespace
}  // namespace kizzasi::kernels
