// The conditions of a graph, sample by sample, over one lattice: every node gives its value at a position as soon as nothing that comes can
// change it, as many samples late as its horizon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/logic/monitor/block_window.h"
#include "kizzasi/logic/monitor/lattice.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// Immutable; the state is one span of V and one of counters. Nodes without a bound are left out. Thread: any.
template <typename V>
class Stage {
  using L = Lattice<V>;

 public:
  // `readers`: nodes that are read by others (see at), and how many positions behind their newest value.
  struct Reader {
    std::uint32_t node = 0;
    std::int64_t lag = 0;
  };
  Stage(const NodeGraph& graph, std::span<const Reader> readers);

  std::size_t state_values() const noexcept { return values_; }
  std::size_t state_counters() const noexcept { return counters_; }
  // Samples after which nothing of an earlier one is left, but for what unbounded past operators keep.
  std::int64_t memory() const noexcept { return memory_; }

  // Where the value of a comparison at sample n goes, before step(n).
  V& slot(std::uint32_t node, std::int64_t n, std::span<V> state) const noexcept {
    return state[plans_[node].ring + static_cast<std::size_t>(n & plans_[node].mask)];
  }
  // Sample n (from 0) has come, and its comparisons stand in their slots. Real-time: yes.
  void step(std::int64_t n, std::span<V> state, std::span<std::int64_t> counters) const noexcept;
  // The value of a node at a position that is decided, and no further back than its readers said.
  const V& at(std::uint32_t node, std::int64_t position, std::span<const V> state) const noexcept {
    return state[plans_[node].ring + static_cast<std::size_t>(position & plans_[node].mask)];
  }

 private:
  // An operand: its ring, and whether it is read as its complement (a negation takes no node of its own there).
  struct Operand {
    std::size_t ring = 0;
    std::int64_t mask = 0;
    bool complement = false;
  };
  struct Plan {
    NodeKind kind = NodeKind::kTruth;
    bool weak = false;
    Operand a, b;
    std::int64_t low = 0, width = 0;                       // of the window; width 0: none, kEndless: all that came
    std::int64_t horizon = 0, newest_a = 0, newest_b = 0;  // horizons of node and operands
    std::size_t ring = 0;
    std::int64_t mask = 0;
    std::size_t window = 0, second = 0;  // values: buffer and running element; of until and since also the window over a
    std::size_t counter = 0;
  };

  static V read(const Operand& operand, std::int64_t position, const V* state) noexcept {
    const V& value = state[operand.ring + static_cast<std::size_t>(position & operand.mask)];
    return operand.complement ? L::complement(value) : value;
  }
  V value(const Plan& plan, std::int64_t n, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept;
  V until(const Plan& plan, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept;
  V since(const Plan& plan, std::int64_t p, std::span<V> state, std::span<std::int64_t> counters) const noexcept;

  std::vector<Plan> plans_;  // (nodes)
  std::vector<Plan> order_;  // the live ones that are worked out, comparisons left out, in order
  std::size_t values_ = 0, counters_ = 0;
  std::int64_t memory_ = 0;
};

}  // namespace kizzasi::logic
