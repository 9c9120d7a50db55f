#include "kizzasi/model/state_space/h3.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <complex>
#include <numbers>

#include "kizzasi/autograd/heads.h"
#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/planes.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/dplr_scan.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/rate_cache.h"
#include "kizzasi/model/s4d.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;
using Complex = std::complex<double>;

struct Sizes {
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        width(static_cast<std::size_t>(c.head_dim)),
        taps(static_cast<std::size_t>(c.d_state)),
        states(static_cast<std::size_t>(c.d_state / 2)) {}
  std::size_t d, width, taps, states;
  std::size_t heads() const { return d / width; }
  std::size_t pairs() const { return d * width; }  // products of k and v
  std::size_t plane() const { return states * pairs(); }
};

class H3 final : public Layer {
 public:
  H3(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        rule_(discretization_of(c)),
        filter_(filter(w)),
        log_dt_(w.at("kernel.kernel.log_dt").values),
        log_real_(w.at("kernel.kernel.inv_A_real").values),
        imaginary_(w.at("kernel.kernel.A_imag").values),
        out_(w.pack("output_linear.weight")),
        out_bias_(w.at("output_linear.bias").values),
        a_(2 * s_.plane()),
        c_(2 * s_.plane()),
        rates_(6 * s_.plane()),
        conv_at_(layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.d}, true)),
        ssm_at_(layout.add(name + ".ssm", FieldType::kF32, {2, s_.states, s_.pairs()}, true)) {
    for (const char* each : {"q_proj", "k_proj", "v_proj"}) {
      const std::vector<float>& bias = w.at(std::string(each) + ".bias").values;
      in_bias_.insert(in_bias_.end(), bias.begin(), bias.end());
    }
    in_ = w.pack_together({"q_proj.weight", "k_proj.weight", "v_proj.weight"});
    const std::vector<float>&b = w.at("kernel.kernel.B").values, &to = w.at("kernel.kernel.C").values;
    for (std::size_t i = 0; i < b.size(); i += 2) {
      weight_.push_back(2.0 * Complex(static_cast<double>(b[i]), static_cast<double>(b[i + 1])) *
                        Complex(static_cast<double>(to[i]), static_cast<double>(to[i + 1])));
    }
    const std::size_t of_head = s_.width * s_.width;
    for (std::size_t e = 0; e < s_.pairs(); ++e) skip_.push_back(w.at("D").values[e / of_head]);
    for (std::size_t h = 0; h < s_.heads(); ++h) {
      for (std::size_t n = 0; n < s_.states; ++n) {
        const autograd::DiscreteElement x = element(h, n, 1.0);
        put(a_, h, n, x.a);
        put(c_, h, n, weight_[h * s_.states + n] * x.b);
      }
    }
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (4 * s_.d + s_.pairs()) + rates_.floats(); }
  void prepare_rate(float dt) override {
    if (dt != 1.0f) rates_.prepare(dt, [this](double at, std::span<float> planes) { sample_at(at, planes); });
  }
  std::size_t rates_computed() const noexcept override { return rates_.misses(); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, 3 * s_.d), read = take.rows(in.rows, s_.d), m = take.rows(in.rows, s_.pairs());
    const std::span<float> other = take.floats(rates_.floats());
    const MatrixSpan q = projected.columns(0, s_.d), k = projected.columns(s_.d, s_.d), v = projected.columns(2 * s_.d, s_.d);
    kernels::linear(in_, in, in_bias_, projected);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan rows = lane_rows(k, lanes.size(), i);
      kernels::conv1d_step(filter_, {}, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.d), rows, rows);
    }
    for (std::size_t r = 0; r < in.rows; ++r) outer(k.row(r), v.row(r), m.row(r));
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan rows = lane_rows(m, lanes.size(), i);
      const std::span<float> state = state_floats(lanes[i].state, ssm_at_, 2 * s_.plane());
      if (lanes[i].dt == 1.0f) {
        kernels::diagonal_scan({s_.pairs(), s_.states, a_, c_, skip_}, rows, state, rows);
        continue;
      }
      const std::span<const float> planes =
          rates_.at(lanes[i].dt, other, [this](double dt, std::span<float> into) { sample_at(dt, into); });
      const auto pair = [&](std::size_t n) { return planes.subspan(2 * n * s_.plane(), 2 * s_.plane()); };
      const std::span<const float> a = pair(0), gain = pair(1), nothing = pair(2);
      kernels::dplr_scan({s_.pairs(), s_.states, a, gain, c_, nothing, nothing, skip_}, rows, state, rows);
    }
    for (std::size_t r = 0; r < in.rows; ++r) contract(q.row(r), m.row(r), read.row(r));
    kernels::linear(out_, read, out_bias_, out);
  }

 private:
  void outer(std::span<const float> k, std::span<const float> v, std::span<float> m) const noexcept {
    for (std::size_t i = 0; i < s_.d; ++i) {
      const float* head = v.data() + i / s_.width * s_.width;
      for (std::size_t j = 0; j < s_.width; ++j) m[i * s_.width + j] = k[i] * head[j];
    }
  }
  void contract(std::span<const float> q, std::span<const float> m, std::span<float> out) const noexcept {
    std::fill(out.begin(), out.end(), 0.0f);
    for (std::size_t i = 0; i < s_.d; ++i) {
      float* head = out.data() + i / s_.width * s_.width;
      for (std::size_t j = 0; j < s_.width; ++j) head[j] += q[i] * m[i * s_.width + j];
    }
  }

  // The register and its skip as the taps of a convolution, (taps, d), the current frame last.
  std::vector<float> filter(const LayerWeights& w) const {
    const std::vector<float>&b = w.at("ssm_k_kernel.kernel.B").values, &c = w.at("ssm_k_kernel.kernel.C").values;
    std::vector<float> all(s_.taps * s_.d);
    for (std::size_t e = 0; e < s_.d; ++e) {
      for (std::size_t lag = 0; lag < s_.taps; ++lag) {
        double sum = lag == 0 ? static_cast<double>(w.at("ssm_k_D").values[e]) : 0.0;
        for (std::size_t n = lag; n < s_.taps; ++n) {
          sum += static_cast<double>(c[e * s_.taps + n]) * static_cast<double>(b[e * s_.taps + n - lag]);
        }
        all[(s_.taps - 1 - lag) * s_.d + e] = static_cast<float>(sum);
      }
    }
    return all;
  }

  autograd::DiscreteElement element(std::size_t h, std::size_t n, double dt) const noexcept {
    const std::size_t i = h * s_.states + n;
    const Complex lambda(-std::exp(static_cast<double>(log_real_[i])), static_cast<double>(imaginary_[i]));
    return autograd::discretize(rule_, lambda, dt * std::exp(static_cast<double>(log_dt_[h])));
  }
  // The same number for all products of a head.
  void put(std::span<float> planes, std::size_t h, std::size_t n, Complex value) const noexcept {
    const std::size_t of_head = s_.width * s_.width, at = n * s_.pairs() + h * of_head;
    std::fill_n(planes.data() + at, of_head, static_cast<float>(value.real()));
    std::fill_n(planes.data() + s_.plane() + at, of_head, static_cast<float>(value.imag()));
  }

  // The recurrence for steps of `dt` training periods on the same state: b at dt = 1 stands in c, so products enter by what theirs is of
  // that. planes: a, gain, zeros, each (2, states, pairs).
  void sample_at(double dt, std::span<float> planes) const noexcept {
    const std::span<float> a = planes.first(2 * s_.plane()), gain = planes.subspan(2 * s_.plane(), 2 * s_.plane());
    std::fill(planes.begin() + static_cast<std::ptrdiff_t>(4 * s_.plane()), planes.end(), 0.0f);
    for (std::size_t h = 0; h < s_.heads(); ++h) {
      for (std::size_t n = 0; n < s_.states; ++n) {
        const autograd::DiscreteElement x = element(h, n, dt);
        put(a, h, n, x.a);
        put(gain, h, n, x.b / element(h, n, 1.0).b);
      }
    }
  }

  Sizes s_;
  autograd::Discretization rule_;
  kernels::PackedWeight in_;
  std::vector<float> in_bias_;
  std::vector<float> filter_;                         // (taps, d)
  std::vector<float> log_dt_, log_real_, imaginary_;  // as published
  std::vector<Complex> weight_;                       // (heads, states): 2 C B
  std::vector<float> skip_;                           // (pairs)
  kernels::PackedWeight out_;
  std::vector<float> out_bias_;
  std::vector<float> a_, c_;  // (2, states, pairs) at dt = 1
  RateCache rates_;
  std::size_t conv_at_, ssm_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.d_state % 2 != 0) {
    return fail({Fault::kBadUse, "d_state is odd", std::string(where), "an even number: complex states come in conjugate pairs", ""});
  }
  if (c.d_model % c.head_dim != 0) {
    return fail({Fault::kBadUse, fmt::format("head_dim {} does not divide d_model {}", c.head_dim, c.d_model), std::string(where),
                 "whole heads", ""});
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  const Shape of_heads{s.heads(), s.states}, complex_of_heads{s.heads(), s.states, 2};
  std::map<std::string, Shape> all{{"D", {s.heads()}},
                                   {"ssm_k_D", {s.d}},
                                   {"ssm_k_kernel.kernel.B", {s.d, s.taps}},
                                   {"ssm_k_kernel.kernel.C", {s.d, s.taps}},
                                   {"kernel.kernel.log_dt", {s.heads()}},
                                   {"kernel.kernel.inv_A_real", of_heads},
                                   {"kernel.kernel.A_imag", of_heads},
                                   {"kernel.kernel.B", complex_of_heads},
                                   {"kernel.kernel.C", complex_of_heads}};
  for (const char* name : {"q_proj", "k_proj", "v_proj", "output_linear"}) {
    all.emplace(std::string(name) + ".weight", Shape{s.d, s.d});
    all.emplace(std::string(name) + ".bias", Shape{s.d});
  }
  return all;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  const auto normal = [&](double variance) {
    for (float& value : out) value = static_cast<float>(std::sqrt(variance) * rng.normal());
  };
  if (name.ends_with(".weight") || name.ends_with(".bias")) draw_linear(out, s.d, rng);
  if (name == "D" || name == "ssm_k_D") normal(1);
  if (name == "ssm_k_kernel.kernel.C") normal(1 / static_cast<double>(s.taps));  // k keeps its size
  if (name == "kernel.kernel.C") normal(0.5);                                    // complex normal
  if (name == "kernel.kernel.log_dt") {
    draw_uniform(out, std::log(c.dt_min), std::log(c.dt_max), rng);
    const std::complex<double> fastest(-0.5, std::numbers::pi * static_cast<double>(s.states - 1));
    if (c.discretization == "euler") {
      for (float& value : out) value = stable_under_euler(value, std::span(&fastest, 1));
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (name == "ssm_k_kernel.kernel.B") out[i] = i % s.taps == 0 ? 1.0f : 0.0f;  // the register takes frames in at its head
    if (name == "kernel.kernel.B") out[i] = i % 2 == 0 ? 1.0f : 0.0f;
    if (name == "kernel.kernel.inv_A_real") out[i] = static_cast<float>(std::log(0.5));
    if (name == "kernel.kernel.A_imag") out[i] = static_cast<float>(std::numbers::pi * static_cast<double>(i % s.states));
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<H3>(c, w, name, layout);
}

// The taps of the register, (d, 1, taps), the current frame last, its skip in it.
template <typename T>
autograd::Var<T> register_taps(autograd::Var<T> b, autograd::Var<T> c, autograd::Var<T> skip) {
  using namespace autograd;
  return in_double(std::vector<Var<T>>{b, c, skip}, [](const std::vector<Var<double>>& in) {
    const std::size_t d = in[0].dims()[0], taps = in[0].dims()[1];
    std::vector<Var<double>> columns;
    for (std::size_t lag = taps; lag-- > 0;) {
      const Var<double> tap = sum_last(mul(slice(in[1], 1, lag, taps), slice(in[0], 1, 0, taps - lag)));
      columns.push_back(reshape(lag == 0 ? add(tap, in[2]) : tap, {d, 1, 1}));
    }
    return concat(std::span<const Var<double>>(columns), 2);
  });
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const std::string& name) { return w.at(prefix + name); };
  const auto projection = [&](const char* name, Var<T> x) {
    return linear(x, weight(std::string(name) + ".weight"), weight(std::string(name) + ".bias"));
  };
  const Var<T> taps = register_taps(weight("ssm_k_kernel.kernel.B"), weight("ssm_k_kernel.kernel.C"), weight("ssm_k_D"));
  const Var<T> k = conv1d(projection("k_proj", u), taps, Var<T>{});
  const Planes<T> cb = planes_of(weight("kernel.kernel.C")) * planes_of(weight("kernel.kernel.B"));
  const std::array<Var<T>, 2> parts{reshape(cb.re, {s.heads(), s.states, 1}), reshape(cb.im, {s.heads(), s.states, 1})};
  const Var<T> discrete = diagonal_discretize(discretization_of(config), weight("kernel.kernel.log_dt"), weight("kernel.kernel.inv_A_real"),
                                              weight("kernel.kernel.A_imag"), concat(std::span<const Var<T>>(parts), 2));
  // A head's numbers for each of its products.
  std::vector<std::size_t> head_of(s.pairs());
  for (std::size_t e = 0; e < s.pairs(); ++e) head_of[e] = e / (s.width * s.width);
  const Var<T> spread = permute(gather(permute(reshape(discrete, {4 * s.states, s.heads()}), {1, 0}), head_of), {1, 0});
  const auto planes = [&](std::size_t i) {
    return reshape(slice(spread, 0, 2 * i * s.states, 2 * (i + 1) * s.states), {2, s.states, s.pairs()});
  };
  const Var<T> skip = reshape(gather(reshape(weight("D"), {s.heads(), 1}), head_of), {s.pairs()});
  const Var<T> y = diagonal_scan(head_outer(k, projection("v_proj", u), s.width), planes(0), planes(1), skip);
  return projection("output_linear", head_contract(projection("q_proj", u), y, s.width));
}

}  // namespace

const LayerKind kH3Layer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
