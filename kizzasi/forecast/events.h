// From scores to events: a threshold that keeps a promise about false alarms, hysteresis, and joining of what belongs together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"

namespace kizzasi {

// The score that a share `rate` of normal frames exceeds, from scores of normal frames (NaN: left out). By rank as in conformal prediction
// where there are enough of them; beyond, the excesses over their 90 % quantile are taken as generalised Pareto, rather too far out than
// not far enough. An error where fewer than 50 are known or rate is not inside (0, 0.5).
Result<double> alarm_threshold(std::span<const double> normal_scores, double rate);

struct EventOptions {
  double on = 3;                 // an event begins with a score of at least this
  double off = 2;                // and goes on while scores are at least this (hysteresis); <= on
  std::size_t merge_gap = 5;     // pauses of at most so many quiet frames are bridged
  std::size_t least_frames = 1;  // shorter events are dropped
};

struct Event {
  std::uint64_t first = 0, last = 0;  // frames, inclusive, counted from 0
  std::uint64_t peak = 0;             // frame of the greatest score
  double peak_score = 0;
  std::vector<double> channel_scores;  // (channels) greatest of each while it lasted
};

// Frame by frame. Thread: one stream. Real-time: push, yes.
class EventTracker {
 public:
  EventTracker(const EventOptions& options, std::size_t channels);

  // Takes the score of the next frame (NaN: not judged; it changes nothing but counts as a frame) and of its channels.
  // Returns an event that has just ended, else null; valid until the next call.
  const Event* push(double score, std::span<const double> channel_scores) noexcept;
  // At the end of the stream: the event that is still going on, if any.
  const Event* finish() noexcept;

  bool active() const noexcept { return active_; }
  std::uint64_t frames() const noexcept { return frames_; }
  // The event that is going on; only where active().
  const Event& current() const noexcept { return current_; }

 private:
  const Event* close() noexcept;

  EventOptions options_;
  std::uint64_t frames_ = 0;
  bool active_ = false;
  Event current_, closed_;
};

// How well flags found labelled events; flags and labels are 0 or 1 a frame. Undefined shares are NaN (0 where a share of nothing found is
// meant, as precision without any flag).
struct EventScores {
  double precision = 0, recall = 0, f1 = 0;          // frame by frame
  double event_f1 = 0;                               // harmonic mean of the share of events found and the precision of frames
  std::size_t events = 0, events_found = 0;          // labelled runs; those with at least one flag inside
  std::vector<std::size_t> delays;                   // of each found event: frames from its start to the first flag
  std::size_t flagged_events = 0, false_events = 0;  // flagged runs; those that touch no label
  double false_alarm_rate = 0;                       // share of normal frames that are flagged
  double missed_rate = 0;                            // share of labelled frames that are not
};
EventScores score_events(std::span<const std::uint8_t> labels, std::span<const std::uint8_t> flags);

}  // namespace kizzasi
