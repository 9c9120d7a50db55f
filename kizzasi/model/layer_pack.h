// Published tensors in the layouts that the kernels take. At load time only.
#pragma once

#include <cmath>
#include <vector>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// (outputs, inputs), or (outputs, inputs, 1) as a convolution of width 1 stores it.
inline kernels::PackedWeight pack(const Tensor& weight) {
  return kernels::PackedWeight::pack(weight.values, weight.shape[0], weight.shape[1]);
}

// (rows, cols) -> (cols, rows)
inline std::vector<float> transposed(const std::vector<float>& values, std::size_t rows, std::size_t cols) {
  std::vector<float> out(values.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) out[c * rows + r] = values[r * cols + c];
  }
  return out;
}

// x @ w as published, w (inputs, outputs), packed as what it is the transpose of. Of a stack of such matrices the one at `index`.
inline kernels::PackedWeight pack_transposed(const Tensor& w, std::size_t index = 0) {
  const std::size_t rows = w.shape[w.shape.size() - 2], cols = w.shape.back();
  const auto begin = w.values.begin() + static_cast<std::ptrdiff_t>(index * rows * cols);
  return kernels::PackedWeight::pack(transposed({begin, begin + static_cast<std::ptrdiff_t>(rows * cols)}, rows, cols), cols, rows);
}

// A = -exp(A_log)
inline std::vector<float> minus_exp(std::vector<float> values) {
  for (float& value : values) value = -std::exp(value);
  return values;
}

}  // namespace kizzasi
