// A forecast of several steps as it is handed from whoever made it to whoever judges or shows it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kizzasi {

// Plain numbers in physical units. Thread: any for reading.
struct ForecastBlock {
  std::size_t horizon = 0, channels = 0;  // channels: the targets, in the order of the schema
  std::vector<double> points;             // (horizon, channels)
  std::vector<double> levels;             // rising; empty: no quantiles
  std::vector<double> quantiles;          // (levels, horizon, channels)

  // Gives every buffer its size; values are left as they are where the size was right.
  void resize(std::size_t steps, std::size_t targets, std::span<const double> wanted_levels) {
    horizon = steps;
    channels = targets;
    points.resize(steps * targets);
    levels.assign(wanted_levels.begin(), wanted_levels.end());
    quantiles.resize(levels.size() * steps * targets);
  }
  double& point(std::size_t step, std::size_t channel) noexcept { return points[step * channels + channel]; }
  double point(std::size_t step, std::size_t channel) const noexcept { return points[step * channels + channel]; }
  double& quantile(std::size_t level, std::size_t step, std::size_t channel) noexcept {
    return quantiles[(level * horizon + step) * channels + channel];
  }
  double quantile(std::size_t level, std::size_t step, std::size_t channel) const noexcept {
    return quantiles[(level * horizon + step) * channels + channel];
  }
};

}  // namespace kizzasi
