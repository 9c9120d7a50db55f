// Rows of inputs rounded to integers for a product with int8 or int4 weights, and that product over one block of 64 outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kizzasi/kernels/linear.h"

namespace kizzasi::kernels {

inline constexpr std::size_t kOutputBlock = 64;  // outputs a block of packed weights
inline constexpr std::size_t kQuantizedRows = 4;

// The largest number that an input of a chunk may become, so that no sum of `inputs` products leaves 32 bits.
inline std::int32_t input_levels(Precision precision, std::size_t inputs) noexcept {
  if (precision == Precision::kI4) return 32767;  // 32 products of at most 8 * 32767
  const auto fits = static_cast<std::int64_t>(2147483647 / (127 * static_cast<std::int64_t>(inputs)));
  return static_cast<std::int32_t>(fits < 32767 ? fits : 32767);
}

// A few rows, one chunk of their inputs, in integers: 0 from the last input up to the next multiple of kI4Block.
struct QuantizedRows {
  alignas(64) std::int16_t values[kQuantizedRows][kQuantizedChunk];
  // Weights stand without a sign, as q + 128 (int8) or q + 8 (int4): what that is too much, over the chunk and over each block of inputs.
  std::int32_t offset[kQuantizedRows];
  std::int32_t block_offset[kQuantizedRows][kQuantizedChunk / kI4Block];
  float scale[kQuantizedRows];  // 0: all inputs are 0; NaN: one is not finite
};

void linear_quantized(const PackedWeight& w, MatrixView x, std::span<const float> bias, MatrixSpan y) noexcept;

}  // namespace kizzasi::kernels
