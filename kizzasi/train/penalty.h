// What a prediction costs for leaving its limits, on the tape: training learns to stay inside, the guard still sees to it.
#pragma once

#include <span>
#include <string>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/fields.h"

namespace kizzasi {

enum class PenaltyKind {
  kHinge,    // max(0, g)
  kSquared,  // max(0, g)^2
  kHuber,    // g^2 / 2 up to `width`, then width (g - width / 2)
  kBarrier   // -log(-g) up to a distance of `width` before the limit, then the parabola that goes on from there (Feller and Ebenbauer
             // 2017): finite and smooth on both sides
};

struct PenaltyConfig {
  std::string penalty = "squared";  // hinge, squared, huber, barrier
  double penalty_weight = 0;        // 0: none
  double penalty_width = 1;         // huber, barrier: in the units of the violation

  void fields(FieldVisitor& visit);
  PenaltyKind kind() const;
  friend bool operator==(const PenaltyConfig&, const PenaltyConfig&) = default;
};

// Elementwise penalty of a violation g: allowed where g <= 0. A linear limit a x <= b has g = sub(linear(x, a), b).
// At the bend of the hinge (g = 0) the derivative is 0. Exact in T; without the weight.
template <typename T>
autograd::Var<T> penalty(const PenaltyConfig& config, autograd::Var<T> violation);

// The sum over the channels of the penalties of value - high and low - value. value (..., channels), low and high (channels), in the same
// units; infinite: no limit. -> (...)
template <typename T>
autograd::Var<T> bound_penalty(const PenaltyConfig& config, autograd::Var<T> value, std::span<const double> low,
                               std::span<const double> high);

}  // namespace kizzasi
