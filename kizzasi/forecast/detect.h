// Anomaly detection on a stream: every frame is judged by what was predicted for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kizzasi/engine/session.h"
#include "kizzasi/forecast/events.h"

namespace kizzasi {

struct DetectOptions {
  double rate = 0.001;            // wanted share of normal frames with a score at or above the threshold
  double off_rate = 0.01;         // an event goes on while the score is above what this share of normal frames exceeds
  std::size_t merge_gap = 5;      // frames
  std::size_t least_frames = 1;   // frames
  std::size_t most_missing = 24;  // frames in a row that are kept from the model at most; 0: none is
};

// What one frame gave.
struct FrameVerdict {
  double score = 0;  // combined_surprise; NaN: not judged (before a look-back is seen, after a gap, all values missing)
  std::span<const double> channel_scores;  // (targets) -log10 of each tail probability; NaN: not judged
  bool alarm = false;                      // at or above the threshold
  bool in_event = false;
  bool kept_out = false;         // its unusual channels entered the model as missing: their forecast stood in
  const Event* ended = nullptr;  // an event that ended before this frame
};

// Thread: one stream. Real-time: step, yes, but for a frame that begins an event, which forecasts those after it.
class Detector {
 public:
  // The predictor needs quantiles (two levels or more) that do not learn from the stream (PredictorOptions::adapt): those would never see
  // what is kept out, tighten with every false alarm, and raise the next. Thresholds are taken from `normal`: rows that training never saw
  // and that are taken to be free of anomalies; its first warm_up rows (at least a look-back) only warm the model up. The rate holds for
  // the detector as it runs, with its false alarms kept from the model.
  static Result<Detector> make(std::shared_ptr<const Predictor> predictor, const Series& normal, const DetectOptions& options,
                               std::size_t warm_up = 0);

  // Judges the frame, then shows it to the model. While the score is at or above the threshold, channels that are themselves beyond it
  // (the worst one, where none is) enter as missing, so that the model does not learn to expect them: what was forecast for them before
  // stands in, and judges the frames that follow. After most_missing frames in a row they are let in again, since then the signal has
  // changed for good.
  const FrameVerdict& step(const Frame& frame, std::span<const double> known_next = {}) noexcept;
  // The event that is still going on, if any; at the end of the stream.
  const Event* finish() noexcept { return tracker_.finish(); }

  double threshold() const noexcept { return on_; }
  double off_threshold() const noexcept { return off_; }
  std::size_t calibrated_on() const noexcept { return normal_frames_; }  // judged frames
  std::uint64_t kept_out() const noexcept { return kept_out_; }          // frames so far
  void reset() noexcept;

 private:
  Detector(std::shared_ptr<const Predictor> predictor, const DetectOptions& options);
  void judge(const Frame& frame) noexcept;
  void look_ahead() noexcept;
  std::vector<double> scores_of(const Series& normal, std::size_t warm_up);  // of its judged rows, with the present thresholds
  void allow_for_what_is_kept_out(const Series& normal, std::size_t warm_up);

  std::shared_ptr<const Predictor> predictor_;  // shared with the session and whoever loaded it
  DetectOptions options_;
  Session session_;
  const Prediction* expected_ = nullptr;  // of the next frame
  double on_ = 0, off_ = 0;
  std::size_t normal_frames_ = 0, kept_in_row_ = 0;
  std::size_t seen_ = 0;  // frames, at most a look-back
  std::uint64_t kept_out_ = 0;
  Forecast ahead_;  // from before the first of the frames that are being kept out
  EventTracker tracker_;
  FrameVerdict verdict_;
  std::vector<double> least_scale_;                                 // (targets)
  std::vector<double> tails_, channel_scores_, shown_, quantiles_;  // (targets), (targets), (channels), (levels)
  std::vector<std::size_t> targets_;                                // channels of the schema
};

}  // namespace kizzasi
