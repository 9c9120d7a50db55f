// A sum over all that a safetensors file says, so that a damaged file is told from a whole one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// CRC-32 (IEEE 802.3) over the metadata and over name, type, shape and bytes of each tensor, both in the order of their names: where they
// lie in the file does not matter. Thread: one at a time.
class FileChecksum {
 public:
  // The entry of the metadata that holds it: "crc32 " and eight hexadecimal digits. A text of another form is somebody else's.
  static constexpr const char* kKey = "checksum";
  static bool is_ours(std::string_view text);

  void add(const std::string& name, std::string_view dtype, const Shape& shape, std::span<const std::byte> bytes);
  std::string text(const std::map<std::string, std::string>& metadata) const;

 private:
  std::map<std::string, std::uint32_t> tensors_;
};

}  // namespace kizzasi
