// Constraints as a price: how far a prediction is from obeying, with its gradient, so that training learns to stay inside.
#pragma once

#include <memory>
#include <span>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

enum class PenaltyForm {
  kHinge,    // max(0, g)
  kSquared,  // max(0, g)^2
};

// The sum over all conditions of  weight * form(g), where g = left - right of a condition  left <= right  (|left - right| of an equality),
// in the units of its two sides. A rate looks back to the frame before, both its kinds of past alike. 0 where all hold. Immutable. Thread:
// any. Real-time: yes.
class ConstraintPenalty {
 public:
  // Errors as of compile_guard's reading: unknown names, units, what is not linear. Constraints with else = "warn" cost nothing.
  static Result<ConstraintPenalty> compile(const Schema& schema, std::span<const ConstraintText> constraints, PenaltyForm form);
  ConstraintPenalty(ConstraintPenalty&&) noexcept;
  ConstraintPenalty& operator=(ConstraintPenalty&&) noexcept;
  ~ConstraintPenalty();

  // value, before: (channels) the frame and the one `seconds` (rows where the schema is not timed) before it; `before` empty: none, and
  // what looks back costs nothing. Where `gradient` (channels) is not empty, scale * d penalty / d value is added to it, and the same for
  // `before_gradient` and `before`. At the bend of the hinge the derivative is 0. A condition that reads a NaN costs nothing.
  double value(std::span<const double> value, std::span<const double> before, double seconds, double scale = 1,
               std::span<double> gradient = {}, std::span<double> before_gradient = {}) const noexcept;

 private:
  struct Conditions;
  explicit ConstraintPenalty(std::unique_ptr<Conditions> conditions);
  std::unique_ptr<Conditions> conditions_;
};

}  // namespace kizzasi
