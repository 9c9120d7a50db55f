// Where everything stands inside a session's state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kizzasi/model/state_layout.h"

namespace kizzasi {

// Time from row to row of a schema without a step: rows count as seconds, as in the constraint language.
inline constexpr std::int64_t kRowOfNoTime = 1'000'000'000;

// What a session counts, each a u64 of the state's field "counts", in this order.
enum SessionCount : std::size_t {
  kCountFrames,          // frames taken, those of gaps among them
  kCountGapFrames,       // frames missing in time that were stepped as missing
  kCountMissingValues,   // values of taken frames that were NaN
  kCountUnusableValues,  // values that were infinite or beyond a million scales from their channel's centre, entered as missing
  kCountLateFrames,      // frames not newer than the last one; they were not taken
  kCountRestarts,        // times the stream began anew: after a long gap, or since the model's numbers were not finite
  kCountNotFinite,       // predictions whose model gave NaN or infinity
  kCountMovedFrames,     // predictions that the constraints moved
  kCountMovedValues,     // and their values
  kCountWarned,          // predictions that break a constraint which only warns
  kCountHeld,            // predictions replaced by the previous one, as a constraint says
  kCountInfeasible,      // predictions for which no value obeys every constraint
  kCountRejected,        // predictions that a constraint rejected
  kSessionCounts
};

// Byte offsets of the fields of one session.
struct SessionLayout {
  StateLayout fields;
  std::size_t model_bytes = 0;  // the model's own state stands first, its fields named "model.<field>"
  std::size_t guard_at = 0, guard_bytes = 0;
  std::size_t monitor_at = 0, monitor_bytes = 0;  // field "monitor"; absent where no formula watches
  std::size_t identity_at = 0;                    // u64: Predictor::identity of the session that wrote the state
  std::size_t clock_at = 0;   // u64 (3): 1 where a frame was seen; its time; its place on the grid of steps (nanoseconds, two's complement)
  std::size_t counts_at = 0;  // u64 (kSessionCounts)
  std::size_t distance_at = 0;    // f64 (1): sum of the distances that constraints moved predictions
  std::size_t measured_at = 0;    // f64 (channels): the last value that was present, NaN before one was
  std::size_t emitted_at = 0;     // f64 (targets): the prediction for the next frame, NaN where none was made
  std::size_t expected_at = 0;    // f64 (targets, levels): its quantiles before the constraints
  std::size_t adaptation_at = 0;  // f64 (targets, levels): what adaptive conformal inference adds to each level

  SessionLayout() = default;
  SessionLayout(const StateLayout& model, std::size_t guard_state_bytes, std::size_t monitor_state_bytes, std::size_t channels,
                std::size_t targets, std::size_t levels);
};

template <typename T>
std::span<T> state_field(std::span<std::byte> state, std::size_t offset, std::size_t count) noexcept {
  return {reinterpret_cast<T*>(state.data() + offset), count};
}
template <typename T>
std::span<const T> state_field(std::span<const std::byte> state, std::size_t offset, std::size_t count) noexcept {
  return {reinterpret_cast<const T*>(state.data() + offset), count};
}

}  // namespace kizzasi
