#include "kizzasi/model/mamba.h"

#include <array>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/kernels/selective_scan.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class MixerNorms { kNone, kRms, kGained };  // of dt, B and C
constexpr const char* kGains[] = {"dt_layernorm.weight", "b_layernorm.weight", "c_layernorm.weight"};

struct Sizes {
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.inner())),
        rank(static_cast<std::size_t>(c.rank())),
        states(static_cast<std::size_t>(c.d_state)),
        taps(static_cast<std::size_t>(c.d_conv)) {}
  std::size_t d, inner, rank, states, taps;
  std::size_t selected() const { return rank + 2 * states; }  // dt, B, C
};

class Mamba final : public Layer {
 public:
  Mamba(MixerNorms norms, const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        norms_(norms),
        mixer_epsilon_(static_cast<float>(c.mixer_norm_eps)),
        in_(w.pack("in_proj.weight")),
        select_(w.pack("x_proj.weight")),
        step_(w.pack("dt_proj.weight")),
        out_(w.pack("out_proj.weight")),
        in_bias_(w.values_or_none("in_proj.bias")),
        step_bias_(w.at("dt_proj.bias").values),
        out_bias_(w.values_or_none("out_proj.bias")),
        conv_(transposed(w.at("conv1d.weight").values, s_.inner, s_.taps)),
        conv_bias_(w.values_or_none("conv1d.bias")),
        a_(minus_exp(transposed(w.at("A_log").values, s_.inner, s_.states))),
        skip_(w.at("D").values),
        conv_at_(layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.inner}, true)),
        ssm_at_(layout.add(name + ".ssm", FieldType::kF32, {s_.states, s_.inner}, true)) {
    for (std::size_t i = 0; i < 3 && norms == MixerNorms::kGained; ++i) gains_[i] = w.at(kGains[i]).values;
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (3 * s_.inner + s_.selected()); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, 2 * s_.inner), selected = take.rows(in.rows, s_.selected());
    const MatrixSpan delta = take.rows(in.rows, s_.inner);
    kernels::linear(in_, in, in_bias_, projected);
    const MatrixSpan x = projected.columns(0, s_.inner), z = projected.columns(s_.inner, s_.inner);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan window = lane_rows(x, lanes.size(), i);
      kernels::conv1d_step(conv_, conv_bias_, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.inner), window, window);
    }
    for (std::size_t r = 0; r < in.rows; ++r) kernels::silu(x.row(r), x.row(r));
    kernels::linear(select_, x, {}, selected);
    const MatrixSpan dt = selected.columns(0, s_.rank), b = selected.columns(s_.rank, s_.states),
                     c = selected.columns(s_.rank + s_.states, s_.states);
    if (norms_ != MixerNorms::kNone) {
      const std::array<MatrixSpan, 3> parts{dt, b, c};
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t r = 0; r < in.rows; ++r) kernels::rms_norm(parts[i].row(r), gains_[i], mixer_epsilon_, parts[i].row(r));
      }
    }
    kernels::linear(step_, dt, step_bias_, delta);
    const kernels::SelectiveScan scan{s_.inner, s_.states, a_, skip_};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan steps = lane_rows(delta, lanes.size(), i), y = lane_rows(x, lanes.size(), i);
      for (std::size_t r = 0; r < steps.rows; ++r) {
        kernels::softplus(steps.row(r), steps.row(r));
        if (lanes[i].dt != 1.0f) {
          for (float& value : steps.row(r)) value *= lanes[i].dt;
        }
      }
      kernels::selective_scan(scan, y, steps, lane_rows(b, lanes.size(), i), lane_rows(c, lanes.size(), i),
                              state_floats(lanes[i].state, ssm_at_, s_.states * s_.inner), y);
    }
    for (std::size_t r = 0; r < in.rows; ++r) kernels::mul_silu(x.row(r), z.row(r), x.row(r));
    kernels::linear(out_, x, out_bias_, out);
  }

 private:
  Sizes s_;
  MixerNorms norms_;
  float mixer_epsilon_;
  kernels::PackedWeight in_, select_, step_, out_;
  std::vector<float> in_bias_, step_bias_, out_bias_;
  std::vector<float> conv_;  // (taps, inner)
  std::vector<float> conv_bias_;
  std::vector<float> a_;  // (states, inner)
  std::vector<float> skip_;
  std::array<std::vector<float>, 3> gains_;  // of the norms of dt, B and C; empty: ones
  std::size_t conv_at_, ssm_at_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }  // any sizes go together

