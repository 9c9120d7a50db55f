#include "kizzasi/kernels/conv1d.h"

#include <algorithm>
#include <cmath>

namespace kizzasi::kernels {

void conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                 MatrixSpan y) noexcept {
  const std::size_t channels = x.cols;
  for (std::size_t t = 0; t < x.rows; ++t) {
    std::copy(window.begin() + static_cast<std::ptrdiff_t>(channels), window.end(), window.begin());
    std::copy_n(x.row(t).data(), channels, window.data() + (taps - 1) * channels);
    for (std::size_t e = 0; e < channels; ++e) {
      float sum = bias.empty() ? 0.0f : bias[e];
      for (std::size_t j = 0; j < taps; ++j) sum = std::fma(w[j * channels + e], window[j * channels + e], sum);
      y.row(t)[e] = sum;
    }
  }
}

}  // namespace kizzasi::kernels
