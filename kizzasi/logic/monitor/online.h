// Monitors: many formulas over one stream, each sample judged in the same time and memory however long the stream runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/logic/monitor/lattice.h"
#include "kizzasi/logic/monitor/nodes.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi {

enum class MonitorKind : std::uint8_t {
  kVerdict,     // truth alone: bytes in place of doubles
  kRobustness,  // truth and robustness
};

// What one formula is worth at one sample.
struct MonitorVerdict {
  std::int64_t position = -1;  // of the sample that is judged, counted from the last reset; -1: none yet
  logic::Verdict truth = 0;    // Kleene's, exactly as the comparisons read
  bool final = false;          // nothing that comes can change it
  double low = 0, high = 0;    // of the robustness; kRobustness only
};

enum class MonitorStatus : std::uint8_t {
  kTaken,
  kGap,         // samples were missing since the last one; they are unknown
  kUneven,      // the time is off the grid of the schema's step by more than a tenth of it; taken as the nearest sample
  kOutOfOrder,  // the time is not after the last one: nothing was taken
};

// Immutable; one for all streams. A stream's state is a flat block of plain bytes, so it is copied, saved and restored with a session.
// A formula of bounded horizon h is judged for good h samples late: after sample n for position n - h. One that has no bound (always,
// until, ... without an interval) is judged at position 0, the start of the stream: from what has come so far, with the future unknown.
// A missing value (NaN) leaves its comparisons unknown. Windows at the start of the stream hold what there is.
// Memory is set by the formulas alone. Work a sample is constant on average; an operator with a window of w samples works w operations at
// once at every w-th sample. Thread: any number of streams. Real-time: reset and step yes.
class Monitor {
 public:
  // Formulas as text; names are those of the schema, times a multiple of its step. What several formulas share is judged once.
  // Errors: see parse_formula and GraphBuilder; more than kMostObligations endless operators in one formula.
  static Result<std::unique_ptr<Monitor>> create(const Schema& schema, std::span<const ConstraintText> formulas,
                                                 MonitorKind kind = MonitorKind::kRobustness);
  virtual ~Monitor() = default;

  virtual std::size_t formulas() const noexcept = 0;
  virtual std::string_view name(std::size_t formula) const noexcept = 0;
  // Samples of the future that a formula waits for; logic::kEndless where it has no bound.
  virtual std::int64_t horizon(std::size_t formula) const noexcept = 0;
  virtual std::size_t state_bytes() const noexcept = 0;  // must lie on a multiple of 16
  virtual std::size_t scratch_doubles() const noexcept = 0;
  virtual void reset(std::span<std::byte> state) const noexcept = 0;

  // `frame` (channels), NaN: missing. `verdicts` (formulas).
  virtual MonitorStatus step(std::span<std::byte> state, std::int64_t time_ns, std::span<const double> frame,
                             std::span<MonitorVerdict> verdicts, std::span<double> scratch) const noexcept = 0;
};

}  // namespace kizzasi