template <MixerNorms kNorms>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> shapes{{"in_proj.weight", {2 * s.inner, s.d}},
                                      {"conv1d.weight", {s.inner, 1, s.taps}},
                                      {"x_proj.weight", {s.selected(), s.inner}},
                                      {"dt_proj.weight", {s.inner, s.rank}},
                                      {"dt_proj.bias", {s.inner}},
                                      {"A_log", {s.inner, s.states}},
                                      {"D", {s.inner}},
                                      {"out_proj.weight", {s.d, s.inner}}};
  if (kNorms == MixerNorms::kGained) shapes[kGains[0]] = {s.rank}, shapes[kGains[1]] = shapes[kGains[2]] = {s.states};
  if (c.conv_bias) shapes["conv1d.bias"] = {s.inner};
  if (c.proj_bias) shapes["in_proj.bias"] = {2 * s.inner}, shapes["out_proj.bias"] = {s.d};
  return shapes;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  if (name == "in_proj.weight") draw_linear(out, s.d, rng);
  if (name == "x_proj.weight") draw_linear(out, s.inner, rng);
  if (name == "dt_proj.weight") draw_linear(out, s.rank, rng);
  if (name == "dt_proj.bias") draw_step_bias(out, c.dt_min, c.dt_max, rng);
  if (name == "out_proj.weight") draw_linear(out, s.inner, rng, 1 / std::sqrt(static_cast<double>(c.n_layers)));
  if (name == "conv1d.weight" || name == "conv1d.bias") draw_linear(out, s.taps, rng);
  if (name == "A_log") {  // S4D-Real: A = -(n + 1)
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(std::log(static_cast<double>(i % s.states + 1)));
  }
  if (name == "D" || name.ends_with("layernorm.weight")) std::fill(out.begin(), out.end(), 1.0f);
}

template <MixerNorms kNorms>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Mamba>(kNorms, c, w, name, layout);
}

template <typename T, MixerNorms kNorms>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const char* name) { return w.has(prefix + name) ? w.at(prefix + name) : Var<T>{}; };
  const auto normed = [&](Var<T> v, std::size_t i) {
    if constexpr (kNorms == MixerNorms::kNone) return v;
    const Var<T> gain = kNorms == MixerNorms::kGained ? weight(kGains[i]) : Var<T>{};
    return rms_norm(v, gain, static_cast<T>(config.mixer_norm_eps));
  };

  const Var<T> projected = linear(u, weight("in_proj.weight"), weight("in_proj.bias"));
  const Var<T> x = silu(conv1d(slice(projected, 2, 0, s.inner), weight("conv1d.weight"), weight("conv1d.bias")));
  const Var<T> z = slice(projected, 2, s.inner, 2 * s.inner);
  const Var<T> selected = linear(x, weight("x_proj.weight"));
  const Var<T> dt = normed(slice(selected, 2, 0, s.rank), 0);
  const Var<T> b = normed(slice(selected, 2, s.rank, s.rank + s.states), 1);
  const Var<T> c = normed(slice(selected, 2, s.rank + s.states, s.selected()), 2);
  const Var<T> delta = softplus(linear(dt, weight("dt_proj.weight"), weight("dt_proj.bias")));
  const Var<T> y = selective_scan(x, delta, scale(exp(weight("A_log")), T{-1}), b, c, weight("D"));
  return linear(mul(y, silu(z)), weight("out_proj.weight"), weight("out_proj.bias"));
}

template <MixerNorms kNorms>
constexpr LayerKind kind() {
  return {check, shapes<kNorms>, draw, make<kNorms>, forward<float, kNorms>, forward<double, kNorms>};
}

}  // namespace

const LayerKind kMambaLayer = kind<MixerNorms::kNone>();
const LayerKind kFalconMambaLayer = kind<MixerNorms::kRms>();
const LayerKind kJambaMambaLayer = kind<MixerNorms::kGained>();

}  // namespace kizzasi
