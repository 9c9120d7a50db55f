// Compiled constraints: the last stage of every prediction, in physical units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/json.h"
#include "kizzasi/signal/constraint_text.h"
#include "kizzasi/signal/schema.h"

namespace kizzasi {

enum class GuardStatus : std::uint8_t {
  kClean,       // nothing had to be moved
  kMoved,       // moved to the nearest allowed value
  kWarned,      // a constraint with else = "warn" did not hold; nothing was moved for its sake
  kHeld,        // a constraint with else = "hold" did not hold: the previous emitted value stands
  kRejected,    // a constraint with else = "reject" did not hold
  kInfeasible,  // no value obeys everything; priorities decided
};

const char* to_string(GuardStatus status);

// What a number looks like when it leaves: exactness is promised on this grid.
struct EmittedGrid {
  int decimals = -1;  // -1: doubles as they are (or text with round-trip digits); n: text with n decimals, 0 to 22
};

// Filled by propose and check; sized once by prepare, so that no step allocates.
struct GuardReport {
  GuardStatus status = GuardStatus::kClean;
  std::uint32_t moved = 0;            // values that were changed (rounding to the emitted grid is no move)
  std::uint32_t replaced = 0;         // values that were not finite
  double distance = 0;                // Euclidean, in physical units; from the replacement where a value was not finite
  std::vector<std::uint8_t> active;   // (constraints) 1: it was broken before, or after the move the value stands on its edge
  std::vector<std::uint8_t> broken;   // (constraints) 1: it does not hold even now
  std::vector<std::uint8_t> unknown;  // (constraints) 1: not judged in full, since something that it reads is missing
  std::vector<double> slack;          // (constraints) by how much it is broken now, in the units of its two sides; the worst of its parts
};

// Immutable; one for all streams. The state of a stream is a flat block of plain bytes: previous values and times, what windows and
// derivatives look back to, and the truth of conditions over the past. The block must be aligned to 8 bytes.
// Constraints that need more than clamps and one sum (docs/constraints.md) work in memory that the guard lends to one call at a time,
// without a lock; more calls at once than twice the processors wait for one another. `propose` leaves no trace, so samples, beams and
// rejected steps are free; only `accept` moves the state. Only channels with the role target are moved. Others are given: a constraint
// takes their values as they stand, and is not judged
// (`unknown`) where one is NaN.
// Thread: any. Real-time: propose, check, interval and accept yes.
class Guard {
 public:
  virtual ~Guard() = default;

  virtual std::size_t state_bytes() const noexcept = 0;
  virtual std::size_t scratch_doubles() const noexcept = 0;
  virtual std::size_t constraints() const noexcept = 0;
  virtual std::string_view name(std::size_t constraint) const noexcept = 0;
  virtual void prepare(GuardReport& report) const = 0;
  virtual void reset(std::span<std::byte> state) const noexcept = 0;

  // Moves `value` (one number for each channel of the schema) to the nearest allowed one.
  // A target that is not finite is replaced by the previous emitted value, else the last measured one, else 0, before projection.
  // kRejected leaves `value` as it was.
  virtual GuardStatus propose(std::span<const std::byte> state, std::int64_t time_ns, std::span<double> value, GuardReport& report,
                              std::span<double> scratch) const noexcept = 0;
  // Says which constraints `value` breaks as it stands (kClean, or kInfeasible where one is broken); moves nothing.
  virtual GuardStatus check(std::span<const std::byte> state, std::int64_t time_ns, std::span<const double> value,
                            GuardReport& report) const noexcept = 0;
  // The values that this channel may take now, given the past. For a coupled channel: those for which its partners can still be moved so
  // that all hold; where choices leave gaps, the lowest and the highest. Quantiles are clamped to it. Soft constraints and warnings do not
  // narrow it. Infinite: no limit.
  virtual void interval(std::span<const std::byte> state, std::int64_t time_ns, std::size_t channel, double& low,
                        double& high) const noexcept = 0;
  // The frame that was measured, and the one that was emitted for the same moment (either may hold NaN where there is none).
  // A frame with no measured value at all is a step of a rollout: the emitted values then also stand for the measured ones.
  virtual void accept(std::span<std::byte> state, std::int64_t time_ns, std::span<const double> measured,
                      std::span<const double> emitted) const noexcept = 0;

  // The last value of a channel that was emitted; NaN: none was.
  virtual double emitted(std::span<const std::byte> state, std::size_t channel) const noexcept = 0;

  // How each constraint was read, its class, what it costs and how it is enforced.
  virtual Json explain() const = 0;
};

// Compiles against the channels; unknown names, wrong units and what cannot be enforced are errors with the place marked.
// `scale`: (channels) the size that counts as one unit of distance for each channel, such as its standard deviation; empty: all 1.
Result<std::unique_ptr<Guard>> compile_guard(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                                             std::span<const double> scale = {});

}  // namespace kizzasi
