// The heads of RWKV-5 to 7: that they are whole, and the norm over each alone, with one gain and bias for the whole row.
#pragma once

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/matrix.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/model/config.h"

namespace kizzasi::rwkv {

// d_model in heads of head_dim.
Result<void> check_heads(const BackboneConfig& c, std::string_view where);

inline void norm_heads(kernels::MatrixSpan y, std::size_t heads, std::span<const float> gain, std::span<const float> bias,
                       float epsilon) noexcept {
  const std::size_t width = y.cols / heads;
  for (std::size_t r = 0; r < y.rows; ++r) {
    for (std::size_t at = 0; at < y.cols; at += width) {
      const std::span<float> head = y.row(r).subspan(at, width);
      kernels::layer_norm(head, gain.subspan(at, width), bias.subspan(at, width), epsilon, head);
    }
  }
}

// y: (batch, time, heads, width) -> (batch, time, heads * width)
template <typename T>
autograd::Var<T> norm_heads(autograd::Var<T> y, autograd::Var<T> gain, autograd::Var<T> bias, T epsilon) {
  const autograd::Dims d = y.dims();
  const autograd::Var<T> normed = autograd::reshape(autograd::layer_norm(y, {}, {}, epsilon), {d[0], d[1], d[2] * d[3]});
  return add(mul(normed, gain), bias);
}

}  // namespace kizzasi::rwkv
