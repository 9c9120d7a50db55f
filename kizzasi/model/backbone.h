// A backbone: a stack of sequence layers on the residual stream, the same in training (forward), in blocks (run) and frame by frame (step).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/clock.h"
#include "kizzasi/base/error.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/kernels/matrix.h"
#include "kizzasi/model/config.h"
#include "kizzasi/model/layer_weights.h"
#include "kizzasi/model/state_layout.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// One stream inside one call. `dt` is in training periods: 2 where the stream is sampled half as often as the training data.
struct Lane {
  std::byte* state = nullptr;
  float dt = 1;
};

// Weights as leaves of a tape, under their published names.
template <typename T>
class WeightVars {
 public:
  void add(std::string name, autograd::Var<T> var) { vars_.emplace(std::move(name), var); }
  autograd::Var<T> at(const std::string& name) const { return vars_.at(name); }
  bool has(const std::string& name) const { return vars_.count(name) != 0; }
  const std::map<std::string, autograd::Var<T>>& all() const { return vars_; }

 private:
  std::map<std::string, autograd::Var<T>> vars_;
};

// What one layer of a step costs.
struct LayerCost {
  std::string name;               // "layers.0.mixer"
  std::size_t weight_bytes = 0;   // read each frame (of experts: all of them)
  std::size_t state_bytes = 0;    // read and written each frame
  std::size_t multiply_adds = 0;  // of its matrices, each frame
  double seconds = 0;             // of one frame of one lane, the median of the rounds
  double slow_seconds = 0;        // the 99th of 100 rounds
};

// Immutable once it is shared. Thread: any. The state of a stream is one flat block of `layout().bytes()` bytes that the caller owns: copy
// it to fork, keep it to roll back, send it elsewhere.
class Backbone {
 public:
  virtual ~Backbone() = default;

  virtual const BackboneConfig& config() const noexcept = 0;
  virtual const StateLayout& layout() const noexcept = 0;
  // The weights that stand in the precision of their tensors (Tensor::storage); all others are f32.
  virtual const PackedNames& packed() const noexcept = 0;
  // Floats of scratch that step needs for that many lanes, and run for that many rows.
  virtual std::size_t scratch_floats(std::size_t rows) const noexcept = 0;
  // Lanes will come whose dt is this: continuous layers discretise for it once, here, and no longer in every call. Changes no bit; any
  // other dt is served as before. After load, before the backbone is shared. Not real-time.
  virtual void prepare_rate(float dt) = 0;
  // How often layers had to discretise within step and run, for a dt that was not prepared.
  virtual std::size_t rates_computed() const noexcept = 0;
  // The state before the first frame.
  virtual void reset(std::span<std::byte> state) const noexcept = 0;

  // One frame of each lane: in (lanes, d_model) -> out (lanes, d_model), after the final norm. A lane's bits do not depend on its company.
  // Real-time: yes.
  virtual void step(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out,
                    std::span<float> scratch) const noexcept = 0;
  // Many frames of one lane: in (rows, d_model) -> out (rows, d_model). The bits of `step`, row by row, for any split. Real-time: yes.
  virtual void run(const Lane& lane, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float> scratch) const noexcept = 0;

  // Steps one lane `rounds` times (at least 1) and times each layer with its norm and its residual sum; the last norm stands at the end.
  // Not real-time: it takes memory.
  virtual std::vector<LayerCost> profile(const Clock& clock, std::size_t rounds) const = 0;

  // (batch, time, d_model) -> (batch, time, d_model) from reset state, differentiable; may compute in chunks. Equals run to 1e-5 relative.
  // layer_outputs, where given, receives the residual stream after each layer.
  virtual autograd::Var<float> forward(const WeightVars<float>& weights, autograd::Var<float> x,
                                       std::vector<autograd::Var<float>>* layer_outputs = nullptr) const = 0;
  virtual autograd::Var<double> forward(const WeightVars<double>& weights, autograd::Var<double> x,
                                        std::vector<autograd::Var<double>>* layer_outputs = nullptr) const = 0;
};

}  // namespace kizzasi
