// An owned, dense, row-major array with a name's worth of shape: what files hold and what weights are.
#pragma once

#include <cstddef>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

using Shape = std::vector<std::size_t>;

inline std::size_t elements(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()); }
std::string shape_text(const Shape& shape);  // "(2, 37, 24)"

struct Tensor {
  Shape shape;
  std::vector<float> values;  // row-major, elements(shape) of them

  Tensor() = default;
  explicit Tensor(Shape s) : shape(std::move(s)), values(elements(shape)) {}
  Tensor(Shape s, std::vector<float> v) : shape(std::move(s)), values(std::move(v)) {}
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Weights by their published names, in the order of the names.
using NamedTensors = std::map<std::string, Tensor>;

}  // namespace kizzasi
