#include "kizzasi/penalty/config.h"

namespace kizzasi {

void PenaltyConfig::fields(FieldVisitor& visit) {
  FieldInfo kinds{"penalty", "What predictions that leave the limits cost in training, before the guard moves them."};
  for (auto kind = PenaltyKind::kNone; kind <= PenaltyKind::kAugmented; kind = static_cast<PenaltyKind>(static_cast<int>(kind) + 1))
    kinds.choices.push_back(name(kind));
  visit.field(kinds, penalty);
  visit.field({"penalty_weight", "Weight of that price beside the loss; where weights move, the one they begin with.", 0, 1e9},
              penalty_weight);
  visit.field({"penalty_width", "Bend of huber, reach of barrier and exponential, in standard deviations.", 1e-9, 1e9}, penalty_width);
  visit.field({"penalty_margin", "How far inside the limits the price begins, in standard deviations.", 0, 1e9}, penalty_margin);
  visit.field({"penalty_adapt",
               "Let the weight of each constraint rise while it is broken and fall while it is kept; exact, lagrangian and augmented move "
               "their own without it."},
              penalty_adapt);
  visit.field({"penalty_target", "Mean violation that is borne before weights and multipliers rise, in standard deviations.", 0, 1e9},
              penalty_target);
  visit.field({"penalty_every", "Steps between two moves of weights and multipliers.", 1, 1e9}, penalty_every);
  visit.field(
      {"penalty_sharpness",
       "How closely smooth minima and maxima follow the true ones in formulas with choices and times; per standard deviation.", 1e-3, 1e6},
      penalty_sharpness);
}

}  // namespace kizzasi
