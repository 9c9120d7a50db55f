// What comes out of one step.
#pragma once

#include <cstdint>
#include <span>

namespace kizzasi {

enum class StepStatus : std::uint8_t {
  kOk,
  kNotFinite,   // the model gave NaN or infinity: the last good value stands in its place, and this says so
  kInfeasible,  // no value obeys every constraint; `value` is the one that breaks least, or the last one, as the policy says
  kRejected,    // a constraint with else = "reject" did not hold: the session's state is as before the step
  kLate,        // the frame is not newer than the last one and was not taken; the last prediction stands
};

const char* to_string(StepStatus status);

// Views into the session; valid until its next call.
struct Prediction {
  std::int64_t time_ns = 0;  // of the predicted frame
  std::uint64_t step = 0;    // frames seen so far
  StepStatus status = StepStatus::kOk;
  std::span<const double> value;      // (targets) after the constraints
  std::span<const double> raw;        // (targets) before them
  std::span<const double> levels;     // of the quantiles, rising
  std::span<const double> quantiles;  // (levels, targets) after the constraints; they never cross
  std::uint32_t moved = 0;            // how many targets the constraints moved
  double distance = 0;                // how far, Euclidean, in physical units
};

}  // namespace kizzasi
