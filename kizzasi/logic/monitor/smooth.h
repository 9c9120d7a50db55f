// Robustness with smooth minima and maxima, and its gradient with respect to every sample: temporal logic as a loss.
#pragma once

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

}  // namespace kizzasi::logic
