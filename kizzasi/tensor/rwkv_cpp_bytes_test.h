// Writes files of rwkv.cpp for tests, byte by byte as its own converter lays them out.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

class RwkvCppBytes {
 public:
  RwkvCppBytes(std::int32_t version, std::int32_t vocabulary, std::int32_t d_model, std::int32_t layers, std::int32_t type = 0) {
    for (const std::int32_t n : {0x67676d66, version, vocabulary, d_model, layers, type}) add(n);
  }
  template <typename T>
  void add(T value) {
    const auto* raw = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
  // What stands before the data; the file names the fastest axis first.
  void add_entry(const std::string& name, const Shape& shape, std::int32_t type) {
    add(static_cast<std::int32_t>(shape.size()));
    add(static_cast<std::int32_t>(name.size()));
    add(type);
    for (std::size_t a = shape.size(); a-- > 0;) add(static_cast<std::int32_t>(shape[a]));
    for (const char c : name) add(c);
  }
  void add_tensor(const std::string& name, const Tensor& tensor) {
    add_entry(name, tensor.shape, 0);
    for (const float value : tensor.values) add(value);
  }

  std::vector<std::byte> bytes;
};

}  // namespace kizzasi
