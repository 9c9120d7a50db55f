#include "kizzasi/kernels/ssd.h"

#include <cmath>

namespace kizzasi::kernels {

void ssd_step_plain(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                    MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      const std::size_t group = h * s.groups / s.heads;
      const float step = delta.row(t)[h], decay = std::exp(step * s.a[h]);
      for (std::size_t p = 0; p < s.head_dim; ++p) {
        const float value = x.row(t)[h * s.head_dim + p], input = step * value;
        float sum = s.d[h] * value;
        for (std::size_t n = 0; n < s.states; ++n) {
          float& element = state[(h * s.states + n) * s.head_dim + p];
          element = std::fma(decay, element, input * b.row(t)[group * s.states + n]);
          sum = std::fma(c.row(t)[group * s.states + n], element, sum);
        }
        y.row(t)[h * s.head_dim + p] = sum;
      }
    }
  }
}

void ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state, MatrixSpan y) noexcept {
  ssd_step_plain(s, x, delta, b, c, state, y);
}

}  // namespace kizzasi::kernels
