// One stream: frames in, predictions out, in a fixed amount of memory and time a frame.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kizzasi/base/aligned.h"
#include "kizzasi/base/json.h"
#include "kizzasi/engine/forecast.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/signal/prediction.h"
#include "kizzasi/signal/series.h"

namespace kizzasi {

// The predictions of many frames, row by row what `step` returned.
struct PredictionBlock {
  std::size_t rows = 0, targets = 0;
  std::vector<double> levels;
  std::vector<std::int64_t> time_ns;  // (rows) of the predicted frames
  std::vector<StepStatus> status;     // (rows)
  std::vector<double> value, raw;     // (rows, targets)
  std::vector<double> quantiles;      // (rows, levels, targets)
  std::vector<double> distance;       // (rows)
  std::vector<std::uint32_t> moved;   // (rows)
};

// What happened in a session since its reset.
struct SessionReport {
  std::uint64_t frames = 0, gap_frames = 0, missing_values = 0, unusable_values = 0, late_frames = 0, restarts = 0, not_finite = 0,
                moved_frames = 0, moved_values = 0, warned = 0, held = 0, infeasible = 0, rejected = 0;
  double distance = 0;  // sum, in physical units
  Json to_json() const;
};

// The order of a step: floating-point settings; gaps in time; values that are no numbers; constraints and intervals learn what was
// measured; normalise; model; distribution; calibrated quantiles; constraints last, in physical units, in double.
// All that a stream remembers is one flat block of plain bytes (`state`): copy it to fork, keep it to roll back, send it elsewhere.
// Copying a Session forks it. Thread: one stream.
class Session {
 public:
  // Allocates everything; nothing allocates afterwards but `run` (its block), `forecast` and `snapshot`.
  static Session prepare(std::shared_ptr<const Predictor> predictor);
  Session(const Session& other);
  Session& operator=(const Session& other);
  Session(Session&&) noexcept = default;
  Session& operator=(Session&&) noexcept = default;

  // Takes the frame (channels of the schema, in physical units; NaN: missing) and predicts the next one. Valid until the next call.
  // known_next: the known-future channels of the next frame, in the schema's order; empty or NaN: unknown.
  // A frame that is not newer than the last is not taken: the status says kLate and the last prediction stands.
  // A longer time since the last frame than one step: the frames between are stepped as missing, at most PredictorOptions::max_gap;
  // after a longer gap the stream begins anew. Real-time: yes; its cost does not depend on history.
  const Prediction& step(const Frame& frame, std::span<const double> known_next = {}) noexcept;

  // The rows [begin, end) of a series with the model's channels, one step each; known-future channels are read one row ahead.
  void run(const Series& series, std::size_t begin, std::size_t end, PredictionBlock& out);
  // The same without predicting: what a forecast needs to know of the past, much faster. The model's state gets the very bits of `step`.
  // The intervals' adaptation learns nothing here. Real-time: yes.
  void prefill(const Series& series, std::size_t begin, std::size_t end) noexcept;

  // Several steps ahead of the last frame; changes nothing. Real-time: no.
  Result<void> forecast(const ForecastRequest& request, Forecast& out) const;

  void reset() noexcept;

  // What the predictor's monitors say of the stream of measured frames, one a formula, after the last frame that was taken; a missing
  // value, and each frame of a gap, is unknown to them. Samples are counted from the reset, or where the stream began anew. Valid until the
  // next call.
  std::span<const MonitorVerdict> verdicts() const noexcept { return verdicts_; }

  const Predictor& predictor() const noexcept { return *predictor_; }
  SessionReport report() const noexcept;
  std::uint64_t frames() const noexcept;
  std::int64_t last_time_ns() const noexcept;

  std::span<const std::byte> state() const noexcept { return state_; }
  std::vector<std::byte> snapshot() const { return {state_.begin(), state_.end()}; }
  // A block that a session of an equal predictor wrote; any other is refused and nothing changes. Verdicts come with the next frame.
  Result<void> restore(std::span<const std::byte> state);

 private:
  explicit Session(std::shared_ptr<const Predictor> predictor);

  std::span<std::byte> model_state() noexcept;
  std::span<std::byte> guard_state() noexcept;
  std::span<std::byte> monitor_state() noexcept;
  std::span<std::uint64_t> counts() noexcept;
  std::span<double> numbers(std::size_t offset, std::size_t count) noexcept;
  void show_buffers() noexcept;

  std::int64_t grid_ns() const noexcept;
  std::int64_t frames_since_last(std::int64_t time_ns) const noexcept;
  bool arrive(std::int64_t& time_ns) noexcept;
  void enter(std::int64_t time_ns, std::span<const double> values) noexcept;
  void watch(std::int64_t time_ns) noexcept;
  void enter_missing(std::int64_t time_ns) noexcept;
  void learn() noexcept;
  void push() noexcept;
  void predict(std::int64_t time_ns, std::span<const double> known_next) noexcept;
  bool decode(std::span<const double> known_next) noexcept;
  void constrain(std::int64_t time_ns, std::span<const double> known_next, bool finite) noexcept;

  // Shared: sessions of one predictor live independently of each other and of whoever loaded it.
  std::shared_ptr<const Predictor> predictor_;
  AlignedVector<std::byte> state_, before_;  // before_: the state before the step, where a constraint may reject
  Prediction prediction_;
  std::vector<double> value_, raw_, quantiles_;  // (targets), (targets), (levels, targets)
  // Scratch of a step; nothing in it outlives the step.
  std::vector<double> measured_, emitted_, member_, guard_scratch_, monitor_scratch_;
  AlignedVector<float> rows_, known_, params_, anchor_, spread_, scratch_;
  std::size_t waiting_ = 0;  // rows in rows_ that were entered and not yet pushed
  GuardReport guard_report_;
  std::vector<MonitorVerdict> verdicts_, verdicts_before_;  // (monitors)
};

}  // namespace kizzasi
