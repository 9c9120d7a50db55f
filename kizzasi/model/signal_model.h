// The predictor: frames in, parameters of the next steps' distributions out.
//
//   frame -> [values, missing flags] -> patch -> embed -> backbone -> c_t --.
//   the last `recent` frames, the same slot of the last `seasons` ----------+-> short-cut (linear) + decoder (small network) -> parameters
//   known-future channels of the step ahead --------------------------------'
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "kizzasi/model/backbone.h"
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

// Immutable after load. Thread: any.
class SignalModel {
 public:
  static NamedTensors initial_weights(const ModelConfig& config, ChannelCounts counts, Rng rng);
  static Result<SignalModel> load(const ModelConfig& config, ChannelCounts counts, const NamedTensors& weights);

  const ModelConfig& config() const noexcept;
  ChannelCounts counts() const noexcept;
  std::size_t parameter_count() const noexcept;
  // The state of one stream: backbone lanes, the ring of past frames, the number of frames seen.
  const StateLayout& layout() const noexcept;
  std::size_t scratch_floats() const noexcept;
  void reset(std::span<std::byte> state) const noexcept;

  // Takes one normalised frame (inputs); NaN: missing. Real-time: yes.
  void push(std::span<std::byte> state, std::span<const float> frame, float dt, std::span<float> scratch) const noexcept;

  // Parameters for the steps 1..horizon after the last frame: params (horizon, targets, head.parameters()), in window units:
  // normalised = window_value * spread[target] + anchor[target]; anchor and spread (targets).
  // known: (horizon, counts.known) normalised future values, NaN where unknown. Streaming mode: the state is read only, and `count` steps
  // from `first` (0-based) may be asked for alone. Real-time: yes. The cost does not depend on history.
  void predict(std::span<const std::byte> state, std::span<const float> known, std::size_t first, std::size_t count,
               std::span<float> params, std::span<float> anchor, std::span<float> spread, std::span<float> scratch) const noexcept;

  // Training: one batch of windows; see BatchView. Result: (batch * origins, horizon, lane targets, parameters), in window units.
  struct Batch;
  template <typename T>
  autograd::Var<T> forward(autograd::Tape<T>& tape, const WeightVars<T>& weights, const Batch& batch) const;

 private:
  struct Parts;
  explicit SignalModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;  // shared: a Predictor, its sessions and its forks use the very same weights
};

}  // namespace kizzasi
