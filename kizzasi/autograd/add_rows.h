// Sums over many rows that keep their digits: the gradients of gains and biases, over all of time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace kizzasi::autograd {

// to[j] += sum over rows of term(row, j). 64 rows are added up in T, these sums in double: one running sum in f32 over a million frames
// would be off by a hundredth.
template <typename T, typename Term>
void add_rows(std::size_t rows, std::span<T> to, Term term) {
  constexpr std::size_t kColumns = 64, kRows = 64;
  for (std::size_t first = 0; first < to.size(); first += kColumns) {
    const std::size_t columns = std::min(kColumns, to.size() - first);
    std::array<double, kColumns> total{};
    for (std::size_t begin = 0; begin < rows; begin += kRows) {
      std::array<T, kColumns> partial{};
      for (std::size_t row = begin; row < std::min(rows, begin + kRows); ++row) {
        for (std::size_t j = 0; j < columns; ++j) partial[j] += term(row, first + j);
      }
      for (std::size_t j = 0; j < columns; ++j) total[j] += static_cast<double>(partial[j]);
    }
    for (std::size_t j = 0; j < columns; ++j) to[first + j] += static_cast<T>(total[j]);
  }
}

}  // namespace kizzasi::autograd
