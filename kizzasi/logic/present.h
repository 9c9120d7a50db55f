// The numbers of a graph at a frame that is only proposed: what looks back reads the state, and nothing is moved on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/logic/monitor/nodes.h"
#include "kizzasi/logic/predicate.h"

namespace kizzasi::logic {

// prev(x, 1) and rate(x) of a channel look at the last value that there was, with its time, as everywhere in the guard; all else that looks
// back counts frames: those that were measured (in a rollout: emitted), or those that were emitted where it says from = commanded.
// A window over n samples is summed from the oldest to the newest, which comes last. Immutable; one for all streams. Thread: any.
// Real-time: all but the constructor.
class Present {
 public:
  Present() = default;
  explicit Present(const NodeGraph& graph);

  std::size_t state_doubles() const noexcept { return state_doubles_; }
  static constexpr std::size_t kRecalled = 3;  // doubles for each node
  void reset(std::span<double> state) const noexcept;

  // What the past says to each node, read once a frame. `recalled`: (nodes, kRecalled).
  void recall(std::span<const double> state, const Past& past, std::int64_t time_ns, std::span<double> recalled) const noexcept;
  // Evaluates the nodes of `order` (operands first) at `frame` (channels).
  void evaluate(std::span<const std::uint32_t> order, std::span<const double> recalled, std::span<const double> frame,
                std::span<double> values) const noexcept;
  // Adds to `slopes` (channels) the derivative of node `of` times `factor` at what `evaluate` left in `values`. `order` must hold what it
  // depends on. `adjoint` (nodes) is scratch.
  void add_slopes(std::uint32_t of, double factor, std::span<const std::uint32_t> order, std::span<const double> recalled,
                  std::span<const double> values, std::span<double> adjoint, std::span<double> slopes) const noexcept;
  // One frame has been emitted: `seen` and `sent` are the values of all nodes at what was measured and at what was emitted.
  void accept(std::span<double> state, std::int64_t time_ns, std::span<const double> seen, std::span<const double> sent) const noexcept;

  // The number nodes that `root` depends on, operands first.
  std::vector<std::uint32_t> order_of(std::uint32_t root) const;
  // On what scale a number is exact: the sum of the sizes of its terms.
  double magnitude(std::uint32_t node, std::span<const double> values) const noexcept;
  const NodeGraph& graph() const { return graph_; }

 private:
  bool remembers(const Node& node) const noexcept;
  NodeGraph graph_;
  std::vector<std::size_t> offset_;  // (nodes) of their state
  std::size_t state_doubles_ = 0;
  double zone_hours_ = 0, step_s_ = 1;
};

}  // namespace kizzasi::logic
