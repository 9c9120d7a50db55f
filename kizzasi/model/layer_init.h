// How published models draw their weights at the start of training.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <span>

#include "kizzasi/base/rng.h"

namespace kizzasi {

// The logarithm of a step, or of the largest at which half of Euler's bound |1 + dt lambda| < 1 is kept for every eigenvalue.
inline float stable_under_euler(float log_dt, std::span<const std::complex<double>> lambda) {
  double most = log_dt;
  for (const std::complex<double>& each : lambda) most = std::min(most, std::log(-each.real() / std::norm(each)));
  return static_cast<float>(most);
}

inline void draw_uniform(std::span<float> out, double low, double high, Rng& rng) {
  for (float& value : out) value = static_cast<float>(rng.uniform(low, high));
}

// A linear or convolution weight of that many inputs an output: uniform within +-1/sqrt(inputs), torch's default.
inline void draw_linear(std::span<float> out, std::size_t inputs, Rng& rng, double scale = 1) {
  const double bound = scale / std::sqrt(static_cast<double>(inputs));
  draw_uniform(out, -bound, bound, rng);
}

// Biases b with softplus(b) log-uniform in [low, high], at least 1e-4 (Gu and Dao 2023, section 3.6).
inline void draw_step_bias(std::span<float> out, double low, double high, Rng& rng) {
  for (float& value : out) {
    const double step = std::max(1e-4, std::exp(rng.uniform(std::log(low), std::log(high))));
    value = static_cast<float>(step + std::log(-std::expm1(-step)));
  }
}

}  // namespace kizzasi
