#include "kizzasi/train/penalty.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "kizzasi/train/rowwise.h"

namespace kizzasi {
namespace {

constexpr std::array<const char*, 4> kNames{"hinge", "squared", "huber", "barrier"};

double penalty_of(PenaltyKind kind, double width, double g, double& slope) {
  const double over = g > 0 ? g : 0.0;
  switch (kind) {
    case PenaltyKind::kHinge:
      slope = g > 0;
      return over;
    case PenaltyKind::kSquared:
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
  }
  return 0;
}

}  // namespace

void PenaltyConfig::fields(FieldVisitor& visit) {
  FieldInfo names{"penalty", "What leaving the limits costs in training."};
  names.choices.assign(kNames.begin(), kNames.end());
  visit.field(names, penalty);
  visit.field({"penalty_weight", "Weight of that cost beside the loss; 0 means none.", 0, 1e12}, penalty_weight);
  visit.field({"penalty_width", "Bend of huber, and where barrier begins to be a parabola.", 1e-12, 1e12}, penalty_width);
}

PenaltyKind PenaltyConfig::kind() const {
  const auto found = std::find_if(kNames.begin(), kNames.end(), [&](const char* name) { return penalty == name; });
  return found == kNames.end() ? PenaltyKind::kSquared : static_cast<PenaltyKind>(found - kNames.begin());
}

template <typename T>
autograd::Var<T> penalty(const PenaltyConfig& config, autograd::Var<T> violation) {
  const PenaltyKind kind = config.kind();
  return rowwise<T, 1>(violation.dims(), {violation}, [kind, width = config.penalty_width](const auto& in, const auto& out) {
    double slope = 0;
    const double cost = penalty_of(kind, width, static_cast<double>(*in[0]), slope);
    *out[0] = static_cast<T>(slope);
    return cost;
  });
}

template <typename T>
autograd::Var<T> bound_penalty(const PenaltyConfig& config, autograd::Var<T> value, std::span<const double> low,
                               std::span<const double> high) {
  const std::size_t channels = value.dims().back();
  assert(low.size() == channels && high.size() == channels);
  const PenaltyKind kind = config.kind();
  return rowwise<T, 1>(leading(value.dims()), {value}, [&, kind, width = config.penalty_width](const auto& in, const auto& out) {
    double total = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const double x = static_cast<double>(in[0][c]);
      double up = 0, down = 0;
      if (std::isfinite(high[c])) total += penalty_of(kind, width, x - high[c], up);
      if (std::isfinite(low[c])) total += penalty_of(kind, width, low[c] - x, down);
      out[0][c] = static_cast<T>(up - down);
    }
    return total;
  });
}

template autograd::Var<float> penalty(const PenaltyConfig&, autograd::Var<float>);
template autograd::Var<double> penalty(const PenaltyConfig&, autograd::Var<double>);
template autograd::Var<float> bound_penalty(const PenaltyConfig&, autograd::Var<float>, std::span<const double>, std::span<const double>);
template autograd::Var<double> bound_penalty(const PenaltyConfig&, autograd::Var<double>, std::span<const double>, std::span<const double>);

}  // namespace kizzasi
