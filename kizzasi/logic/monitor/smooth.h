// Robustness with smooth minima and maxima, and its gradient with respect to every sample: temporal logic as a loss.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

enum class SmoothKind : std::uint8_t {
  kLogSumExp,  // max = ln(sum exp(k x)) / k: above the largest by at most ln(n) / k, so its minima err on the safe side
  kSoftmax,    // max = sum of x weighted by softmax(k x): below the largest, so its maxima do
};

// The robustness of the first formula of `graph` at `position` of a trace that ends, each window or list one smooth operation; min is
// minus the max of what is negated. `frames` (rows, channels) finite; `gradient` (rows, channels) is overwritten, empty: not wanted.
// As k grows, the value tends to the robustness itself (Pant, Abbas and Mangharam 2017; Leung, Arechiga and Pavone 2020).
// An empty window gives an infinite value without a gradient. Errors: frames that are not finite, k that is not above 0.
// O(rows * nodes * window). Thread: any. Real-time: no.
Result<double> smooth_robustness(const NodeGraph& graph, std::span<const double> frames, std::size_t position, SmoothKind kind, double k,
                                 std::span<double> gradient);

// The same at many positions and nodes of one trace, with one gradient for all of them: what the price of a whole forecast needs.
// Values may be missing (NaN): what reads one has no value. Thread: one at a time. Real-time: no.
class SmoothTrace {
 public:
  // `frames` (rows, channels) must live as long; `times` (rows) are for hour() and weekday(), which have no value where it is empty.
  // `moving` (nodes; empty: all): a condition that is not marked counts as true or false only, worth plus or minus infinity, so that the
  // hours to a change of shift, say, are not weighed against watts.
  SmoothTrace(const NodeGraph& graph, std::span<const double> frames, std::span<const std::int64_t> times, SmoothKind kind, double k,
              std::span<const std::uint8_t> moving = {});
  SmoothTrace(SmoothTrace&&) noexcept;
  ~SmoothTrace();

  // NaN where something that it reads is missing; infinite where a window is empty or only conditions that do not move decide.
  double value(std::uint32_t node, std::size_t position);
  // Adds weight * value(node, position), which is finite, to the sum whose gradient is asked for.
  void add(std::uint32_t node, std::size_t position, double weight);
  // gradient (rows, channels) += factor * d(the sum) / d frames. Once.
  void gradient(double factor, std::span<double> gradient);

 private:
  class Smoother;
  std::unique_ptr<Smoother> smoother_;
};

}  // namespace kizzasi::logic
