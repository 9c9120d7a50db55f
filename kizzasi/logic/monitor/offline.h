// A whole trace judged at once: what each formula is worth at every sample.
#pragma once

#include <span>
#include <vector>

#include "kizzasi/logic/monitor/lattice.h"
#include "kizzasi/logic/monitor/nodes.h"

namespace kizzasi::logic {

enum class TraceEnd : std::uint8_t {
  kEnds,    // after its last sample there is none: windows are cut
  kGoesOn,  // for ever, with values that are not known yet: robust satisfaction intervals (Deshmukh et al. 2015)
};

// At every sample of the trace. `robustness` is an interval where a value is missing or the trace goes on.
struct Judgement {
  std::vector<Verdict> truth;
  std::vector<Robustness> robustness;
};

// `frames` (rows, channels), `times` (rows; empty: rows are counted by the schema's step). One judgement for each root.
// O(rows) a node. Thread: any. Real-time: no.
std::vector<Judgement> judge(const NodeGraph& graph, std::span<const double> frames, std::span<const std::int64_t> times, TraceEnd end);

// T where the robustness is above zero for certain, F where below, ? else.
Verdict sign_of(const Robustness& robustness);
// 'T', 'F', '?'.
char letter(Verdict verdict);

}  // namespace kizzasi::logic
