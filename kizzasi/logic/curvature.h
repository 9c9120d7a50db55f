// How an expression bends in the channels that are predicted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// kSquares: a sum of squares of affine expressions, times numbers > 0. kQuadratic: any polynomial of degree 2.
enum class Curve : std::uint8_t { kStill, kAffine, kSquares, kQuadratic, kConvex, kConcave, kOther };

// Of a number node, in the values now of channels with the role target. Thread: any. Real-time: no.
Curve curve_of(const NodeGraph& graph, std::uint32_t node);
bool moves_channel(const NodeGraph& graph, std::uint32_t channel);

// The nodes that the present values of `of` depend on: what looks back alone is left out. (nodes)
std::vector<bool> nodes_of_now(const NodeGraph& graph, std::initializer_list<std::uint32_t> of);

// Of a symmetric matrix (n, n) by rows, up to 1e-12 of its largest diagonal element: Cholesky's factor exists. `h` is overwritten.
bool is_positive_semidefinite(std::span<double> h, std::size_t n);

}  // namespace kizzasi::logic
