#include "kizzasi/model/s4d.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/causal_convolution.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/dplr_scan.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/rate_cache.h"
#include "kizzasi/model/s4d_spectrum.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), states(static_cast<std::size_t>(c.d_state / 2)) {}
  std::size_t d, states;
  std::size_t plane() const { return d * states; }
};

class S4d final : public Layer {
 public:
  S4d(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        rule_(discretization_of(c)),
        log_dt_(w.at("kernel.log_dt").values),
        log_a_real_(w.at("kernel.log_A_real").values),
        a_imag_(w.at("kernel.A_imag").values),
        weight_(w.at("kernel.C").values),
        skip_(w.at("D").values),
        out_(w.pack("output_linear.0.weight")),
        out_bias_(w.at("output_linear.0.bias").values),
        a_(2 * s_.plane()),
        c_(2 * s_.plane()),
        rates_(6 * s_.plane()),
        ssm_at_(layout.add(name + ".ssm", FieldType::kF32, {2, s_.states, s_.d}, true)) {
    for (std::size_t e = 0; e < s_.d; ++e) {
      for (std::size_t n = 0; n < s_.states; ++n) {
        const std::size_t i = e * s_.states + n;
        const autograd::DiscreteElement d = element(e, n, 1.0);
        put(a_, e, n, d.a);
        put(c_, e, n, 2.0 * std::complex<double>(weight_[2 * i], weight_[2 * i + 1]) * d.b);
      }
    }
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * 3 * s_.d + rates_.floats(); }
  void prepare_rate(float dt) override {
    if (dt != 1.0f) rates_.prepare(dt, [this](double at, std::span<float> planes) { sample_at(at, planes); });
  }
  std::size_t rates_computed() const noexcept override { return rates_.misses(); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan y = take.rows(in.rows, s_.d), mapped = take.rows(in.rows, 2 * s_.d);
    const std::span<float> other = take.floats(rates_.floats());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixView u = lane_rows(in, lanes.size(), i);
      const std::span<float> state = state_floats(lanes[i].state, ssm_at_, 2 * s_.plane());
      if (lanes[i].dt == 1.0f) {
        kernels::diagonal_scan({s_.d, s_.states, a_, c_, skip_}, u, state, lane_rows(y, lanes.size(), i));
        continue;
      }
      const std::span<const float> planes =
          rates_.at(lanes[i].dt, other, [this](double dt, std::span<float> into) { sample_at(dt, into); });
      const auto pair = [&](std::size_t n) { return planes.subspan(2 * n * s_.plane(), 2 * s_.plane()); };
      const std::span<const float> a = pair(0), gain = pair(1), nothing = pair(2);
      kernels::dplr_scan({s_.d, s_.states, a, gain, c_, nothing, nothing, skip_}, u, state, lane_rows(y, lanes.size(), i));
    }
    for (std::size_t r = 0; r < in.rows; ++r) kernels::gelu(y.row(r), y.row(r));
    kernels::linear(out_, y, out_bias_, mapped);
    for (std::size_t r = 0; r < in.rows; ++r) {
      const std::span<float> value = mapped.row(r).first(s_.d), gate = mapped.row(r).subspan(s_.d);
      kernels::sigmoid(gate, gate);
      float* to = out.row(r).data();
      for (std::size_t e = 0; e < s_.d; ++e) to[e] = value[e] * gate[e];
    }
  }

 private:
  autograd::DiscreteElement element(std::size_t e, std::size_t n, double dt) const noexcept {
    const std::size_t i = e * s_.states + n;
    const std::complex<double> lambda(-std::exp(static_cast<double>(log_a_real_[i])), static_cast<double>(a_imag_[i]));
    return autograd::discretize(rule_, lambda, dt * std::exp(static_cast<double>(log_dt_[e])));
  }
  void put(std::span<float> planes, std::size_t e, std::size_t n, std::complex<double> value) const noexcept {
    planes[n * s_.d + e] = static_cast<float>(value.real());
    planes[s_.plane() + n * s_.d + e] = static_cast<float>(value.imag());
  }

