// How an expression bends in the channels that are predicted.
#pragma once

#include <cstdint>

#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// kSquares: a sum of squares of affine expressions, times numbers > 0. kQuadratic: any polynomial of degree 2.
enum class Curve : std::uint8_t { kStill, kAffine, kSquares, kQuadratic, kConvex, kConcave, kOther };

// Of a number node, in the values now of channels with the role target. Thread: any. Real-time: no.
Curve curve_of(const NodeGraph& graph, std::uint32_t node);
bool moves_channel(const NodeGraph& graph, std::uint32_t channel);

}  // namespace kizzasi::logic
