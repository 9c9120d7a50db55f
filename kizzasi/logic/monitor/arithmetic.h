// Arithmetic of nodes, in double and as written: the one piece that monitors, the guard and its searches evaluate with.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// Of two numbers, NaN where either is.
inline double lesser(double a, double b) noexcept {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
}
inline double greater(double a, double b) noexcept {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
}

// `b` is not read where the node has one operand.
inline double arithmetic(NodeKind kind, double a, double b) noexcept {
  switch (kind) {
    case NodeKind::kNegate:
      return -a;
    case NodeKind::kAdd:
      return a + b;
    case NodeKind::kSubtract:
      return a - b;
    case NodeKind::kMultiply:
      return a * b;
    case NodeKind::kDivide:
      return a / b;
    case NodeKind::kAbs:
      return std::abs(a);
    case NodeKind::kLesser:
      return lesser(a, b);
    case NodeKind::kGreater:
      return greater(a, b);
    default:
      return std::sqrt(a);
  }
}

}  // namespace kizzasi::logic
