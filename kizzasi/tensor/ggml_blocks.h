// The number formats of ggml's files: plain numbers, and blocks of 32 with a scale of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kizzasi {

// A tensor of `values` numbers a block lies in its rows of whole blocks, `bytes` each.
struct GgmlType {
  std::int32_t id;  // as files number it
  std::string_view name;
  std::size_t values, bytes;  // of one block; 1 value where numbers stand alone
  // One block of any alignment, exactly: q d and (q - z) d are products of few bits, q d + m is rounded once.
  void (*decode)(const std::byte* block, float* values);
};

// FP32, FP16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0.
std::span<const GgmlType> ggml_types();
// Null where the number stands for no type known here.
const GgmlType* find_ggml_type(std::int32_t id);

}  // namespace kizzasi
