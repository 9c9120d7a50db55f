// An owned, dense, row-major array with a name's worth of shape: what files hold and what weights are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/kernels/precision.h"

namespace kizzasi {

using Shape = std::vector<std::size_t>;

inline std::size_t elements(const Shape& shape) { return std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()); }
std::string shape_text(const Shape& shape);  // "(2, 37, 24)"

// On which axis a matrix of weights has its outputs: (outputs, inputs...), (..., inputs, outputs) or (..., outputs, inputs). A scale
// belongs to an output.
enum class OutputsAxis : std::uint8_t { kFirst, kLast, kLastButOne };

// How a file and the kernels hold a tensor of weights. Below f32, `values` are exactly what that form holds (tensor/quantized.h).
struct Storage {
  kernels::Precision precision = kernels::Precision::kF32;
  OutputsAxis outputs = OutputsAxis::kFirst;
  friend bool operator==(const Storage&, const Storage&) = default;
};

struct Tensor {
  Shape shape;
  std::vector<float> values;  // row-major, elements(shape) of them
  Storage storage;

  Tensor() = default;
  explicit Tensor(Shape s) : shape(std::move(s)), values(elements(shape)) {}
  Tensor(Shape s, std::vector<float> v) : shape(std::move(s)), values(std::move(v)) {}
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

// Weights by their published names, in the order of the names.
using NamedTensors = std::map<std::string, Tensor>;

}  // namespace kizzasi
