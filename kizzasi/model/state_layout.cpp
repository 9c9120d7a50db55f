#include "kizzasi/model/state_layout.h"

#include <algorithm>
#include <cstring>

#include "kizzasi/base/aligned.h"

namespace kizzasi {

std::size_t bytes_of(FieldType type) {
  switch (type) {
    case FieldType::kF32:
      return 4;
    case FieldType::kF64:
      return 8;
    case FieldType::kU64:
      return 8;
    case FieldType::kU8:
      return 1;
  }
  return 0;
}

std::size_t StateLayout::add(std::string name, FieldType type, Shape shape, bool may_quantise, float initial) {
  const std::size_t offset = bytes_;
  bytes_ = offset + aligned_size(elements(shape) * bytes_of(type));
  fields_.push_back({std::move(name), type, std::move(shape), offset, may_quantise, initial});
  return offset;
}

const StateField* StateLayout::find(const std::string& name) const {
  const auto field = std::find_if(fields_.begin(), fields_.end(), [&](const StateField& f) { return f.name == name; });
  return field == fields_.end() ? nullptr : &*field;
}

void StateLayout::reset(std::span<std::byte> state) const noexcept {
  std::memset(state.data(), 0, bytes_);
  for (const StateField& field : fields_) {
    if (field.initial != 0) std::fill_n(reinterpret_cast<float*>(state.data() + field.offset), elements(field.shape), field.initial);
  }
}

}  // namespace kizzasi
