// What a SignalModel sees at one moment, computed by the same lines in training and in use.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <string_view>

#include "kizzasi/model/signal_shape.h"

namespace kizzasi {

enum class WindowNorm { kNone, kLast, kMeanStd };
WindowNorm window_norm_of(const ModelConfig& config);

// A past is anything with
//   bool seen(back), float value(back, channel), bool missing(back, channel)
// for frames counted back from the newest (0); `value` is filled where the measurement is missing.

// The window's own scale of one channel: normalised = window_value * spread + anchor.
template <typename Past>
void window_scale(const SignalShape& shape, WindowNorm norm, const Past& past, std::size_t channel, float& anchor, float& spread) {
  anchor = 0;
  spread = 1;
  if (norm == WindowNorm::kLast && past.seen(0)) anchor = past.value(0, channel);
  if (norm != WindowNorm::kMeanStd) return;
  double sum = 0, square = 0;
  std::size_t n = 0;
  for (std::size_t back = 0; back < shape.context && past.seen(back); ++back, ++n) sum += past.value(back, channel);
  if (n == 0) return;
  const double mean = sum / static_cast<double>(n);
  for (std::size_t back = 0; back < n; ++back) square += (past.value(back, channel) - mean) * (past.value(back, channel) - mean);
  anchor = static_cast<float>(mean);
  spread = static_cast<float>(std::sqrt(square / static_cast<double>(n) + 1e-5));
}

// One model vector: `patch` frames, oldest first, each its values (filled where missing, 0 where unseen) and then its missing flags.
// Weights of flags that training never saw raised are zero, so to a model that learned without gaps a missing value is the filled one.
// newest: how far back the patch's last frame lies. anchor, spread: (inputs of the lane), zeros and ones in streaming mode.
template <typename Past>
void embed_input(const SignalShape& shape, const Past& past, std::size_t lane, std::size_t newest, std::span<const float> anchor,
                 std::span<const float> spread, std::span<float> out) {
  const std::size_t inputs = shape.inputs();
  std::size_t at = 0;
  for (std::size_t f = shape.patch; f-- > 0;) {
    const std::size_t back = newest + f;
    for (std::size_t i = 0; i < inputs; ++i, ++at) {
      const std::size_t channel = shape.channel(lane, i);
      const bool seen = past.seen(back);
      out[at] = seen ? (past.value(back, channel) - anchor[i]) / spread[i] : 0.0f;
      out[at + inputs] = seen && !past.missing(back, channel) ? 0.0f : 1.0f;
    }
    at += inputs;
  }
}

// The recent past (recent, past channels), newest first, relative to the window's scale; 0 where unseen.
template <typename Past>
void recent_input(const SignalShape& shape, const Past& past, std::size_t lane, std::span<const float> anchor,
                  std::span<const float> spread, std::span<float> out) {
  std::size_t at = 0;
  for (std::size_t back = 0; back < shape.recent; ++back) {
    const bool seen = past.seen(back);
    for (std::size_t i = 0; i < shape.past(); ++i, ++at) {
      out[at] = seen ? (past.value(back, shape.channel(lane, i)) - anchor[i]) / spread[i] : 0.0f;
    }
  }
}

// The same slot of the last seasons for the step `ahead` (from 1): (seasons, past channels); 0 where unseen.
template <typename Past>
void slot_input(const SignalShape& shape, const Past& past, std::size_t lane, std::size_t ahead, std::span<const float> anchor,
                std::span<const float> spread, std::span<float> out) {
  std::size_t at = 0;
  for (std::size_t k = 1; k <= shape.seasons; ++k) {
    const std::size_t back = shape.slot_back(ahead, k);
    const bool seen = past.seen(back);
    for (std::size_t i = 0; i < shape.past(); ++i, ++at) {
      out[at] = seen ? (past.value(back, shape.channel(lane, i)) - anchor[i]) / spread[i] : 0.0f;
    }
  }
}

// What stands in for a missing value in the past: the same slot one season before, else the value before, else 0.
// before(back): the filled value of this channel so many frames earlier (1: the previous), for back <= seen frames.
template <typename Before>
float filled(const SignalShape& shape, std::size_t frames_before, const Before& before) {
  if (shape.season > 0 && frames_before >= shape.season) return before(shape.season);
  return frames_before > 0 ? before(1) : 0.0f;
}

}  // namespace kizzasi
