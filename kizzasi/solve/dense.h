// Sums over short rows of doubles, each in one fixed order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace kizzasi::solve {

// Four partial sums: what a compiler turns into vectors without being allowed to reorder.
inline double dot(const double* a, const double* b, std::size_t n) noexcept {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < n; ++i) s0 += a[i] * b[i];
  return (s0 + s2) + (s1 + s3);
}

inline void add_scaled(double* __restrict y, double factor, const double* __restrict x, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) y[i] += factor * x[i];
}

// y += x' M, M of `rows` rows of `n` values that stand `stride` apart.
inline void add_combination(double* __restrict y, const double* __restrict x, const double* __restrict m, std::size_t rows, std::size_t n,
                            std::size_t stride) noexcept {
  std::size_t r = 0;
  for (; r + 4 <= rows; r += 4, m += 4 * stride) {
    const double *m0 = m, *m1 = m + stride, *m2 = m1 + stride, *m3 = m2 + stride;
    const double x0 = x[r], x1 = x[r + 1], x2 = x[r + 2], x3 = x[r + 3];
    for (std::size_t i = 0; i < n; ++i) y[i] += (x0 * m0[i] + x1 * m1[i]) + (x2 * m2[i] + x3 * m3[i]);
  }
  for (; r < rows; ++r, m += stride) add_scaled(y, x[r], m, n);
}

inline double largest(const double* x, std::size_t n) noexcept {
  double most = 0;
  for (std::size_t i = 0; i < n; ++i) most = std::max(most, std::abs(x[i]));
  return most;
}

}  // namespace kizzasi::solve