  // The recurrence for steps of `dt` training periods on the same state: B at dt = 1 stands in c, so inputs enter by what theirs is of
  // that. planes: a, gain, zeros, each (2, states, channels).
  void sample_at(double dt, std::span<float> planes) const noexcept {
    const std::span<float> a = planes.first(2 * s_.plane()), gain = planes.subspan(2 * s_.plane(), 2 * s_.plane());
    std::fill(planes.begin() + static_cast<std::ptrdiff_t>(4 * s_.plane()), planes.end(), 0.0f);
    for (std::size_t e = 0; e < s_.d; ++e) {
      for (std::size_t n = 0; n < s_.states; ++n) {
        const autograd::DiscreteElement d = element(e, n, dt);
        put(a, e, n, d.a);
        put(gain, e, n, d.b / element(e, n, 1.0).b);
      }
    }
  }

  Sizes s_;
  autograd::Discretization rule_;
  std::vector<float> log_dt_, log_a_real_, a_imag_, weight_, skip_;  // as published
  kernels::PackedWeight out_;
  std::vector<float> out_bias_;
  std::vector<float> a_, c_;  // (2, states, d) at dt = 1
  RateCache rates_;
  std::size_t ssm_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.d_state % 2 != 0) {
    return fail({Fault::kBadUse, "d_state is odd", std::string(where), "an even number: complex states come in conjugate pairs", ""});
  }
  if (c.s4d_init == "legs" && c.d_state > kLargestLegS) {
    return fail({Fault::kBadUse, "d_state is too large for s4d_init legs", std::string(where), "at most 512", "Use lin, its limit."});
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  return {{"D", {s.d}},
          {"kernel.C", {s.d, s.states, 2}},
          {"kernel.log_dt", {s.d}},
          {"kernel.log_A_real", {s.d, s.states}},
          {"kernel.A_imag", {s.d, s.states}},
          {"output_linear.0.weight", {2 * s.d, s.d, 1}},
          {"output_linear.0.bias", {2 * s.d}}};
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  if (name == "D") {
    for (float& value : out) value = static_cast<float>(rng.normal());
  }
  if (name == "kernel.C") {  // complex normal: each part with variance 1/2
    for (float& value : out) value = static_cast<float>(rng.normal() * std::sqrt(0.5));
  }
  if (name == "kernel.log_dt") {
    draw_uniform(out, std::log(c.dt_min), std::log(c.dt_max), rng);
    if (c.discretization == "euler") {
      std::vector<std::complex<double>> lambda = s4d_spectrum(c.s4d_init, static_cast<std::size_t>(c.d_state));
      for (float& value : out) value = stable_under_euler(value, std::span(lambda).first(s.states));
    }
  }
  if (name == "kernel.log_A_real" || name == "kernel.A_imag") {
    const std::vector<std::complex<double>> lambda = s4d_spectrum(c.s4d_init, static_cast<std::size_t>(c.d_state));
    const bool real = name == "kernel.log_A_real";
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::complex<double> value = lambda[i % s.states];
      out[i] = static_cast<float>(real ? std::log(-value.real()) : value.imag());
    }
  }
  if (name == "output_linear.0.weight" || name == "output_linear.0.bias") draw_linear(out, s.d, rng);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<S4d>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const char* name) { return w.at(prefix + name); };
  const Var<T> discrete = diagonal_discretize(discretization_of(config), weight("kernel.log_dt"), weight("kernel.log_A_real"),
                                              weight("kernel.A_imag"), weight("kernel.C"));
  const Dims planes{2, s.states, s.d};
  const Var<T> a = reshape(slice(discrete, 0, 0, 1), planes), c = reshape(slice(discrete, 0, 1, 2), planes);
  const Var<T> y = gelu(diagonal_system(u, a, c, weight("D")));
  const Var<T> mapped = linear(y, reshape(weight("output_linear.0.weight"), {2 * s.d, s.d}), weight("output_linear.0.bias"));
  return mul(slice(mapped, 2, 0, s.d), sigmoid(slice(mapped, 2, s.d, 2 * s.d)));
}

}  // namespace

autograd::Discretization discretization_of(const BackboneConfig& config) {
  if (config.discretization == "euler") return autograd::Discretization::kEuler;
  return config.discretization == "bilinear" ? autograd::Discretization::kBilinear : autograd::Discretization::kZoh;
}

const LayerKind kS4dLayer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
