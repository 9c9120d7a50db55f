// What breaking a limit costs, as a function of how far it is broken.
#pragma once

#include <cstdint>
#include <string_view>

namespace kizzasi {

enum class PenaltyKind : std::uint8_t {
  kNone,
  kHinge,        // max(0, g)
  kSquared,      // max(0, g)^2
  kHuber,        // g^2 / 2 up to `width`, then width (g - width / 2)
  kBarrier,      // -log(-g) up to a distance of `width` before the limit, then the parabola that goes on from there (Feller and Ebenbauer
                 // 2017): finite and smooth on both sides
  kExponential,  // width exp(g / width), by its tangent from g = 10 width on
  kExact,        // max(0, g) at a weight of its own for each condition, which rises until the condition is kept: above the multiplier the
                 // minimum is that of the constrained problem itself (Nocedal and Wright 2006, theorem 17.3)
  kLagrangian,   // multiplier * max(0, g)
  kAugmented     // multiplier * max(0, g) + weight / 2 max(0, g)^2 (Hestenes 1969, Powell 1969)
};
const char* name(PenaltyKind kind);               // "none", "hinge", "squared", ...
PenaltyKind penalty_kind(std::string_view name);  // kNone where there is no such name

// Whether its weights or multipliers move while a training runs (penalty/multipliers.h).
constexpr bool adapts_always(PenaltyKind kind) { return kind >= PenaltyKind::kExact; }

// The price of a violation g: allowed where g <= 0. `weight` multiplies it; `multiplier` is read by kLagrangian and kAugmented only.
// slope = d price / d g; at the bend of a hinge it is 0. width > 0 and in the units of g. Thread: any. Real-time: yes.
double price_of(PenaltyKind kind, double width, double weight, double multiplier, double g, double& slope) noexcept;

}  // namespace kizzasi
