// One sequence layer: what stands between the norm and the residual sum of a stack.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/kernels/matrix.h"
#include "kizzasi/model/backbone.h"
#include "kizzasi/model/config.h"
#include "kizzasi/model/layer_weights.h"
#include "kizzasi/model/state_layout.h"
#include "kizzasi/tensor/tensor.h"

namespace kizzasi {

// Immutable once it is shared. Thread: any.
class Layer {
 public:
  virtual ~Layer() = default;
  // Lanes will come whose dt is this: what a layer computes of it alone may be kept. Changes no bit. Before the layer is shared.
  virtual void prepare_rate(float) {}
  // How often since then such numbers were computed for a lane's dt that was not prepared.
  virtual std::size_t rates_computed() const noexcept { return 0; }
  // For that many rows in one call of advance.
  virtual std::size_t scratch_floats(std::size_t rows) const noexcept = 0;
  // Takes in.rows / lanes.size() rows of each lane, lane after lane: row r belongs to lane r / (in.rows / lanes.size()). A step has one row
  // a lane, a run one lane. Projections take all rows together, the recurrence takes each lane's rows in time order through its own state,
  // so neither the company of a row nor the split of a stream changes a bit. in, out: (rows, d_model); out may be in. Real-time: yes.
  virtual void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out,
                       std::span<float> scratch) const noexcept = 0;
  // The same for layers that hand rows on to those after them (LayerKind::beside): `beside` (rows, that width) is written by the first.
  virtual void advance_beside(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan, kernels::MatrixSpan out,
                              std::span<float> scratch) const noexcept {
    advance(lanes, in, out, scratch);
  }
};

// (batch, time, d_model) -> the same, from reset state. The names of the layer's weights follow `prefix` ("layers.0.mixer.").
template <typename T>
using LayerForward = autograd::Var<T> (*)(const BackboneConfig&, const WeightVars<T>&, const std::string& prefix, autograd::Var<T> x);
template <typename T>
using LayerForwardBeside = autograd::Var<T> (*)(const BackboneConfig&, const WeightVars<T>&, const std::string& prefix, autograd::Var<T> x,
                                                autograd::Var<T>& beside);

// What a stack must know of a kind of layer. Names are the published ones, below the layer's prefix.
struct LayerKind {
  Result<void> (*check)(const BackboneConfig&, std::string_view where);  // what must fit together
  std::map<std::string, Shape> (*shapes)(const BackboneConfig&);
  // The start of training, as published, of the layer of that number.
  void (*draw)(const BackboneConfig&, std::int64_t layer, const std::string& name, Tensor&, Rng);
  // Adds its fields to the layout under names that begin with `name` ("layer0").
  std::unique_ptr<Layer> (*make)(const BackboneConfig&, const LayerWeights&, const std::string& name, StateLayout&);
  LayerForward<float> forward;
  LayerForward<double> forward64;
  // Of layers that hand rows on to each other (RWKV-7's values of its first layer): how wide, and the forms of forward that take them.
  std::size_t (*beside)(const BackboneConfig&) = nullptr;
  LayerForwardBeside<float> forward_beside = nullptr;
  LayerForwardBeside<double> forward_beside64 = nullptr;
};

// The rows of lane i of a call of advance.
inline kernels::MatrixView lane_rows(kernels::MatrixView m, std::size_t lanes, std::size_t i) noexcept {
  return m.slice(i * (m.rows / lanes), m.rows / lanes);
}
inline kernels::MatrixSpan lane_rows(kernels::MatrixSpan m, std::size_t lanes, std::size_t i) noexcept {
  return m.slice(i * (m.rows / lanes), m.rows / lanes);
}

// A field of a state.
inline std::span<float> state_floats(std::byte* state, std::size_t offset, std::size_t count) noexcept {
  return {reinterpret_cast<float*>(state + offset), count};
}

// Cuts matrices from a scratch buffer, one after the other.
class Scratch {
 public:
  explicit Scratch(std::span<float> floats) noexcept : rest_(floats) {}
  kernels::MatrixSpan rows(std::size_t rows, std::size_t cols) noexcept {
    const kernels::MatrixSpan m(rest_.data(), rows, cols);
    rest_ = rest_.subspan(rows * cols);
    return m;
  }
  std::span<float> floats(std::size_t count) noexcept { return rows(1, count).row(0); }
  std::span<float> rest() const noexcept { return rest_; }

 private:
  std::span<float> rest_;
};

}  // namespace kizzasi
