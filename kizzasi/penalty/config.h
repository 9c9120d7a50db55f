// How training pays for leaving the limits; every field is an option of `kizzasi train`.
#pragma once

#include <cstdint>
#include <string>

#include "kizzasi/base/fields.h"
#include "kizzasi/penalty/shape.h"

namespace kizzasi {

// A violation is measured in standard deviations: the distance to the nearest allowed frame in the scale of the normaliser, so that one
// weight serves watts and degrees (penalty/constraint_price.h).
struct PenaltyConfig {
  std::string penalty = "none";
  double penalty_weight = 1;
  double penalty_width = 0.1;       // huber, barrier, exponential
  double penalty_margin = 0;        // how far inside the limits the price begins
  bool penalty_adapt = false;       // weights that move; exact, lagrangian and augmented always do
  double penalty_target = 1e-4;     // mean violation that is borne where something moves
  std::int64_t penalty_every = 10;  // steps between two moves
  double penalty_sharpness = 200;   // of smooth minima and maxima in formulas with `or` and times

  void fields(FieldVisitor& visit);
  PenaltyKind kind() const { return penalty_kind(penalty); }
  bool adapts() const { return adapts_always(kind()) || (penalty_adapt && kind() != PenaltyKind::kNone); }
  friend bool operator==(const PenaltyConfig&, const PenaltyConfig&) = default;
};

}  // namespace kizzasi
