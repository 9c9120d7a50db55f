#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

std::string shape_text(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) text.append(i == 0 ? "" : ", ").append(std::to_string(shape[i]));
  return text.append(")");
}

}  // namespace kizzasi
