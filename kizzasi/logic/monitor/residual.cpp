#include "kizzasi/logic/monitor/residual.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kizzasi::logic {

class ResidualBuilder {
 public:
  using Op = Residual::Op;
  ResidualBuilder(const NodeGraph& graph, Residual::Leaves leaves, std::size_t most) : graph_(graph), rule_(leaves), most_(most) {}

  bool run(std::uint32_t root) {
    const auto part = normal(root, false);
    if (!part) return false;
    out.root_ = *part;
    for (Residual::Part& p : out.parts_) {
      if (p.op == Op::kNext) p.obligation = obligation(p.a, p.weak);
      if (p.op == Op::kAlways || p.op == Op::kRelease) p.obligation = obligation(index_of(p), true);
      if (p.op == Op::kEventually || p.op == Op::kUntil) p.obligation = obligation(index_of(p), false);
    }
    if (out.obligations_.size() <= most_) return true;
    wrong = fmt::format("it leaves {} obligations open", out.obligations_.size());
    return false;
  }

  Residual out;
  std::string wrong;

 private:
  using Index = std::optional<std::uint32_t>;

  bool is_leaf(std::uint32_t node) const {
    const Node& n = graph_.nodes[node];
    if (rule_ == Residual::Leaves::kBounded) return n.horizon != kEndless;
    return n.kind >= NodeKind::kTruth && n.kind <= NodeKind::kEqual;
  }

  Index normal(std::uint32_t node, bool negate) {
    const Node& n = graph_.nodes[node];
    if (is_leaf(node)) {
      out.horizon_ = std::max(out.horizon_, n.horizon);
      if (std::find(out.leaves_.begin(), out.leaves_.end(), node) == out.leaves_.end()) out.leaves_.push_back(node);
      return made({.op = negate ? Op::kNotLeaf : Op::kLeaf, .leaf = node});
    }
    switch (n.kind) {
      case NodeKind::kNot:
        return normal(n.a, !negate);
      case NodeKind::kAnd:
      case NodeKind::kOr:
        return two((n.kind == NodeKind::kAnd) != negate ? Op::kAnd : Op::kOr, normal(n.a, negate), normal(n.b, negate));
      case NodeKind::kShift:
        return next(normal(n.a, negate), n.weak != negate);
      case NodeKind::kAlways:
      case NodeKind::kEventually:
        return window(n, (n.kind == NodeKind::kAlways) != negate, normal(n.a, negate));
      case NodeKind::kUntil:
        return until(n, negate, normal(n.a, negate), normal(n.b, negate));
      default:
        wrong = rule_ == Residual::Leaves::kBounded ? "a past operator stands over one without an end" : "it holds past operators";
        return {};
    }
  }

  // always[low, high] and its dual; `all` tells which.
  Index window(const Node& n, bool all, Index a) {
    if (!a) return {};
    Index out_part;
    if (n.high == kEndless) {
      out_part = made({.op = all ? Op::kAlways : Op::kEventually, .a = *a});
    } else {
      if (!few(n.high)) return {};
      out_part = a;
      for (std::int64_t i = n.low; i < n.high; ++i) out_part = two(all ? Op::kAnd : Op::kOr, a, next(out_part, all));
    }
    for (std::int64_t i = 0; i < n.low && out_part; ++i) {
      if (!few(i)) return {};
      out_part = next(out_part, all);
    }
    return out_part;
  }

  // a until[low, high] b: b or (a and next ...) through the window, a and next ... before it; the dual where negated.
  Index until(const Node& n, bool negated, Index a, Index b) {
    if (!a || !b) return {};
    const Op outer = negated ? Op::kAnd : Op::kOr, inner = negated ? Op::kOr : Op::kAnd;
    Index part;
    if (n.high == kEndless) {
      part = made({.op = negated ? Op::kRelease : Op::kUntil, .a = *a, .b = *b});
    } else {
      if (!few(n.high)) return {};
      part = b;
      for (std::int64_t i = n.low; i < n.high; ++i) part = two(outer, b, two(inner, a, next(part, negated)));
    }
    for (std::int64_t i = 0; i < n.low && part; ++i) {
      if (!few(i)) return {};
      part = two(inner, a, next(part, negated));
    }
    return part;
  }

  bool few(std::int64_t samples) {
    if (samples <= static_cast<std::int64_t>(most_)) return true;
    wrong = fmt::format("an interval of {} samples stands over an operator without an end, or is spelled out", samples);
    return false;
  }

  Index next(Index a, bool weak) {
    if (!a) return {};
    return made({.op = Op::kNext, .weak = weak, .a = *a});
  }
  Index two(Op op, Index a, Index b) {
    if (!a || !b) return {};
    return made({.op = op, .a = *a, .b = *b});
  }

  Index made(Residual::Part part) {
    const auto same = std::find(out.parts_.begin(), out.parts_.end(), part);
    if (same != out.parts_.end()) return static_cast<std::uint32_t>(same - out.parts_.begin());
    out.parts_.push_back(part);
    return static_cast<std::uint32_t>(out.parts_.size() - 1);
  }

  std::uint32_t index_of(const Residual::Part& part) const { return static_cast<std::uint32_t>(&part - out.parts_.data()); }

  std::uint32_t obligation(std::uint32_t part, bool weak) {
    auto& list = out.obligations_;
    const auto same =
        std::find_if(list.begin(), list.end(), [&](const Residual::Obligation& o) { return o.part == part && o.weak == weak; });
    if (same != list.end()) return static_cast<std::uint32_t>(same - list.begin());
    list.push_back({part, weak});
    return static_cast<std::uint32_t>(list.size() - 1);
  }

  const NodeGraph& graph_;
  Residual::Leaves rule_;
  std::size_t most_;
};

Result<Residual> Residual::build(const NodeGraph& graph, std::uint32_t root, Leaves leaves, std::size_t most, const std::string& place) {
  ResidualBuilder builder(graph, leaves, most);
  if (builder.run(root)) return std::move(builder.out);
  return fail({Fault::kBadInput, fmt::format("the formula needs memory that grows with the stream: {}", builder.wrong), place,
               fmt::format("bounded intervals, or at most {} endless operators and nexts around one another", most),
               "Judge it over a recording, where the whole trace is at hand."});
}

}  // namespace kizzasi::logic
