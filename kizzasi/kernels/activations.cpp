#include "kizzasi/kernels/activations.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kizzasi::kernels {
namespace {

template <typename F>
void each(std::span<const float> x, std::span<float> out, F f) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = static_cast<float>(f(double{x[i]}));
}
double sigmoid_of(double v) { return 1 / (1 + std::exp(-v)); }

}  // namespace

void silu(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return v * sigmoid_of(v); });
}
void sigmoid(std::span<const float> x, std::span<float> out) noexcept { each(x, out, sigmoid_of); }
void tanh(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return std::tanh(v); });
}
void softplus(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return v > 20 ? v : std::log1p(std::exp(v)); });
}
void exp(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return std::exp(v); });
}
void gelu(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return 0.5 * v * std::erfc(-v / std::numbers::sqrt2); });
}
void gelu_tanh(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v))); });
}
void relu(std::span<const float> x, std::span<float> out) noexcept {
  each(x, out, [](double v) { return v < 0 ? 0.0 : v; });
}
void mul_silu(std::span<const float> a, std::span<const float> b, std::span<float> out) noexcept {
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = static_cast<float>(a[i] * (b[i] * sigmoid_of(b[i])));
}
void softmax(std::span<const float> x, std::span<float> out) noexcept {
  if (x.empty()) return;
  const double most = *std::max_element(x.begin(), x.end());
  double total = 0;
  for (const float v : x) total += std::exp(v - most);
  each(x, out, [&](double v) { return std::exp(v - most) / total; });
}
float dot(std::span<const float> a, std::span<const float> b) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return static_cast<float>(sum);
}

}  // namespace kizzasi::kernels
