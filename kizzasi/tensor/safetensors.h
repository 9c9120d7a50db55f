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

struct SafetensorsFile {
  std::map<std::string, std::string> metadata;
  NamedTensors tensors;                             // floats of every width and integers, widened or rounded to f32
  std::map<std::string, std::vector<double>> wide;  // the tensors stored as F64 or I64, unrounded, under the same names
};

// Reads bytes that came from anywhere: every check of the reference reader is made before memory is taken. `where` names the file in
// messages.
Result<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes, std::string_view where);
Result<SafetensorsFile> read_safetensors(const std::string& path);

// F32; the header padded to 8 bytes, tensors in order of their names: equal content gives equal bytes.
std::vector<std::byte> safetensors_bytes(const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);
// Written beside the target and moved over it, after it reached the disk: a reader sees the old file or the new one, never a part.
Result<void> write_safetensors(const std::string& path, const NamedTensors& tensors, const std::map<std::string, std::string>& metadata);

}  // namespace kizzasi
