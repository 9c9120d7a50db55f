// What the memory and the calls of a step cost at least on this core: the yardstick beside every measured step.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "kizzasi/kernels/core_limits.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi::bench {

inline constexpr double kCallsALayer = 10;  // norms, projections, convolution, activations, scan

// Seconds that the smallest kernel call takes.
inline double call_cost() {
  static const double cost = [] {
    std::vector<float> x(8, 1.0f);
    constexpr int kCalls = 100'000;
    double best = 1;
    for (int round = 0; round < 5; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < kCalls; ++i) kernels::rms_norm(x, {}, 1e-5f, x);
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / kCalls);
    }
    return best;
  }();
  return cost;
}

// Seconds of a step that moves `traffic` bytes (weights and state read, state written), at the bandwidth measured now for that much memory.
inline double step_limit(double traffic, std::size_t layers) {
  const double bandwidth = kernels::read_bytes_per_second(std::vector<float>(static_cast<std::size_t>(traffic) / sizeof(float) + 1));
  return traffic / bandwidth + call_cost() * kCallsALayer * static_cast<double>(layers);
}

}  // namespace kizzasi::bench
