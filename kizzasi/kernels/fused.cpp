#include "kizzasi/kernels/fused.h"

#include <algorithm>

namespace kizzasi::kernels {

void feed_forward(const PackedWeight& up, std::span<const float> up_bias, Elementwise f, const PackedWeight& down,
                  std::span<const float> down_bias, MatrixView x, MatrixSpan y, std::span<float> hidden) noexcept {
  for (std::size_t r = 0; r < x.rows; r += kFeedForwardRows) {
    const std::size_t rows = std::min(kFeedForwardRows, x.rows - r);
    const MatrixSpan between(hidden.data(), rows, up.outputs());
    linear_then(up, x.slice(r, rows), up_bias, f, between);
    linear(down, between, down_bias, y.slice(r, rows));
  }
}

}  // namespace kizzasi::kernels
