#include "kizzasi/kernels/norms.h"

#include <cmath>

namespace kizzasi::kernels {

void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon, std::span<float> out) noexcept {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  const double scale = 1 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>((gain.empty() ? 1.0f : gain[i]) * (x[i] * scale));
}

void rms_norm_groups(std::span<const float> x, std::size_t groups, std::span<const float> gain, float epsilon,
                     std::span<float> out) noexcept {
  const std::size_t size = x.size() / groups;
  for (std::size_t g = 0; g < groups; ++g) {
    rms_norm(x.subspan(g * size, size), gain.empty() ? gain : gain.subspan(g * size, size), epsilon, out.subspan(g * size, size));
  }
}

void layer_norm(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, float epsilon,
                std::span<float> out) noexcept {
  const auto count = static_cast<double>(x.size());
  double mean = 0, square = 0;
  for (const float v : x) mean += v;
  mean /= count;
  for (const float v : x) square += (v - mean) * (v - mean);
  const double scale = 1 / std::sqrt(square / count + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = static_cast<float>((gain.empty() ? 1.0f : gain[i]) * ((x[i] - mean) * scale) + (bias.empty() ? 0.0f : bias[i]));
  }
}

}  // namespace kizzasi::kernels
