// How often a stream is sampled beside the data that its model learned from.
#pragma once

#include <cstddef>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi {

// `faster` frames in every period of the training data, or one frame every `slower` periods; one of the two is 1. What a model says of its
// past in periods is then looked up between the stream's frames; its steps ahead stay periods.
struct Sampling {
  std::size_t faster = 1, slower = 1;

  bool as_trained() const noexcept { return faster == 1 && slower == 1; }
  // Training periods from one frame to the next.
  float period() const noexcept { return static_cast<float>(slower) / static_cast<float>(faster); }
  // Frames that hold so many periods of the past, the newest at 0: as many as reach there, or one beyond.
  std::size_t frames_back(std::size_t periods) const noexcept { return slower == 1 ? periods * faster : (periods + slower - 1) / slower; }
  friend bool operator==(const Sampling&, const Sampling&) = default;
};

inline constexpr std::size_t kMostSampling = 1000;

// frames: in a training period, such as 2 or 0.5. Neither a whole number nor one part of a whole, up to kMostSampling, is an error.
Result<Sampling> sampling_of(double frames, std::string_view where);

}  // namespace kizzasi
