// Where everything stands inside a stream's state.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

enum class FieldType { kF32, kF64, kU64, kU8 };

struct StateField {
  std::string name;  // "layer0.ssm"
  FieldType type = FieldType::kF32;
  Shape shape;
  std::size_t offset = 0;     // bytes from the start of the block; a multiple of 64
  bool may_quantise = false;  // an idle session may keep this field in fewer bits
  float initial = 0;          // what an f32 field holds before the first frame
};

class StateLayout {
 public:
  // Adds a field after the last and returns its offset.
  std::size_t add(std::string name, FieldType type, Shape shape, bool may_quantise = false, float initial = 0);
  const std::vector<StateField>& fields() const noexcept { return fields_; }
  std::size_t bytes() const noexcept { return bytes_; }
  const StateField* find(const std::string& name) const;
  // Zeros, and the initial value where a field has one. Real-time: yes.
  void reset(std::span<std::byte> state) const noexcept;

 private:
  std::vector<StateField> fields_;
  std::size_t bytes_ = 0;
};

std::size_t bytes_of(FieldType type);

}  // namespace kizzasi
