// The sizes inside a SignalModel, worked out once from its configuration.
#pragma once

#include <cstddef>

#include "kizzasi/model/config.h"

namespace kizzasi {

// Which of the schema's channels are which; the model itself knows numbers only.
struct ChannelCounts {
  std::size_t targets = 1;   // first in every frame
  std::size_t observed = 0;  // then these
  std::size_t known = 0;     // then the known-future ones
  std::size_t inputs() const noexcept { return targets + observed + known; }
  friend bool operator==(const ChannelCounts&, const ChannelCounts&) = default;
};

// A lane is one pass through the shared weights: the whole frame (mixed) or one target channel with the observed and known ones
// (independent).
struct SignalShape {
  SignalShape() = default;
  SignalShape(const ModelConfig& config, ChannelCounts counts);

  std::size_t lanes = 1;
  std::size_t targets = 1;   // of a lane
  std::size_t observed = 0;  // shared by all lanes
  std::size_t known = 0;     // shared by all lanes
  std::size_t horizon = 1;
  std::size_t recent = 0;  // frames that the short-cut sees
  std::size_t season = 0, seasons = 0;
  std::size_t context = 1, patch = 1;
  std::size_t parameters = 1;  // of one predicted value
  std::size_t decoder = 0;     // width
  std::size_t d_model = 0;
  bool has_shortcut = true, has_backbone = true, windowed = false, intercept = true;

  std::size_t past() const noexcept { return targets + observed; }      // channels of a lane that are known up to now only
  std::size_t inputs() const noexcept { return past() + known; }        // of a lane
  std::size_t rows() const noexcept { return context / patch; }         // model vectors a window
  std::size_t vector() const noexcept { return patch * 2 * inputs(); }  // numbers that make one model vector: values and missing flags
  std::size_t slots() const noexcept { return seasons * past(); }       // slot features of one step ahead
  std::size_t outputs() const noexcept { return targets * parameters; }
  // How many frames back the same slot of the k-th last season lies (k from 1) for the step `ahead` (from 1).
  std::size_t slot_back(std::size_t ahead, std::size_t k) const noexcept { return season * ((ahead - 1) / season + k) - ahead; }
  // Frames that a forecast looks at: the shortest history with which it equals one with any longer history (windowed mode), and the ring's
  // size.
  std::size_t lookback() const noexcept;
  // The channel of the frame at position i of a lane's inputs.
  std::size_t channel(std::size_t lane, std::size_t i) const noexcept {
    if (lanes == 1) return i;
    return i == 0 ? lane : lanes + i - 1;
  }
};

}  // namespace kizzasi
