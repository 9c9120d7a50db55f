#include "kizzasi/logic/curvature.h"

#include <algorithm>
#include <cmath>

namespace kizzasi::logic {
namespace {

bool is_window(NodeKind kind) { return kind >= NodeKind::kWindowMean && kind <= NodeKind::kWindowIntegral; }

// True where the slope of an affine expression is no number of the text: squares of it have no curvature that is known now.
bool scaled_by_given(const NodeGraph& graph, std::uint32_t index) {
  const Node& node = graph.nodes[index];
  switch (node.kind) {
    case NodeKind::kNegate:
      return scaled_by_given(graph, node.a);
    case NodeKind::kAdd:
    case NodeKind::kSubtract:
      return scaled_by_given(graph, node.a) || scaled_by_given(graph, node.b);
    case NodeKind::kMultiply:
    case NodeKind::kDivide: {
      const bool still_a = curve_of(graph, node.a) == Curve::kStill, still_b = curve_of(graph, node.b) == Curve::kStill;
      if (still_a && still_b) return false;
      const std::uint32_t factor = still_a ? node.a : node.b, moving = still_a ? node.b : node.a;
      return graph.nodes[factor].kind != NodeKind::kConstant || scaled_by_given(graph, moving);
    }
    default:
      return node.kind == NodeKind::kRate || is_window(node.kind);
  }
}

}  // namespace

bool moves_channel(const NodeGraph& graph, std::uint32_t channel) { return graph.schema.channels[channel].role == Role::kTarget; }

Curve curve_of(const NodeGraph& graph, std::uint32_t index) {
  const Node& node = graph.nodes[index];
  const auto a = [&] { return curve_of(graph, node.a); };
  const auto b = [&] { return curve_of(graph, node.b); };
  const auto flipped = [](Curve c) {
    return c == Curve::kConvex ? Curve::kConcave : c == Curve::kConcave ? Curve::kConvex : c == Curve::kSquares ? Curve::kQuadratic : c;
  };
  const auto added = [](Curve one, Curve other) {
    if (one == Curve::kStill) return other;
    if (other == Curve::kStill) return one;
    const Curve least = std::min(one, other), most = std::max(one, other);
    if (most == Curve::kAffine || least == most) return most;
    if (least == Curve::kAffine) return most == Curve::kSquares ? Curve::kQuadratic : most;
    if (least == Curve::kSquares && most == Curve::kQuadratic) return Curve::kQuadratic;
    if (least == Curve::kSquares && most == Curve::kConvex) return Curve::kConvex;
    return Curve::kOther;
  };
  switch (node.kind) {
    case NodeKind::kConstant:
    case NodeKind::kHour:
    case NodeKind::kWeekday:
      return Curve::kStill;
    case NodeKind::kChannel:
      return moves_channel(graph, node.a) ? Curve::kAffine : Curve::kStill;
    case NodeKind::kNegate:
      return flipped(a());
    case NodeKind::kAdd:
      return added(a(), b());
    case NodeKind::kSubtract:
      return added(a(), flipped(b()));
    case NodeKind::kMultiply: {
      const Curve one = a(), other = b();
      if (one == Curve::kStill || other == Curve::kStill) {
        const Curve moving = one == Curve::kStill ? other : one;
        const Node& factor = graph.nodes[one == Curve::kStill ? node.a : node.b];
        if (moving <= Curve::kAffine || moving == Curve::kQuadratic || moving == Curve::kSquares) {
          const bool square = moving == Curve::kSquares || moving == Curve::kQuadratic;
          if (square && factor.kind != NodeKind::kConstant) return Curve::kOther;
          return moving == Curve::kSquares && factor.number < 0 ? Curve::kQuadratic : moving;
        }
        if (factor.kind != NodeKind::kConstant) return Curve::kOther;
        return factor.number < 0 ? flipped(moving) : moving;
      }
      if (one == Curve::kAffine && other == Curve::kAffine && !scaled_by_given(graph, node.a) && !scaled_by_given(graph, node.b)) {
        return node.a == node.b ? Curve::kSquares : Curve::kQuadratic;
      }
      return Curve::kOther;
    }
    case NodeKind::kDivide: {
      const Curve one = a();
      if (b() != Curve::kStill) return Curve::kOther;
      if (one <= Curve::kAffine) return one;
      const Node& divisor = graph.nodes[node.b];
      if (divisor.kind != NodeKind::kConstant) return Curve::kOther;
      if (one == Curve::kSquares || one == Curve::kQuadratic) return divisor.number < 0 ? Curve::kQuadratic : one;
      return divisor.number < 0 ? flipped(one) : one;
    }
    case NodeKind::kRoot:  // of a sum of squares: a norm
      return a() == Curve::kStill ? Curve::kStill : a() == Curve::kSquares ? Curve::kConvex : Curve::kOther;
    case NodeKind::kAbs:
    case NodeKind::kLesser:
    case NodeKind::kGreater: {
      const Curve one = a(), other = node.kind == NodeKind::kAbs ? Curve::kStill : b();
      return one == Curve::kStill && other == Curve::kStill ? Curve::kStill : Curve::kOther;
    }
    case NodeKind::kArgument:  // the most of all arguments so far
      return std::max(a(), b());
    case NodeKind::kUser: {
      const Curve arguments = a();
      if (arguments == Curve::kStill) return Curve::kStill;
      const FunctionShape shape = graph.functions[static_cast<std::size_t>(node.low)]->shape;
      if (arguments != Curve::kAffine || shape == FunctionShape::kAny) return Curve::kOther;
      return shape == FunctionShape::kAffine ? Curve::kAffine : shape == FunctionShape::kConvex ? Curve::kConvex : Curve::kConcave;
    }
    case NodeKind::kPrevious:
      return node.low == 0 ? a() : Curve::kStill;
    case NodeKind::kWindowVariance:
      return a() == Curve::kStill ? Curve::kStill : a() == Curve::kAffine ? Curve::kConvex : Curve::kOther;
    case NodeKind::kWindowLeast:
    case NodeKind::kWindowMost:
      return a() == Curve::kStill ? Curve::kStill : Curve::kOther;
    default:  // rate, mean, integral, trend
      return a() <= Curve::kAffine ? a() : Curve::kOther;
  }
}

std::vector<bool> nodes_of_now(const NodeGraph& graph, std::initializer_list<std::uint32_t> of) {
  std::vector<bool> used(graph.nodes.size(), false);
  std::vector<std::uint32_t> open(of);
  while (!open.empty()) {
    const std::uint32_t index = open.back();
    open.pop_back();
    if (used[index]) continue;
    used[index] = true;
    const Node& node = graph.nodes[index];
    const bool leaf = node.kind == NodeKind::kConstant || node.kind == NodeKind::kChannel || node.kind == NodeKind::kHour ||
                      node.kind == NodeKind::kWeekday || (node.kind == NodeKind::kPrevious && node.low > 0);
    if (leaf) continue;
    open.push_back(node.a);
    const bool two = node.kind == NodeKind::kAdd || node.kind == NodeKind::kSubtract || node.kind == NodeKind::kMultiply ||
                     node.kind == NodeKind::kDivide || node.kind == NodeKind::kLesser || node.kind == NodeKind::kGreater ||
                     node.kind == NodeKind::kArgument;
    if (two) open.push_back(node.b);
  }
  return used;
}

bool is_positive_semidefinite(std::span<double> h, std::size_t n) {
  double top = 0;
  for (std::size_t i = 0; i < n; ++i) top = std::max(top, std::abs(h[i * n + i]));
  for (std::size_t i = 0; i < n; ++i) h[i * n + i] += 1e-12 * top;
  for (std::size_t k = 0; k < n; ++k) {  // Cholesky's factor exists
    double pivot = h[k * n + k];
    for (std::size_t i = 0; i < k; ++i) pivot -= h[k * n + i] * h[k * n + i];
    if (!(pivot >= 0)) return false;
    const double root = std::sqrt(pivot);
    h[k * n + k] = root;
    for (std::size_t r = k + 1; r < n; ++r) {
      double sum = h[r * n + k];
      for (std::size_t i = 0; i < k; ++i) sum -= h[r * n + i] * h[k * n + i];
      if (root == 0 && std::abs(sum) > 1e-9 * top) return false;
      h[r * n + k] = root == 0 ? 0 : sum / root;
    }
  }
  return true;
}

}  // namespace kizzasi::logic
