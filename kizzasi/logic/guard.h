// Compiled constraints: the last stage of every prediction, in physical units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
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
  int decimals = -1;  // -1: doubles as they are (or text with round-trip digits); n: text with n decimals
};

// Filled by propose; sized once by prepare, so that no step allocates.
struct GuardReport {
  GuardStatus status = GuardStatus::kClean;
  std::uint32_t moved = 0;           // values that were changed
  double distance = 0;               // Euclidean, in physical units
  std::vector<std::uint8_t> active;  // (constraints) 1: it holds with equality after the move, or it was broken before
  std::vector<std::uint8_t> broken;  // (constraints) 1: it does not hold even now
};

// Immutable; one for all streams. The state of a stream is a flat block of plain bytes: previous values and times.
// `propose` leaves no trace, so samples, beams and rejected steps are free; only `accept` moves the state.
// Thread: any. Real-time: propose and accept yes.
class Guard {
 public:
  virtual ~Guard() = default;

  virtual std::size_t state_bytes() const noexcept = 0;
  virtual std::size_t scratch_doubles() const noexcept = 0;
  virtual std::size_t constraints() const noexcept = 0;
  virtual std::string_view name(std::size_t constraint) const noexcept = 0;
  virtual void prepare(GuardReport& report) const = 0;
  virtual void reset(std::span<std::byte> state) const noexcept = 0;

  // Moves `value` (one number for each channel of the schema; NaN: this channel is not predicted and is free) to the nearest allowed one.
  // A value that is not finite is replaced by the previous emitted one, or by the nearest allowed value to 0, before projection.
  virtual GuardStatus propose(std::span<const std::byte> state, std::int64_t time_ns, std::span<double> value, GuardReport& report,
                              std::span<double> scratch) const noexcept = 0;
  // The feasible interval of each channel now, given the state (and, for coupled channels, the other values in `value`).
  virtual void interval(std::span<const std::byte> state, std::int64_t time_ns, std::size_t channel, double& low,
                        double& high) const noexcept = 0;
  // The frame that was measured, and the one that was emitted for the same moment (either may hold NaN where there is none).
  virtual void accept(std::span<std::byte> state, std::int64_t time_ns, std::span<const double> measured,
                      std::span<const double> emitted) const noexcept = 0;

  virtual Json explain() const = 0;
};

// Compiles against the channels; unknown names, wrong units and what cannot be enforced are errors with the place marked.
Result<std::unique_ptr<Guard>> compile_guard(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid);

}  // namespace kizzasi
