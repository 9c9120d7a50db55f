#include "kizzasi/train/clip.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace kizzasi {
namespace {

// Eight interleaved sums.
template <typename Term>
double total(std::span<const float> values, Term term) {
  std::array<double, 8> partial{};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) partial[lane] += term(static_cast<double>(values[i + lane]));
  }
  for (std::size_t lane = 0; i < values.size(); ++i, ++lane) partial[lane] += term(static_cast<double>(values[i]));
  return ((partial[0] + partial[4]) + (partial[2] + partial[6])) + ((partial[1] + partial[5]) + (partial[3] + partial[7]));
}

}  // namespace

double gradient_norm(std::span<const float> gradient, double p) {
  if (p == 2) return std::sqrt(total(gradient, [](double g) { return g * g; }));
  if (p == 1) return total(gradient, [](double g) { return std::abs(g); });
  if (std::isinf(p)) {
    double largest = 0;
    for (const float g : gradient) {
      if (std::isnan(g)) return g;
      largest = std::max(largest, std::abs(static_cast<double>(g)));
    }
    return largest;
  }
  return std::pow(total(gradient, [p](double g) { return std::pow(std::abs(g), p); }), 1 / p);
}

double clip_by_norm(std::span<float> gradient, double max_norm, double p) {
  const double norm = gradient_norm(gradient, p), factor = max_norm / (norm + 1e-6);
  if (!std::isfinite(norm) || factor >= 1) return norm;
  for (float& g : gradient) g *= static_cast<float>(factor);
  return norm;
}

void clip_by_value(std::span<float> gradient, float limit) {
  for (float& g : gradient) g = std::clamp(g, -limit, limit);
}

}  // namespace kizzasi
