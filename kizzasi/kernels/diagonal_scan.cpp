#include "kizzasi/kernels/diagonal_scan.h"

#include <cmath>

namespace kizzasi::kernels {

void diagonal_scan_plain(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const std::size_t plane = s.states * s.channels;
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const float input = x.row(t)[e];
      float sum = s.d[e] * input;
      for (std::size_t i = e; i < plane; i += s.channels) {
        const float real = h[i], imaginary = h[plane + i];
        h[i] = std::fma(-s.a[plane + i], imaginary, std::fma(s.a[i], real, input));
        h[plane + i] = std::fma(s.a[plane + i], real, s.a[i] * imaginary);
        sum = std::fma(s.c[i], h[i], sum);
        sum = std::fma(-s.c[plane + i], h[plane + i], sum);
      }
      y.row(t)[e] = sum;
    }
  }
}

void diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept { diagonal_scan_plain(s, x, h, y); }

}  // namespace kizzasi::kernels
