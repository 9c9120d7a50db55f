#include "kizzasi/model/gated/lstm.h"

#include <algorithm>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/recurrent.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr std::size_t kLstmGates = 4, kGruGates = 3;

std::size_t width_of(const BackboneConfig& c) { return static_cast<std::size_t>(c.d_model); }

// What both have: projections of all rows at once, then one row of every lane after the other through the recurrent matrix, so that its
// weights are read once a row, whatever the number of lanes.
template <std::size_t kGates>
class Recurrent : public Layer {
 public:
  Recurrent(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : d_(width_of(c)),
        in_(w.pack("weight_ih_l0")),
        recurrent_(w.pack("weight_hh_l0")),
        in_bias_(w.values_or_none("bias_ih_l0")),
        recurrent_bias_(w.values_or_none("bias_hh_l0")),
        h_at_(layout.add(name + ".h", FieldType::kF32, {d_}, true)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * d_ * (2 * kGates + 1); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const std::size_t n = lanes.size(), rows = in.rows / n;
    const MatrixSpan x = take.rows(in.rows, kGates * d_), inside = take.rows(n, kGates * d_), before = take.rows(n, d_);
    kernels::linear(in_, in, in_bias_, x);
    for (std::size_t t = 0; t < rows; ++t) {
      for (std::size_t i = 0; i < n; ++i) std::copy_n(state_floats(lanes[i].state, h_at_, d_).data(), d_, before.row(i).data());
      kernels::linear(recurrent_, before, recurrent_bias_, inside);
      for (std::size_t i = 0; i < n; ++i) {
        const std::span<float> h = state_floats(lanes[i].state, h_at_, d_);
        cell(lanes[i], x.row(i * rows + t), inside.row(i), h);
        std::copy_n(h.data(), d_, out.row(i * rows + t).data());
      }
    }
  }

 protected:
  // One unit time: x (W x + b) and inside (U h + c) -> h.
  virtual void cell(const Lane& lane, std::span<float> x, std::span<const float> inside, std::span<float> h) const noexcept = 0;
  std::size_t d_;

 private:
  kernels::PackedWeight in_, recurrent_;
  std::vector<float> in_bias_, recurrent_bias_;
  std::size_t h_at_;
};

class Lstm final : public Recurrent<kLstmGates> {
 public:
  Lstm(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : Recurrent(c, w, name, layout), c_at_(layout.add(name + ".c", FieldType::kF32, {d_}, true)) {}

 private:
  void cell(const Lane& lane, std::span<float> x, std::span<const float> inside, std::span<float> h) const noexcept override {
    const std::span<float> memory = state_floats(lane.state, c_at_, d_);
    for (std::size_t j = 0; j < x.size(); ++j) x[j] += inside[j];
    kernels::sigmoid(x.first(2 * d_), x.first(2 * d_));
    kernels::tanh(x.subspan(2 * d_, d_), x.subspan(2 * d_, d_));
    kernels::sigmoid(x.last(d_), x.last(d_));
    for (std::size_t j = 0; j < d_; ++j) memory[j] = x[d_ + j] * memory[j] + x[j] * x[2 * d_ + j];
    kernels::tanh(memory, h);
    for (std::size_t j = 0; j < d_; ++j) h[j] *= x[3 * d_ + j];
  }
  std::size_t c_at_;
};

class Gru final : public Recurrent<kGruGates> {
 public:
  using Recurrent::Recurrent;

 private:
  void cell(const Lane&, std::span<float> x, std::span<const float> inside, std::span<float> h) const noexcept override {
    const std::span<float> both = x.first(2 * d_), n = x.last(d_);
    for (std::size_t j = 0; j < 2 * d_; ++j) both[j] += inside[j];
    kernels::sigmoid(both, both);
    for (std::size_t j = 0; j < d_; ++j) n[j] += both[j] * inside[2 * d_ + j];
    kernels::tanh(n, n);
    for (std::size_t j = 0; j < d_; ++j) h[j] = (1 - both[d_ + j]) * n[j] + both[d_ + j] * h[j];
  }
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

template <std::size_t kGates>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const std::size_t d = width_of(c);
  std::map<std::string, Shape> all{{"weight_ih_l0", {kGates * d, d}}, {"weight_hh_l0", {kGates * d, d}}};
  if (c.proj_bias) all.insert({{"bias_ih_l0", {kGates * d}}, {"bias_hh_l0", {kGates * d}}});
  return all;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
  draw_linear(tensor.values, width_of(c), rng);
}

template <typename Kind>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Kind>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> or_none(const WeightVars<T>& w, const std::string& name) {
  return w.has(name) ? w.at(name) : autograd::Var<T>{};
}

template <typename T>
autograd::Var<T> lstm_forward(const BackboneConfig&, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  Var<T> bias = or_none(w, prefix + "bias_ih_l0");
  if (bias.tape != nullptr) bias = add(bias, w.at(prefix + "bias_hh_l0"));
  return lstm(linear(x, w.at(prefix + "weight_ih_l0"), bias), w.at(prefix + "weight_hh_l0"));
}

template <typename T>
autograd::Var<T> gru_forward(const BackboneConfig&, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Var<T> projected = linear(x, w.at(prefix + "weight_ih_l0"), or_none(w, prefix + "bias_ih_l0"));
  return gru(projected, w.at(prefix + "weight_hh_l0"), or_none(w, prefix + "bias_hh_l0"));
}

}  // namespace

const LayerKind kLstmLayer{check, shapes<kLstmGates>, draw, make<Lstm>, lstm_forward<float>, lstm_forward<double>};
const LayerKind kGruLayer{check, shapes<kGruGates>, draw, make<Gru>, gru_forward<float>, gru_forward<double>};

}  // namespace kizzasi
