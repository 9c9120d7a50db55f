// Files of rwkv.cpp: a header of six numbers, then tensors one after the other, in FP32, FP16 or quantised in blocks (ggml_blocks.h).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/base/error.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

struct RwkvCppFile {
  std::int32_t version = 0;  // 100 or 101
  std::int32_t vocabulary = 0, d_model = 0, layers = 0;
  std::int32_t type = 0;  // of most matrices; every tensor has its own
  NamedTensors tensors;   // decoded, under the names in the file, last axis fastest; rwkv.cpp's conversions are still in them
};

// Does a file begin as rwkv.cpp's do? False, too, where it cannot be opened.
bool is_rwkv_cpp(std::span<const std::byte> bytes);
bool is_rwkv_cpp_file(const std::string& path);

// Reads bytes that came from anywhere; every size is checked against what is left of the file before memory is taken. Refused: other
// versions, types that are not known, quantised tensors of version 100 (their blocks were others), names twice, infinities and NaN.
Result<RwkvCppFile> parse_rwkv_cpp(std::span<const std::byte> bytes, std::string_view where);
Result<RwkvCppFile> read_rwkv_cpp(const std::string& path);

}  // namespace kizzasi
