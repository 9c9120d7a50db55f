// Published values in the layouts that the kernels take. At load time only.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace kizzasi {

// (rows, cols) -> (cols, rows)
inline std::vector<float> transposed(const std::vector<float>& values, std::size_t rows, std::size_t cols) {
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) out[c * rows + r] = values[r * cols + c];
  }
  return out;
}

// A = -exp(A_log)
inline std::vector<float> minus_exp(std::vector<float> values) {
  for (float& value : values) value = -std::exp(value);
  return values;
}

}  // namespace kizzasi
