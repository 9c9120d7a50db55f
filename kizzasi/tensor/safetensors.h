// safetensors files: named tensors and a string map, read and written.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// Types: F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0, I64 I32 I16 I8, U64 U32 U16 U8, BOOL (0 and 1), and C64, which is read as F32 with one
// more last axis (re, im). Any other type is refused by name. Tensors that were written as scaled integers come back whole.
struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;  // all of them, widened or rounded to f32
  // Those that f32 cannot hold (F64, I64, U64, I32, U32), as double, under the same names; integers beyond 2^53 are rounded to the nearest.
  std::map<std::string, std::vector<double>> wide;
};

// Reads bytes that came from anywhere: every check of the reference reader is made before memory is taken (header at most 100 MB and inside
// the file, valid UTF-8 and JSON, known types, sizes that fit the shapes, no holes, no overlaps, nothing after the last tensor). Data need
// not be aligned. `where` names the file in messages. A sum that the writer here left in the metadata ("checksum") is held against the
// contents and taken out.
Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view where);
// The same from a file, one tensor at a time: takes the memory of the result and of the largest tensor.
Result<SafetensorsFile> read_safetensors(const std::string& path);

// Each tensor as its storage says (tensor/quantized.h), mostly F32; the header padded to 8 bytes, tensors in order of their names: equal
// content gives equal bytes.
std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);
// Written beside the target and moved over it, after it reached the disk: a reader sees the old file or the new one, never a part.
Result<void> write_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace kizzasi
