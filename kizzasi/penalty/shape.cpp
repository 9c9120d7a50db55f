#include "kizzasi/penalty/shape.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace kizzasi {
namespace {

constexpr std::array<const char*, 9> kNames{"none",        "hinge", "squared",    "huber",    "barrier",
                                            "exponential", "exact", "lagrangian", "augmented"};

double shape(PenaltyKind kind, double width, double g, double& slope) noexcept {
  const double over = g > 0 ? g : 0.0;
  switch (kind) {
    case PenaltyKind::kNone:
      break;
    case PenaltyKind::kHinge:
    case PenaltyKind::kExact:
    case PenaltyKind::kLagrangian:
      slope = g > 0;
      return over;
    case PenaltyKind::kSquared:
    case PenaltyKind::kAugmented:
      slope = 2 * over;
      return over * over;
    case PenaltyKind::kHuber:
      slope = std::min(over, width);
      return over <= width ? 0.5 * over * over : width * (over - 0.5 * width);
    case PenaltyKind::kBarrier: {
      if (-g > width) {
        slope = -1 / g;
        return -std::log(-g);
      }
      const double z = (-g - 2 * width) / width;
      slope = -z / width;
      return 0.5 * (z * z - 1) - std::log(width);
    }
    case PenaltyKind::kExponential: {
      constexpr double kTangent = 10;
      const double z = g / width, at = std::min(z, kTangent);
      slope = std::exp(at);
      return width * slope * (1 + (z - at));
    }
  }
  slope = 0;
  return 0;
}

}  // namespace

const char* name(PenaltyKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

PenaltyKind penalty_kind(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  return found == kNames.end() ? PenaltyKind::kNone : static_cast<PenaltyKind>(found - kNames.begin());
}

double price_of(PenaltyKind kind, double width, double weight, double multiplier, double g, double& slope) noexcept {
  const double price = shape(kind, width, g, slope);
  if (kind == PenaltyKind::kLagrangian) {
    slope *= multiplier;
    return multiplier * price;
  }
  if (kind == PenaltyKind::kAugmented) {
    const double over = g > 0 ? g : 0.0;
    slope = g > 0 ? multiplier + weight * over : 0;
    return multiplier * over + 0.5 * weight * price;
  }
  slope *= weight;
  return weight * price;
}

}  // namespace kizzasi
