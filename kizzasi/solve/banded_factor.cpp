#include "kizzasi/solve/banded_factor.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {

void BandedFactor::prepare(std::size_t size, std::size_t bandwidth) {
  size_ = size;
  bandwidth_ = bandwidth;
  columns_.assign(size * (bandwidth + 1), 0);
}

void BandedFactor::clear() noexcept { std::fill(columns_.begin(), columns_.end(), 0.0); }

void BandedFactor::add(std::size_t i, std::size_t j, double value) noexcept {
  const std::size_t low = std::min(i, j), high = std::max(i, j);
  columns_[low * (bandwidth_ + 1) + high - low] += value;
}

bool BandedFactor::factor() noexcept {
  const std::size_t stride = bandwidth_ + 1;
  for (std::size_t j = 0; j < size_; ++j) {
    double* column = columns_.data() + j * stride;
    const double pivot = column[0];
    if (pivot == 0 || !std::isfinite(pivot)) return false;
    const std::size_t below = std::min(bandwidth_, size_ - 1 - j);
    for (std::size_t k = 1; k <= below; ++k) {
      if (column[k] == 0) continue;
      // Column j + k loses what column j says of its entries from the diagonal down.
      add_scaled(column + k * stride, -column[k] / pivot, column + k, below - k + 1);
    }
    for (std::size_t k = 1; k <= below; ++k) column[k] /= pivot;
  }
  return true;
}

void BandedFactor::solve(std::span<double> x) const noexcept {
  const std::size_t stride = bandwidth_ + 1;
  for (std::size_t j = 0; j < size_; ++j) {
    const double* column = columns_.data() + j * stride;
    const std::size_t below = std::min(bandwidth_, size_ - 1 - j);
    if (x[j] != 0) add_scaled(x.data() + j + 1, -x[j], column + 1, below);
  }
  for (std::size_t j = size_; j-- > 0;) {
    const double* column = columns_.data() + j * stride;
    const std::size_t below = std::min(bandwidth_, size_ - 1 - j);
    x[j] = x[j] / column[0] - dot(column + 1, x.data() + j + 1, below);
  }
}

}  // namespace kizzasi::solve
