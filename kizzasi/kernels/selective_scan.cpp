#include "kizzasi/kernels/selective_scan.h"

#include <cmath>

namespace kizzasi::kernels {

void selective_scan_plain(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                          MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const float step = delta.row(t)[e], input = step * x.row(t)[e];
      float sum = s.d[e] * x.row(t)[e];
      for (std::size_t n = 0; n < s.states; ++n) {
        float& state = h[n * s.channels + e];
        state = std::fma(std::exp(step * s.a[n * s.channels + e]), state, input * b.row(t)[n]);
        sum = std::fma(c.row(t)[n], state, sum);
      }
      y.row(t)[e] = sum;
    }
  }
}

void selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                    MatrixSpan y) noexcept {
  selective_scan_plain(s, x, delta, b, c, h, y);
}

}  // namespace kizzasi::kernels
