// The predictor: frames in, parameters of the next steps' distributions out.
//
//   the recent past, the same slots, known-future channels ---> short-cut (linear) ---> location of each step ahead
//   frame -> [values, missing flags] -> patch -> embed -> backbone -> c --.
//   the same slot of the last seasons, known-future channels -------------+-> decoder (small network, one pass a step ahead) -> parameters
//
// The short-cut is solved in closed form and then stands still; backbone and decoder learn what it leaves, each step ahead in units of the
// short-cut's own error there, so that near and far steps weigh the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/model/backbone.h"
#include "kizzasi/model/config.h"
#include "kizzasi/model/sampling.h"
#include "kizzasi/model/signal_shape.h"

namespace kizzasi {

// One batch of training windows. n = windows * origins; every window has its origins at the same rows.
struct SignalBatch {
  std::size_t windows = 0, origins = 0;
  std::vector<float> inputs;      // (windows, rows, vector)
  std::vector<std::size_t> rows;  // (origins) rows of a window after which a forecast is made
  std::vector<float> recent;      // (n, recent * past)
  std::vector<float> ahead;       // (n, horizon, slots + known): the same slot of the last seasons, then the known-future channels
};

// Immutable after load; copies share their weights. Thread: any.
class SignalModel {
 public:
  static NamedTensors initial_weights(const ModelConfig& config, ChannelCounts counts, Rng rng);
  // Checks the configuration, names and shapes; a missing, surplus or misshapen tensor is an error that names it.
  // sampling: of the streams. Another than that of the training data is for models whose recurrence runs in time, without known-future
  // channels; any other is refused. Windows are read in periods of the training data.
  static Result<SignalModel> load(const ModelConfig& config, ChannelCounts counts, const NamedTensors& weights, Sampling sampling = {});

  const ModelConfig& config() const noexcept;
  ChannelCounts counts() const noexcept;
  const SignalShape& shape() const noexcept;
  const Sampling& sampling() const noexcept;
  std::size_t parameter_count() const noexcept;
  // The weights that may stand in fewer bits. The short-cut is none of them: it is a closed form, exact to the last digit, and small.
  const PackedNames& packed() const noexcept;
  // What each layer of the backbone costs, and as the last entry ("around it") the rest of a frame with its prediction of one step:
  // embedding, short-cut, decoder. Not real-time.
  std::vector<LayerCost> profile(const Clock& clock, std::size_t rounds) const;
  // Bytes of weights that one prediction reads.
  std::size_t weight_bytes() const noexcept;

  // The state of one stream: backbone lanes (streaming mode), the ring of past frames, the number of frames seen.
  const StateLayout& layout() const noexcept;
  std::size_t scratch_floats() const noexcept;
  void reset(std::span<std::byte> state) const noexcept;

  // Takes one normalised frame (inputs); NaN: missing. dt: time since the last frame in training periods. Real-time: yes.
  void push(std::span<std::byte> state, std::span<const float> frame, float dt, std::span<float> scratch) const noexcept;
  // The same for many frames (rows, inputs): the bits of push, row by row. Real-time: yes.
  void push_rows(std::span<std::byte> state, kernels::MatrixView frames, float dt, std::span<float> scratch) const noexcept;

  // Parameters for the steps first + 1 .. first + count after the newest frame (first + count <= horizon):
  //   normalised = value * spread + anchor
  // known: (horizon, counts.known) normalised future values; NaN: unknown, taken as 0. params: (count, targets, head.parameters());
  // anchor, spread: (count, targets). The state is read only. The cost does not depend on history. Real-time: yes.
  void predict(std::span<const std::byte> state, std::span<const float> known, std::size_t first, std::size_t count,
               std::span<float> params, std::span<float> anchor, std::span<float> spread, std::span<float> scratch) const noexcept;

  // Training: the location and scale, in window units, that parameters are relative to: location (windows * origins, horizon, lane
  // targets), scale (horizon, lane targets).
  void locate(const SignalBatch& batch, std::span<float> location, std::span<float> scale) const;
  // Training: (windows * origins, horizon, lane targets, parameters), relative to location and scale.
  template <typename T>
  autograd::Var<T> forward(autograd::Tape<T>& tape, const WeightVars<T>& weights, const SignalBatch& batch) const;

 private:
  struct Parts;
  explicit SignalModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;  // shared: a predictor, its sessions and its forks use the very same weights
};

}  // namespace kizzasi
