// The predictor: frames in, parameters of the next steps' distributions out.
//
//   frame -> [values, missing flags] -> patch -> embed -> backbone -> c --.
//   the same slot of the last seasons, known-future channels -------------+-> decoder (small network, one pass a step ahead) -.
//   the recent past, the same slots, known-future channels ---> short-cut (linear) -------------------------------------------+->
//   parameters
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/model/backbone.h"
#include "kizzasi/model/config.h"
#include "kizzasi/model/signal_shape.h"

namespace kizzasi {

// One batch of training windows. n = windows * origins; every window has its origins at the same rows.
struct SignalBatch {
  std::size_t windows = 0, origins = 0;
  std::vector<float> inputs;        // (windows, rows, vector)
  std::vector<std::size_t> rows;    // (origins) rows of a window after which a forecast is made
  std::vector<float> recent;        // (n, recent * past)
  std::vector<float> slots;         // (n, horizon, seasons * past)
  std::vector<float> target_slots;  // (n, horizon, targets, seasons): the same numbers as the short-cut wants them
  std::vector<float> known;         // (n, horizon, known)
};

// Immutable after load; copies share their weights. Thread: any.
class SignalModel {
 public:
  static NamedTensors initial_weights(const ModelConfig& config, ChannelCounts counts, Rng rng);
  // Checks the configuration, names and shapes; a missing, surplus or misshapen tensor is an error that names it.
  static Result<SignalModel> load(const ModelConfig& config, ChannelCounts counts, const NamedTensors& weights);

  const ModelConfig& config() const noexcept;
  ChannelCounts counts() const noexcept;
  const SignalShape& shape() const noexcept;
  std::size_t parameter_count() const noexcept;
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

  // Parameters for the steps first + 1 .. first + count after the newest frame (first + count <= horizon), in window units:
  //   normalised = window_value * spread[target] + anchor[target]
  // known: (horizon, counts.known) normalised future values; NaN: unknown, taken as 0. params: (count, targets, head.parameters()).
  // anchor, spread: (targets). The state is read only. The cost does not depend on history. Real-time: yes.
  void predict(std::span<const std::byte> state, std::span<const float> known, std::size_t first, std::size_t count,
               std::span<float> params, std::span<float> anchor, std::span<float> spread, std::span<float> scratch) const noexcept;

  // Training: (windows * origins, horizon, lane targets, parameters) in window units.
  template <typename T>
  autograd::Var<T> forward(autograd::Tape<T>& tape, const WeightVars<T>& weights, const SignalBatch& batch) const;

 private:
  struct Parts;
  explicit SignalModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;  // shared: a predictor, its sessions and its forks use the very same weights
};

}  // namespace kizzasi
