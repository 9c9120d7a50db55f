// How a model's quantiles are corrected so that they cover what they claim, fitted on data that training never saw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"

namespace kizzasi {

// corrected quantile = median + stretch * (quantile - median) + shift          for each step ahead, target and level, in physical units
// (split conformal: Romano, Patterson and Candes 2019; `shift` alone is their equation 8 for each side, `stretch` alone keeps the shape of
// a spread that changes with time). Plain numbers; what fits and applies them stands in decode.
struct Calibration {
  std::vector<double> levels;  // rising; empty: not calibrated
  std::size_t horizon = 0;     // steps ahead that have numbers of their own; later ones use the last
  std::size_t targets = 0;
  std::vector<double> stretch;  // (horizon, targets, levels), >= 0
  std::vector<double> shift;    // (horizon, targets, levels)
  std::int64_t windows = 0;     // forecasts that it was fitted on
  // In streams each level's correction goes on learning from what is measured: the share of `rate` in adaptive conformal inference
  // (Gibbs and Candes 2021, equation 2). 0: it stays as fitted.
  double rate = 0;

  bool empty() const noexcept { return levels.empty(); }
  // Where the numbers of a step ahead (0-based), target and level stand.
  std::size_t index(std::size_t step, std::size_t target, std::size_t level) const noexcept {
    return ((step < horizon ? step : horizon - 1) * targets + target) * levels.size() + level;
  }
  friend bool operator==(const Calibration&, const Calibration&) = default;
};

Json to_json(const Calibration& calibration);
// Sizes that do not fit, levels outside (0, 1) or not rising, negative stretches and numbers that are not finite are errors.
Result<Calibration> calibration_from_json(const Json& json, std::string_view where);

}  // namespace kizzasi
