// A whole course of frames moved to the nearest one that obeys, all its steps together: what is spent early is not missing late.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/logic/guard.h"

namespace kizzasi {

struct TrajectoryReport {
  GuardStatus status = GuardStatus::kClean;  // kInfeasible: no course obeys everything; the guard went step by step
  std::size_t replaced = 0;                  // values that were not finite
  std::size_t moved = 0;                     // values
  double distance = 0;                       // Euclidean over all steps, in physical units
  double after = 0;                          // the furthest that the guard had to move a value of the common solution
  std::vector<GuardStatus> steps;            // (rows - past) of the guard's last pass, kMoved where the course was moved
};

// The Guard decides frame by frame: the nearest frame now, whatever that costs later. This one solves the common problem, minimise the sum
// over steps and targets of ((x - y) / scale)^2 under all conditions that are affine and know no choice: bounds, rates, prev, sums over
// channels, mean, trend and integral over windows; soft ones at weight * slack^2. Then the guard goes over the answer, step by step, so
// that each frame obeys as it is written, and enforces what is left to it (names in `step_by_step`): choices, curves, temporal operators,
// reject and hold. Immutable. Thread: any.
class Trajectory {
 public:
  // Errors: those of compile_guard.
  static Result<Trajectory> compile(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                                    std::span<const double> scale = {});
  Trajectory(Trajectory&&) noexcept;
  Trajectory& operator=(Trajectory&&) noexcept;
  ~Trajectory();

  // frames: (rows, channels), read and overwritten; times: (rows), empty: the schema's step from 0. The first `past` rows have happened and
  // stay. A course that obeys is returned bit for bit (rounding to the grid apart). A target that is missing wishes to stay where it was.
  // Errors: sizes, times that do not rise, a course whose conditions span too much for one system. Real-time: no.
  Result<TrajectoryReport> project(std::span<double> frames, std::span<const std::int64_t> times, std::size_t past = 0) const;

  // Only the common problem, without the guard's pass: for who has a guard with a past of its own. `sent`: (channels) what was emitted for
  // the last row of the past, where that is not what was measured. False: no course obeys, frames stay.
  Result<bool> solve(std::span<double> frames, std::span<const std::int64_t> times, std::size_t past,
                     std::span<const double> sent = {}) const;

  const Guard& guard() const;
  std::span<const std::string> together() const;      // constraints solved for all steps at once
  std::span<const std::string> step_by_step() const;  // and those that only the guard sees to

 private:
  struct Parts;
  explicit Trajectory(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace kizzasi
