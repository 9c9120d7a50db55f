#include "kizzasi/model/mamba2.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/kernels/ssd.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct Sizes {
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.inner())),
        head_dim(static_cast<std::size_t>(c.head_dim)),
        heads(inner / head_dim),
        groups(static_cast<std::size_t>(c.n_groups)),
        states(static_cast<std::size_t>(c.d_state)),
        taps(static_cast<std::size_t>(c.d_conv)) {}
  std::size_t d, inner, head_dim, heads, groups, states, taps;
  std::size_t bc() const { return groups * states; }
  std::size_t conv() const { return inner + 2 * bc(); }             // x, B, C
  std::size_t projected() const { return inner + conv() + heads; }  // z, x, B, C, dt
};

class Mamba2 final : public Layer {
 public:
  Mamba2(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        low_(static_cast<float>(c.dt_limit_low)),
        high_(finite_limit(c.dt_limit_high)),
        epsilon_(static_cast<float>(c.norm_eps)),
        in_(w.pack("in_proj.weight")),
        out_(w.pack("out_proj.weight")),
        in_bias_(w.values_or_none("in_proj.bias")),
        out_bias_(w.values_or_none("out_proj.bias")),
        conv_(transposed(w.at("conv1d.weight").values, s_.conv(), s_.taps)),
        conv_bias_(w.values_or_none("conv1d.bias")),
        dt_bias_(w.at("dt_bias").values),
        a_(minus_exp(w.at("A_log").values)),
        skip_(w.at("D").values),
        gain_(w.at("norm.weight").values),
        conv_at_(layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.conv()}, true)),
        ssm_at_(layout.add(name + ".ssm", FieldType::kF32, {s_.heads, s_.states, s_.head_dim}, true)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (s_.projected() + s_.inner); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, s_.projected()), y = take.rows(in.rows, s_.inner);
    kernels::linear(in_, in, in_bias_, projected);
    const MatrixSpan z = projected.columns(0, s_.inner), xbc = projected.columns(s_.inner, s_.conv());
    const MatrixSpan x = xbc.columns(0, s_.inner), b = xbc.columns(s_.inner, s_.bc()), c = xbc.columns(s_.inner + s_.bc(), s_.bc());
    const MatrixSpan delta = projected.columns(s_.inner + s_.conv(), s_.heads);
    const kernels::Ssd ssd{s_.heads, s_.head_dim, s_.states, s_.groups, a_, skip_};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan window = lane_rows(xbc, lanes.size(), i), steps = lane_rows(delta, lanes.size(), i);
      kernels::conv1d_step(conv_, conv_bias_, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.conv()), window, window);
      for (std::size_t r = 0; r < window.rows; ++r) {
        kernels::silu(window.row(r), window.row(r));
        step_sizes(steps.row(r), lanes[i].dt);
      }
      kernels::ssd_step(ssd, lane_rows(x, lanes.size(), i), steps, lane_rows(b, lanes.size(), i), lane_rows(c, lanes.size(), i),
                        state_floats(lanes[i].state, ssm_at_, s_.inner * s_.states), lane_rows(y, lanes.size(), i));
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::mul_silu(y.row(r), z.row(r), y.row(r));
      kernels::rms_norm_groups(y.row(r), s_.groups, gain_, epsilon_, y.row(r));
    }
    kernels::linear(out_, y, out_bias_, out);
  }

 private:
  static float finite_limit(double high) {
    return static_cast<float>(std::min(high, static_cast<double>(std::numeric_limits<float>::max())));
  }
  void step_sizes(std::span<float> delta, float dt) const noexcept {
    for (std::size_t h = 0; h < s_.heads; ++h) delta[h] += dt_bias_[h];
    kernels::softplus(delta, delta);
    for (float& value : delta) value = std::clamp(value, low_, high_) * dt;
  }

  Sizes s_;
  float low_, high_, epsilon_;
  kernels::PackedWeight in_, out_;
  std::vector<float> in_bias_, out_bias_;
  std::vector<float> conv_;  // (taps, channels)
  std::vector<float> conv_bias_, dt_bias_, a_, skip_, gain_;
  std::size_t conv_at_, ssm_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  const auto refuse = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (c.inner() % c.head_dim != 0) {
    return refuse(fmt::format("an inner width of {} does not divide into heads of head_dim {}", c.inner(), c.head_dim),
                  "head_dim dividing expand * d_model");
  }
  if (c.inner() / c.head_dim % c.n_groups != 0) {
    return refuse(fmt::format("{} heads do not divide into n_groups {}", c.inner() / c.head_dim, c.n_groups),
                  "n_groups dividing the heads");
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> shapes{{"in_proj.weight", {s.projected(), s.d}},
                                      {"conv1d.weight", {s.conv(), 1, s.taps}},
                                      {"dt_bias", {s.heads}},
                                      {"A_log", {s.heads}},
                                      {"D", {s.heads}},
                                      {"norm.weight", {s.inner}},
                                      {"out_proj.weight", {s.d, s.inner}}};
  if (c.conv_bias) shapes["conv1d.bias"] = {s.conv()};
  if (c.proj_bias) shapes["in_proj.bias"] = {s.projected()}, shapes["out_proj.bias"] = {s.d};
  return shapes;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  if (name == "in_proj.weight") draw_linear(out, s.d, rng);
  if (name == "out_proj.weight") draw_linear(out, s.inner, rng, 1 / std::sqrt(static_cast<double>(c.n_layers)));
  if (name == "conv1d.weight" || name == "conv1d.bias") draw_linear(out, s.taps, rng);
  if (name == "dt_bias") draw_step_bias(out, c.dt_min, c.dt_max, rng);
  if (name == "A_log") {
    draw_uniform(out, 1, 16, rng);
    for (float& value : out) value = std::log(value);
  }
  if (name == "D" || name == "norm.weight") std::fill(out.begin(), out.end(), 1.0f);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Mamba2>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = u.dims()[0], time = u.dims()[1];
  const auto weight = [&](const char* name) { return w.has(prefix + name) ? w.at(prefix + name) : Var<T>{}; };

  const Var<T> projected = linear(u, weight("in_proj.weight"), weight("in_proj.bias"));
  const Var<T> z = slice(projected, 2, 0, s.inner);
  const Var<T> xbc = silu(conv1d(slice(projected, 2, s.inner, s.inner + s.conv()), weight("conv1d.weight"), weight("conv1d.bias")));
  const Var<T> x = reshape(slice(xbc, 2, 0, s.inner), {batch, time, s.heads, s.head_dim});
  const Var<T> b = reshape(slice(xbc, 2, s.inner, s.inner + s.bc()), {batch, time, s.groups, s.states});
  const Var<T> c = reshape(slice(xbc, 2, s.inner + s.bc(), s.conv()), {batch, time, s.groups, s.states});
  Var<T> delta = softplus(add(slice(projected, 2, s.inner + s.conv(), s.projected()), weight("dt_bias")));
  if (config.dt_limit_low > 0 || config.dt_limit_high < 1e30) {
    delta = clamp(delta, static_cast<T>(config.dt_limit_low), static_cast<T>(std::min(config.dt_limit_high, 1e30)));
  }
  const Var<T> a = scale(exp(weight("A_log")), T{-1});
  const Var<T> y = reshape(ssd(x, delta, a, b, c, weight("D"), static_cast<std::size_t>(config.chunk)), {batch, time, s.inner});
  const Var<T> gated = rms_norm_groups(mul(y, silu(z)), s.groups, weight("norm.weight"), static_cast<T>(config.norm_eps));
  return linear(gated, weight("out_proj.weight"), weight("out_proj.bias"));
}

}  // namespace

const LayerKind kMamba2Layer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
