// What every RWKV layer does first: each frame is mixed with the one before it, channel by channel.
#pragma once

#include <algorithm>
#include <cstring>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/wkv.h"
#include "kizzasi/model/layer.h"

namespace kizzasi::rwkv {

// The row before each row, of the same lane; the (d) floats at `state_at` of a lane hold its last row, and are updated.
inline void rows_before(std::span<const Lane> lanes, kernels::MatrixView in, std::size_t state_at, kernels::MatrixSpan before) noexcept {
  const std::size_t rows = in.rows / lanes.size(), bytes = in.cols * sizeof(float);
  for (std::size_t i = 0; i < lanes.size() && rows > 0; ++i) {
    const std::span<float> last = state_floats(lanes[i].state, state_at, in.cols);
    for (std::size_t r = 0; r < rows; ++r) {
      std::memcpy(before.row(i * rows + r).data(), r == 0 ? last.data() : in.row(i * rows + r - 1).data(), bytes);
    }
    std::memcpy(last.data(), in.row((i + 1) * rows - 1).data(), bytes);
  }
}

// out = from + share (to - from), for every row; share: (d). out may be from or to.
inline void mix(kernels::MatrixView from, kernels::MatrixView to, std::span<const float> share, kernels::MatrixSpan out) noexcept {
  for (std::size_t r = 0; r < from.rows; ++r) {
    const float *a = from.row(r).data(), *b = to.row(r).data();
    float* y = out.row(r).data();
    for (std::size_t c = 0; c < from.cols; ++c) y[c] = a[c] + share[c] * (b[c] - a[c]);
  }
}

template <typename T>
autograd::Var<T> mix(autograd::Var<T> from, autograd::Var<T> to, autograd::Var<T> share) {
  return add(from, mul(sub(to, from), share));
}

// y *= factor, row by row.
inline void multiply(kernels::MatrixSpan y, kernels::MatrixView factor) noexcept {
  for (std::size_t r = 0; r < y.rows; ++r) {
    float* a = y.row(r).data();
    const float* b = factor.row(r).data();
    for (std::size_t c = 0; c < y.cols; ++c) a[c] *= b[c];
  }
}

// Where a layer stands, from 0 at the first to 1 at the last, and from 1 downwards to just above 0: what the starts are drawn by.
struct Depth {
  double up, down;
  Depth(const BackboneConfig& c, std::int64_t layer)
      : up(c.n_layers > 1 ? static_cast<double>(layer) / static_cast<double>(c.n_layers - 1) : 0),
        down(1 - static_cast<double>(layer) / static_cast<double>(c.n_layers)) {}
};

}  // namespace kizzasi::rwkv
