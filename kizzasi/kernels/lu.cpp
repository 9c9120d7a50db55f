#include "kizzasi/kernels/lu.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi::kernels {
namespace {

void swap_rows(double* rows, std::size_t columns, std::size_t i, std::size_t j) {
  if (i != j) std::swap_ranges(rows + i * columns, rows + (i + 1) * columns, rows + j * columns);
}

// rows[to] -= factor rows[from], columns [begin, end).
void take(double* rows, std::size_t columns, std::size_t from, std::size_t to, double factor, std::size_t begin, std::size_t end) {
  for (std::size_t c = begin; c < end; ++c) rows[to * columns + c] -= factor * rows[from * columns + c];
}

}  // namespace

bool lu(std::span<double> a, std::size_t n, std::span<std::size_t> pivots) noexcept {
  double largest = 0;
  for (const double v : a) {
    if (!std::isfinite(v)) return false;
    largest = std::max(largest, std::abs(v));
  }
  const double smallest = largest * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = k;
    for (std::size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i * n + k]) > std::abs(a[best * n + k])) best = i;
    }
    if (!(std::abs(a[best * n + k]) > smallest) || !std::isfinite(a[best * n + k])) return false;
    pivots[k] = best;
    swap_rows(a.data(), n, k, best);
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] /= a[k * n + k];
      take(a.data(), n, k, i, factor, k + 1, n);
    }
  }
  return true;
}

void lu_solve(std::span<const double> factors, std::size_t n, std::span<const std::size_t> pivots, std::span<double> b,
              std::size_t columns) noexcept {
  for (std::size_t k = 0; k < n; ++k) swap_rows(b.data(), columns, k, pivots[k]);
  for (std::size_t i = 1; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) take(b.data(), columns, k, i, factors[i * n + k], 0, columns);
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) take(b.data(), columns, k, i, factors[i * n + k], 0, columns);
    for (std::size_t c = 0; c < columns; ++c) b[i * columns + c] /= factors[i * n + i];
  }
}

}  // namespace kizzasi::kernels
