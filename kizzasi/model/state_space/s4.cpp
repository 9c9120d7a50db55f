#include "kizzasi/model/state_space/s4.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kizzasi/autograd/causal_convolution.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/dplr_scan.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/rate_cache.h"
#include "kizzasi/model/state_space/dplr.h"
#include "kizzasi/model/state_space/hippo.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;
using Complex = std::complex<double>;

struct Sizes {
  explicit Sizes(const BackboneConfig& c) : d(static_cast<std::size_t>(c.d_model)), states(static_cast<std::size_t>(c.d_state / 2)) {}
  std::size_t d, states;
  std::size_t plane() const { return d * states; }
};

std::vector<Complex> complex_values(const Tensor& stored) {
  std::vector<Complex> values;
  for (std::size_t i = 0; i < stored.values.size(); i += 2) {
    values.emplace_back(static_cast<double>(stored.values[i]), static_cast<double>(stored.values[i + 1]));
  }
  return values;
}

class S4 final : public Layer {
 public:
  S4(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        log_dt_(w.at("kernel.inv_dt").values),
        p_(complex_values(w.at("kernel.P"))),
        b_(complex_values(w.at("kernel.B"))),
        c_(complex_values(w.at("kernel.C"))),
        skip_(w.at("D").values),
        out_(w.pack("output_linear.0.weight")),
        out_bias_(w.at("output_linear.0.bias").values),
        planes_(kPlanes * s_.plane()),
        rates_(kPlanes * s_.plane()),
        ssm_at_(layout.add(name + ".ssm", FieldType::kF32, {2, s_.states, s_.d}, true)) {
    const std::vector<float>&real = w.at("kernel.A_real").values, &imaginary = w.at("kernel.A_imag").values;
    for (std::size_t i = 0; i < real.size(); ++i) {
      lambda_.emplace_back(-std::exp(static_cast<double>(real[i])), -static_cast<double>(imaginary[i]));
    }
    std::vector<DplrElement> column(s_.states);
    sample_at(1.0, planes_, column);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * 3 * s_.d + rates_.floats() + s_.states * (sizeof(DplrElement) / sizeof(float)) + kAlignment;
  }
  void prepare_rate(float dt) override {
    if (dt == 1.0f) return;
    std::vector<DplrElement> column(s_.states);
    rates_.prepare(dt, [&](double at, std::span<float> planes) { sample_at(at, planes, column); });
  }
  std::size_t rates_computed() const noexcept override { return rates_.misses(); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan y = take.rows(in.rows, s_.d), mapped = take.rows(in.rows, 2 * s_.d);
    const std::span<float> other = take.floats(rates_.floats());
    const std::span<DplrElement> column = elements_in(take.rest());
    const auto sample = [&](double dt, std::span<float> planes) { sample_at(dt, planes, column); };
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const std::span<const float> planes = lanes[i].dt == 1.0f ? std::span<const float>(planes_) : rates_.at(lanes[i].dt, other, sample);
      kernels::dplr_scan(scan_of(planes), lane_rows(in, lanes.size(), i), state_floats(lanes[i].state, ssm_at_, 2 * s_.plane()),
                         lane_rows(y, lanes.size(), i));
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
  static constexpr std::size_t kPlanes = 10;  // a, b, c, shared, r: real and imaginary
  static constexpr std::size_t kAlignment = alignof(DplrElement) / sizeof(float);

  // A column of elements cut from scratch, on its boundary.
  std::span<DplrElement> elements_in(std::span<float> scratch) const noexcept {
    void* at = scratch.data();
    std::size_t room = scratch.size_bytes();
    std::align(alignof(DplrElement), s_.states * sizeof(DplrElement), at, room);
    DplrElement* const first = static_cast<DplrElement*>(at);
    std::uninitialized_fill_n(first, s_.states, DplrElement{});
    return {first, s_.states};
  }

  kernels::DplrScan scan_of(std::span<const float> planes) const noexcept {
    const auto pair = [&](std::size_t i) { return planes.subspan(2 * i * s_.plane(), 2 * s_.plane()); };
    return {s_.d, s_.states, pair(0), pair(1), pair(2), pair(3), pair(4), skip_};
  }

  // The recurrence for steps of `dt` training periods. column: buffer.
  void sample_at(double dt, std::span<float> planes, std::span<DplrElement> column) const noexcept {
    const std::size_t plane = s_.plane();
    for (std::size_t e = 0; e < s_.d; ++e) {
      const auto of = [&](const std::vector<Complex>& all) { return std::span(all).subspan(e * s_.states, s_.states); };
      discretize_dplr({of(lambda_), of(p_), of(b_), of(c_)}, dt * std::exp(static_cast<double>(log_dt_[e])), column);
      for (std::size_t n = 0; n < s_.states; ++n) {
        const DplrElement& x = column[n];
        const Complex values[] = {x.a, x.b, x.c, x.shared, x.r};
        for (std::size_t i = 0; i < 5; ++i) {
          planes[2 * i * plane + n * s_.d + e] = static_cast<float>(values[i].real());
          planes[(2 * i + 1) * plane + n * s_.d + e] = static_cast<float>(values[i].imag());
        }
      }
    }
  }

  Sizes s_;
  std::vector<float> log_dt_;
  std::vector<Complex> lambda_, p_, b_, c_;  // (d, states)
  std::vector<float> skip_;
  kernels::PackedWeight out_;
  std::vector<float> out_bias_;
  std::vector<float> planes_;  // (5, 2, states, d) at dt = 1
  RateCache rates_;
  std::size_t ssm_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (c.d_state % 2 != 0) {
    return fail({Fault::kBadUse, "d_state is odd", std::string(where), "an even number: complex states come in conjugate pairs", ""});
  }
  if (c.d_state > kLargestHippo) {
    return fail({Fault::kBadUse, "d_state is too large for s4", std::string(where), "at most 256", "s4d has no such limit."});
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  return {{"D", {s.d}},
          {"kernel.inv_dt", {s.d}},
          {"kernel.A_real", {s.d, s.states}},
          {"kernel.A_imag", {s.d, s.states}},
          {"kernel.P", {s.d, s.states, 2}},
          {"kernel.B", {s.d, s.states, 2}},
          {"kernel.C", {s.d, s.states, 2}},
          {"output_linear.0.weight", {2 * s.d, s.d}},
          {"output_linear.0.bias", {2 * s.d}}};
}

// B's imaginary parts are held within +-2, as the reference does: those of large states would drown the rest.
constexpr double kLargestImaginary = 2;

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  const std::span<float> out = tensor.values;
  const auto repeat = [&](const auto& value, std::size_t period) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<float>(value(i % period));
  };
  if (name == "D") repeat([&](std::size_t) { return rng.normal(); }, 1);
  if (name == "kernel.inv_dt") draw_uniform(out, std::log(c.dt_min), std::log(c.dt_max), rng);
  if (name == "kernel.C") repeat([&](std::size_t) { return std::sqrt(0.5) * rng.normal(); }, 1);  // complex normal
  if (name == "output_linear.0.weight" || name == "output_linear.0.bias") draw_linear(out, s.d, rng);
  if (name == "kernel.A_real") repeat([](std::size_t) { return std::log(0.5); }, 1);
  if (name != "kernel.A_imag" && name != "kernel.P" && name != "kernel.B") return;
  const NormalLegS legs = normal_legs(2 * s.states);
  if (name == "kernel.A_imag") return repeat([&](std::size_t n) { return -legs.lambda[n].imag(); }, s.states);
  const std::vector<Complex> turned = legs.turned_root(name == "kernel.P" ? std::sqrt(0.5) : 1.0);
  const double bound = name == "kernel.P" ? 1e300 : kLargestImaginary;
  repeat([&](std::size_t i) { return i % 2 == 0 ? turned[i / 2].real() : std::clamp(turned[i / 2].imag(), -bound, bound); }, 2 * s.states);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<S4>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const char* name) { return w.at(prefix + name); };
  const Var<T> discrete = discretize_dplr(weight("kernel.inv_dt"), weight("kernel.A_real"), weight("kernel.A_imag"), weight("kernel.P"),
                                          weight("kernel.B"), weight("kernel.C"));
  const auto plane = [&](std::size_t i) { return reshape(slice(discrete, 0, i, i + 1), {2, s.states, s.d}); };
  const Var<T> y = gelu(dplr_system(u, DplrCoefficients<T>{plane(0), plane(1), plane(2), plane(3), plane(4), weight("D")}));
  const Var<T> mapped = linear(y, weight("output_linear.0.weight"), weight("output_linear.0.bias"));
  return mul(slice(mapped, 2, 0, s.d), sigmoid(slice(mapped, 2, s.d, 2 * s.d)));
}

}  // namespace

const LayerKind kS4Layer{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
