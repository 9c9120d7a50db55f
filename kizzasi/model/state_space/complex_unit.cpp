#include "kizzasi/model/state_space/complex_unit.h"

#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/complex_scan.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/rate_cache.h"

namespace kizzasi::complex_unit {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Activation { kFullGlu, kHalfGlu1, kHalfGlu2, kGelu, kNone };

Activation activation_of(const BackboneConfig& c) {
  if (c.ssm_activation == "half_glu1") return Activation::kHalfGlu1;
  if (c.ssm_activation == "half_glu2") return Activation::kHalfGlu2;
  if (c.ssm_activation == "gelu") return Activation::kGelu;
  return c.ssm_activation == "none" ? Activation::kNone : Activation::kFullGlu;
}
bool has_value(Activation a) { return a == Activation::kFullGlu; }
bool has_gate(Activation a) { return a == Activation::kFullGlu || a == Activation::kHalfGlu1 || a == Activation::kHalfGlu2; }

class Unit final : public Layer {
 public:
  Unit(const BackboneConfig& c, const LayerWeights& w, std::unique_ptr<Sampler> sampler, Maps maps, const std::string& name,
       StateLayout& layout)
      : d_(static_cast<std::size_t>(c.d_model)),
        states_(states_of(c)),
        activation_(activation_of(c)),
        sampler_(std::move(sampler)),
        in_(std::move(maps.in)),
        out_(std::move(maps.out)),
        skip_(std::move(maps.skip)),
        a_(2 * states_),
        b_(2 * states_),
        rates_(4 * states_),
        h_at_(layout.add(name + ".h", FieldType::kF32, {2, states_}, true)) {
    if (has_value(activation_)) value_ = w.pack_transposed("out1.kernel"), value_bias_ = w.at("out1.bias").values;
    if (has_gate(activation_)) gate_ = w.pack_transposed("out2.kernel"), gate_bias_ = w.at("out2.bias").values;
    sampler_->sample(1.0, a_, b_);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (2 * states_ + 3 * d_) + rates_.floats(); }
  void prepare_rate(float dt) override {
    if (dt != 1.0f) rates_.prepare(dt, [this](double at, std::span<float> planes) { sample_at(at, planes); });
  }
  std::size_t rates_computed() const noexcept override { return rates_.misses(); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan h = take.rows(in.rows, 2 * states_), y = take.rows(in.rows, d_), g = take.rows(in.rows, d_),
                     gate = take.rows(in.rows, d_);
    const std::span<float> other = take.floats(rates_.floats());
    kernels::linear(in_, in, {}, h);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan rows = lane_rows(h, lanes.size(), i);
      std::span<const float> a = a_, b = b_;
      if (lanes[i].dt != 1.0f) {
        const std::span<const float> planes =
            rates_.at(lanes[i].dt, other, [this](double dt, std::span<float> into) { sample_at(dt, into); });
        a = planes.first(2 * states_), b = planes.last(2 * states_);
      }
      kernels::complex_scan(a, b, rows, state_floats(lanes[i].state, h_at_, 2 * states_), rows);
    }
    kernels::linear(out_, h, {}, y);
    for (std::size_t r = 0; r < in.rows; ++r) {
      const float* u = in.row(r).data();
      float* to = y.row(r).data();
      for (std::size_t e = 0; e < d_; ++e) to[e] += skip_[e] * u[e];
    }
    activate(y, g, gate, out);
  }

 private:
  void sample_at(double dt, std::span<float> planes) const noexcept {
    sampler_->sample(dt, planes.first(2 * states_), planes.last(2 * states_));
  }
  void activate(MatrixSpan y, MatrixSpan g, MatrixSpan gate, MatrixSpan out) const noexcept {
    for (std::size_t r = 0; r < y.rows && activation_ != Activation::kNone; ++r) kernels::gelu_tanh(y.row(r), g.row(r));
    if (has_gate(activation_)) {
      kernels::linear(gate_, g, gate_bias_, gate);
      for (std::size_t r = 0; r < y.rows; ++r) kernels::sigmoid(gate.row(r), gate.row(r));
    }
    if (has_value(activation_)) kernels::linear(value_, g, value_bias_, y);
    const MatrixSpan value = activation_ == Activation::kHalfGlu1 || activation_ == Activation::kGelu ? g : y;
    for (std::size_t r = 0; r < y.rows; ++r) {
      const float *from = value.row(r).data(), *by = gate.row(r).data();
      float* to = out.row(r).data();
      for (std::size_t e = 0; e < d_; ++e) to[e] = has_gate(activation_) ? from[e] * by[e] : from[e];
    }
  }

  std::size_t d_, states_;
  Activation activation_;
  std::unique_ptr<Sampler> sampler_;
  kernels::PackedWeight in_, out_, value_, gate_;
  std::vector<float> skip_, value_bias_, gate_bias_;
  std::vector<float> a_, b_;  // (2, N) at dt = 1
  RateCache rates_;
  std::size_t h_at_;
};

}  // namespace

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, std::unique_ptr<Sampler> sampler, Maps maps,
                            const std::string& name, StateLayout& layout) {
  return std::make_unique<Unit>(c, w, std::move(sampler), std::move(maps), name, layout);
}

void add_shapes(const BackboneConfig& c, std::map<std::string, Shape>& shapes) {
  const auto d = static_cast<std::size_t>(c.d_model);
  const auto dense = [&](const std::string& name) {
    shapes.emplace(name + ".kernel", Shape{d, d});
    shapes.emplace(name + ".bias", Shape{d});
  };
  if (has_value(activation_of(c))) dense("out1");
  if (has_gate(activation_of(c))) dense("out2");
}

bool draw(const std::string& name, Tensor& tensor, Rng& rng) {
  if (name == "out1.bias" || name == "out2.bias") return true;
  if (name != "out1.kernel" && name != "out2.kernel") return false;
  const double spread = 1 / std::sqrt(static_cast<double>(tensor.shape[0]));
  for (float& value : tensor.values) value = static_cast<float>(spread * rng.normal());
  return true;
}

template <typename T>
autograd::Var<T> activation(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> y) {
  using namespace autograd;
  const Activation kind = activation_of(c);
  if (kind == Activation::kNone) return y;
  const Var<T> g = gelu_tanh(y);
  const auto dense = [&](const char* name) {
    return linear(g, permute(w.at(prefix + name + ".kernel"), {1, 0}), w.at(prefix + name + ".bias"));
  };
  switch (kind) {
    case Activation::kFullGlu:
      return mul(dense("out1"), sigmoid(dense("out2")));
    case Activation::kHalfGlu1:
      return mul(g, sigmoid(dense("out2")));
    case Activation::kHalfGlu2:
      return mul(y, sigmoid(dense("out2")));
    default:
      return g;
  }
}

template autograd::Var<float> activation(const BackboneConfig&, const WeightVars<float>&, const std::string&, autograd::Var<float>);
template autograd::Var<double> activation(const BackboneConfig&, const WeightVars<double>&, const std::string&, autograd::Var<double>);

}  // namespace kizzasi::complex_unit
