// The numbers of a graph, sample by sample: arithmetic as written, and what looks back (previous values, rates, windows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kizzasi/logic/monitor/lattice.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

// The layout of the state, and the one pass that moves it on. Immutable; one for all streams. Thread: any.
class Numbers {
 public:
  // `skipped` (nodes, or empty): numbers that nobody reads from `values`.
  explicit Numbers(const NodeGraph& graph, const std::vector<bool>& skipped = {});

  std::size_t state_doubles() const noexcept { return state_doubles_; }
  // Samples after which nothing of an earlier one is left.
  std::int64_t memory() const noexcept { return memory_; }
  void reset(std::span<double> state) const noexcept;

  // One sample: `frame` (channels), `values` (nodes) of which the numbers are written. Real-time: yes.
  void step(const NodeGraph& graph, std::span<double> state, std::int64_t time_ns, std::span<const double> frame,
            std::span<double> values) const noexcept;

 private:
  std::vector<std::uint32_t> order_;  // the number nodes
  std::vector<std::size_t> offset_;   // (nodes) of their state
  std::size_t state_doubles_ = 0;
  std::int64_t memory_ = 0;
  double zone_hours_ = 0;
};

// How many hours ahead a zone such as "+02:00" is; and the hours since Monday, 0:00 there.
double zone_hours_of(std::string_view zone);
double week_hours(std::int64_t time_ns, double zone_hours) noexcept;

// A comparison's truth as it reads in floating point (`==` within the tolerance of equalities), and its robustness.
Verdict truth_of(const NodeGraph& graph, std::uint32_t node, std::span<const double> values) noexcept;
Robustness robustness_of(const NodeGraph& graph, std::uint32_t node, std::span<const double> values) noexcept;

}  // namespace kizzasi::logic
