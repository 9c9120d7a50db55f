// Steps ahead of a session, taken on copies of its state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/base/aligned.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/engine/forecast.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/logic/trajectory.h"

namespace kizzasi {

// One way into the future: the model's and the constraints' state along it.
struct Path {
  AlignedVector<std::byte> model, guard;
  std::vector<double> last;  // the values of the step before, of a stream that has frames between the steps
};

// Reads the session's state, never writes it. Thread: one at a time. Real-time: no.
class Rollout {
 public:
  // The request and the state outlive it.
  Rollout(const Predictor& predictor, std::span<const std::byte> state, const ForecastRequest& request);

  // What a request may not ask for; call before anything else.
  Result<void> check() const;
  // Medians along one path, fed back block by block; within the first block the quantiles too.
  Result<void> points(Forecast& out);
  // Sample paths; `values`: (count, horizon, targets). Of the first `counted` it is counted what the constraints moved.
  Result<void> paths(std::size_t count, std::size_t counted, double temperature, Forecast& out, std::vector<double>& values);
  // Quantiles from first block's distribution (already in `out`) and, beyond it, from sample paths; then into what each channel can reach.
  void quantiles_from_paths(std::span<const double> values, std::size_t count, Forecast& out) const;
  void reach(Forecast& out);

  // True where the horizon is longer than one block of the model.
  bool rolled() const noexcept { return request_.horizon > predictor_.horizon(); }

 private:
  Path start() const;
  std::int64_t time_of(std::size_t step) const noexcept;
  void predict_block(const Path& path, std::size_t first, std::size_t count);
  std::span<const double> member(std::size_t step_in_block, std::size_t target) const noexcept;
  double given(std::size_t step, std::size_t channel_in_order) const noexcept;
  void feed(Path& path, std::size_t step, std::span<const double> values);
  void feed_frame(Path& path, std::size_t step, std::span<const double> values);
  Result<void> plan_block(const Trajectory& trajectory, const Path& path, std::size_t first, std::size_t count,
                          std::span<const double> before, Forecast& out);
  GuardStatus constrain(Path& path, std::size_t step, std::span<double> values);
  double quantile(std::size_t step, std::size_t step_in_block, std::size_t target, double level, double median) const;
  bool calibrated_by_block() const noexcept;
  Error rejection(std::size_t step) const;
  GuardStatus draw_path(std::size_t index, std::size_t attempt, double temperature, std::span<double> values, Forecast& out, bool counted);

  const Predictor& predictor_;
  std::span<const std::byte> state_;
  const ForecastRequest& request_;
  std::span<const double> levels_;
  std::vector<double> members_, frame_, guard_scratch_, no_measurement_;
  AlignedVector<float> known_, params_, anchor_, spread_, row_, scratch_;
  GuardReport report_;
};

}  // namespace kizzasi
