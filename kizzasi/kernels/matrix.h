// Views of rows of floats: what kernels take and give.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace kizzasi::kernels {

template <typename T>
struct BasicMatrix {
  T* data = nullptr;
  std::size_t rows = 0, cols = 0;
  std::size_t stride = 0;  // floats from one row to the next, >= cols

  BasicMatrix() = default;
  BasicMatrix(T* values, std::size_t r, std::size_t c) : data(values), rows(r), cols(c), stride(c) {}
  BasicMatrix(T* values, std::size_t r, std::size_t c, std::size_t s) : data(values), rows(r), cols(c), stride(s) {}
  template <typename U>
    requires std::is_same_v<const U, T>
  BasicMatrix(const BasicMatrix<U>& other) : data(other.data), rows(other.rows), cols(other.cols), stride(other.stride) {}

  std::span<T> row(std::size_t r) const noexcept { return {data + r * stride, cols}; }
  // Columns [begin, begin + count) of every row.
  BasicMatrix columns(std::size_t begin, std::size_t count) const noexcept { return {data + begin, rows, count, stride}; }
  BasicMatrix slice(std::size_t begin, std::size_t count) const noexcept { return {data + begin * stride, count, cols, stride}; }
};

using MatrixView = BasicMatrix<const float>;
using MatrixSpan = BasicMatrix<float>;

}  // namespace kizzasi::kernels
