// What the layers of this wing share: heads with a matrix state, norms a head, projections in one product.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/model/config.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi::matrix_heads {

// inner / head_dim heads, each with a state of d_state keys by head_dim values.
struct HeadSizes {
  explicit HeadSizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.inner())),
        keys(static_cast<std::size_t>(c.d_state)),
        values(static_cast<std::size_t>(c.head_dim)),
        heads(inner / values) {}
  std::size_t d, inner, keys, values, heads;
  std::size_t key_width() const { return heads * keys; }
  std::size_t state() const { return heads * keys * values; }
};

// The inner width divides into heads.
Result<void> check_heads(const BackboneConfig& c, std::string_view where);

// Cuts a matrix into its columns from left to right.
class Columns {
 public:
  explicit Columns(kernels::MatrixSpan all) noexcept : all_(all) {}
  kernels::MatrixSpan next(std::size_t count) noexcept {
    const kernels::MatrixSpan part = all_.columns(at_, count);
    at_ += count;
    return part;
  }

 private:
  kernels::MatrixSpan all_;
  std::size_t at_ = 0;
};

inline std::vector<float> repeated(const std::vector<float>& values, std::size_t times) {
  std::vector<float> all;
  for (std::size_t i = 0; i < times; ++i) all.insert(all.end(), values.begin(), values.end());
  return all;
}

inline void scale(std::span<float> x, float factor) noexcept {
  for (float& v : x) v *= factor;
}

}  // namespace kizzasi::matrix_heads
