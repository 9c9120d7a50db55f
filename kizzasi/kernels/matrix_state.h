// What the adjoints of the recurrences with a matrix state share. Included by linear_attention_backward.cpp and delta_rule_backward.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

inline constexpr std::size_t kLine = 16;        // floats of a cache line: blocks are this wide, or a multiple of it
inline constexpr std::size_t kBlockWidth = 64;  // values of one head that go through a chunk together, at most

// One head's values p .. p + used in one chunk of rows, copied to lines of `width` floats with zeros beyond `used`: kernels take whole
// aligned vectors and have no tails.
struct StateBlock {
  std::size_t rows = 0, keys = 0, width = 0;
  float* h = nullptr;   // (rows + 1, keys, width): the states of the chunk; the first is given
  float* g = nullptr;   // (keys, width): the gradient of the state after the chunk, from the rows after it; then that before it
  float* v = nullptr;   // (rows, width)
  float* gy = nullptr;  // (rows, width)
  float* gv = nullptr;  // (rows, width): zeros; then the gradient
  float* z = nullptr;   // (rows, width): what each row takes back (delta rule)
  float* gz = nullptr;  // (width)
};

constexpr std::size_t state_block_floats(std::size_t keys) noexcept {
  return kLine + ((kMatrixStateRows + 2) * keys + 4 * kMatrixStateRows + 1) * kBlockWidth;
}

// Cut from `free`, which must hold state_block_floats(keys).
inline StateBlock state_block(float* free, std::size_t keys) noexcept {
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(free) / sizeof(float) % kLine;
  free += (kLine - misaligned) % kLine;
  const auto take = [&free](std::size_t lines) { return std::exchange(free, free + lines * kBlockWidth); };
  StateBlock k;
  k.keys = keys;
  k.h = take((kMatrixStateRows + 1) * keys), k.g = take(keys);
  k.v = take(kMatrixStateRows), k.gy = take(kMatrixStateRows), k.gv = take(kMatrixStateRows), k.z = take(kMatrixStateRows);
  k.gz = take(1);
  return k;
}

// `rows` pieces of `used` floats, `stride` apart, to lines of `width`, and back.
inline void to_lines(const float* from, std::size_t stride, std::size_t rows, std::size_t used, std::size_t width, float* to) noexcept {
  for (std::size_t i = 0; i < rows; ++i) std::fill_n(std::copy_n(from + i * stride, used, to + i * width), width - used, 0.0f);
}
inline void from_lines(const float* from, std::size_t width, std::size_t rows, std::size_t used, std::size_t stride, float* to) noexcept {
  for (std::size_t i = 0; i < rows; ++i) std::copy_n(from + i * width, used, to + i * stride);
}

// The walk of an adjoint through one chunk: backward(block, head) for every head and block of values. before: the state before the chunk,
// (heads, keys, values); carry: the gradient of the state after it, replaced by that before it. gradients are added to gv.
template <typename Backward>
void for_each_state_block(std::size_t heads, std::size_t values, MatrixView v, MatrixView gy, MatrixSpan gv, const float* before,
                          float* carry, StateBlock block, Backward backward) {
  block.rows = v.rows;
  for (std::size_t head = 0; head < heads; ++head) {
    for (std::size_t p = 0; p < values; p += kBlockWidth) {
      const std::size_t used = std::min(kBlockWidth, values - p), at = head * values + p, state = head * block.keys * values + p;
      block.width = (used + kLine - 1) / kLine * kLine;
      to_lines(before + state, values, block.keys, used, block.width, block.h);
      to_lines(carry + state, values, block.keys, used, block.width, block.g);
      to_lines(v.data + at, v.stride, v.rows, used, block.width, block.v);
      to_lines(gy.data + at, gy.stride, v.rows, used, block.width, block.gy);
      std::fill_n(block.gv, v.rows * block.width, 0.0f);
      backward(block, head);
      from_lines(block.g, block.width, block.keys, used, values, carry + state);
      for (std::size_t t = 0; t < v.rows; ++t) {
        float* to = gv.data + t * gv.stride + at;
        for (std::size_t i = 0; i < used; ++i) to[i] += block.gv[t * block.width + i];
      }
    }
  }
}

// The recurrence from a zero state with the state before every chunk kept: run(t, rows, state) for each chunk.
template <typename Run>
void keep_states(std::size_t rows, std::size_t size, float* kept, Run run) {
  std::fill_n(kept, size, 0.0f);
  for (std::size_t t = 0; t < rows; t += kMatrixStateRows) {
    std::copy_n(kept, size, kept + size);
    kept += size;
    run(t, std::min(kMatrixStateRows, rows - t), std::span<float>(kept, size));
  }
}

}  // namespace kizzasi::kernels
