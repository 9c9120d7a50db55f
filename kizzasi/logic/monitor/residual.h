// What is left of a formula without a bound: after each sample, how its value at the start depends on what its endless operators will be
// worth from the next sample on.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/monitor/lattice.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// In negation normal form, so that a value only grows with its parts: always a = a and next always a; a until b = b or (a and next (a
// until b)); their duals. Each "next ..." is an obligation. The value at the start is a monotone function of the obligations; over a
// lattice it is known by its values where each of them is top or bottom, 2^k of them (progression; Bacchus and Kabanza 1998, here with
// values in place of formulas).
class Residual {
 public:
  enum class Op : std::uint8_t { kLeaf, kNotLeaf, kAnd, kOr, kNext, kAlways, kEventually, kUntil, kRelease };
  struct Part {
    Op op = Op::kLeaf;
    bool weak = false;  // kNext: true where the trace has ended
    std::uint32_t a = 0, b = 0;
    std::uint32_t leaf = 0;        // node of the graph
    std::uint32_t obligation = 0;  // of what it is worth one sample on
    bool operator==(const Part& o) const { return op == o.op && weak == o.weak && a == o.a && b == o.b && leaf == o.leaf; }
  };
  // "This part holds at the next sample", or at a sample that does not exist: weak ones do.
  struct Obligation {
    std::uint32_t part = 0;
    bool weak = false;
  };
  enum class Leaves : std::uint8_t {
    kBounded,  // every part with a finite horizon is a leaf, its value comes from elsewhere
    kPresent,  // only what speaks of one sample is; bounded operators are spelled out
  };

  // Errors: past operators over a part that is no leaf; more than `most` obligations. `place` names the formula.
  static Result<Residual> build(const NodeGraph& graph, std::uint32_t root, Leaves leaves, std::size_t most, const std::string& place);

  std::span<const Part> parts() const { return parts_; }
  std::span<const Obligation> obligations() const { return obligations_; }
  std::size_t table_size() const { return std::size_t{1} << obligations_.size(); }
  // The horizon of its longest leaf: leaves are read at one position, so many samples late.
  std::int64_t horizon() const { return horizon_; }
  std::span<const std::uint32_t> leaves() const { return leaves_; }

  // A part at a sample whose leaves are worth `leaf(node)`, where the obligations of the next one are worth `next(i)`.
  template <typename V, typename Leaf, typename Next>
  V value(std::uint32_t part, const Leaf& leaf, const Next& next) const noexcept {
    using L = Lattice<V>;
    const Part& p = parts_[part];
    switch (p.op) {
      case Op::kLeaf:
        return leaf(p.leaf);
      case Op::kNotLeaf:
        return L::complement(leaf(p.leaf));
      case Op::kAnd:
        return L::meet(value<V>(p.a, leaf, next), value<V>(p.b, leaf, next));
      case Op::kOr:
        return L::join(value<V>(p.a, leaf, next), value<V>(p.b, leaf, next));
      case Op::kNext:
        return next(p.obligation);
      case Op::kAlways:
        return L::meet(value<V>(p.a, leaf, next), next(p.obligation));
      case Op::kEventually:
        return L::join(value<V>(p.a, leaf, next), next(p.obligation));
      case Op::kUntil:
        return L::join(value<V>(p.b, leaf, next), L::meet(value<V>(p.a, leaf, next), next(p.obligation)));
      default:
        return L::meet(value<V>(p.b, leaf, next), L::join(value<V>(p.a, leaf, next), next(p.obligation)));
    }
  }

  std::uint32_t root() const { return root_; }

 private:
  friend class ResidualBuilder;
  std::vector<Part> parts_;
  std::vector<Obligation> obligations_;
  std::vector<std::uint32_t> leaves_;
  std::uint32_t root_ = 0;
  std::int64_t horizon_ = 0;
};

}  // namespace kizzasi::logic
