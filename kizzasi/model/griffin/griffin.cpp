#include "kizzasi/model/griffin/griffin.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/model/attention/attention.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr float kSharpness = 8;  // the paper's c: a = exp(-c r softplus(recurrent_param))

struct Sizes {
  std::size_t d, inner, heads, taps;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.inner())),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.inner() / c.head_dim))),
        taps(static_cast<std::size_t>(c.d_conv)) {}
  std::size_t width() const { return inner / heads; }
};

// One matrix a head, x @ W + b.
struct HeadwiseGate {
  std::vector<kernels::PackedWeight> heads;
  std::vector<float> bias;
  HeadwiseGate(const LayerWeights& w, const std::string& name, const Sizes& s) : bias(w.at(name + "_bias").values) {
    for (std::size_t h = 0; h < s.heads; ++h) heads.push_back(w.pack_transposed(name + "_weight", h));
  }
  // sigmoid of the products
  void operator()(MatrixView x, MatrixSpan y) const noexcept {
    const std::size_t p = x.cols / heads.size();
    for (std::size_t h = 0; h < heads.size(); ++h) {
      kernels::linear(heads[h], x.columns(h * p, p), std::span(bias).subspan(h * p, p), y.columns(h * p, p));
    }
    for (std::size_t r = 0; r < y.rows; ++r) kernels::sigmoid(y.row(r), y.row(r));
  }
};

class Recurrent final : public Layer {
 public:
  Recurrent(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        x_(w.pack("linear_x.weight")),
        y_(w.pack("linear_y.weight")),
        out_(w.pack("linear_out.weight")),
        x_bias_(w.at("linear_x.bias").values),
        y_bias_(w.at("linear_y.bias").values),
        out_bias_(w.at("linear_out.bias").values),
        conv_(transposed(w.at("conv_1d.weight").values, s_.inner, s_.taps)),
        conv_bias_(w.at("conv_1d.bias").values),
        input_gate_(w, "rg_lru.input_gate", s_),
        recurrent_gate_(w, "rg_lru.recurrent_gate", s_),
        rate_(w.at("rg_lru.recurrent_param").values),
        conv_at_(layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.inner}, true)),
        h_at_(layout.add(name + ".h", FieldType::kF32, {s_.inner}, true)),
        started_at_(layout.add(name + ".started", FieldType::kU64, {1})) {
    kernels::softplus(rate_, rate_);
    for (float& each : rate_) each *= -kSharpness;
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * 4 * s_.inner + s_.inner; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan x = take.rows(in.rows, s_.inner), gate = take.rows(in.rows, s_.inner);
    const MatrixSpan a = take.rows(in.rows, s_.inner), enters = take.rows(in.rows, s_.inner);
    const std::span<float> one = take.floats(s_.inner);
    kernels::linear(x_, in, x_bias_, x);
    kernels::linear(y_, in, y_bias_, gate);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan own = lane_rows(x, lanes.size(), i);
      kernels::conv1d_step(conv_, conv_bias_, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.inner), own, own);
    }
    input_gate_(x, enters);
    recurrent_gate_(x, a);
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      std::byte* started = lanes[r / rows].state + started_at_;
      const bool first = started[0] == std::byte{0};
      started[0] = std::byte{1};
      decay(x.row(r), a.row(r), enters.row(r), one, first);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      kernels::gated_scan(lane_rows(MatrixView(a), lanes.size(), i), lane_rows(MatrixView(enters), lanes.size(), i),
                          state_floats(lanes[i].state, h_at_, s_.inner), lane_rows(x, lanes.size(), i));
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::gelu_tanh(gate.row(r), gate.row(r));
      for (std::size_t c = 0; c < s_.inner; ++c) x.row(r)[c] *= gate.row(r)[c];
    }
    kernels::linear(out_, x, out_bias_, out);
  }

 private:
  // a: the recurrent gate becomes the decay exp(L); enters: the input gate becomes what enters, x times it times sqrt(1 - exp(2 L)), but
  // for the first frame, which enters whole. 1 - exp(2 L) = -tanh(L) (1 + exp(2 L)) keeps its digits near L = 0.
  void decay(std::span<const float> x, std::span<float> a, std::span<float> enters, std::span<float> scratch, bool first) const noexcept {
    for (std::size_t c = 0; c < s_.inner; ++c) a[c] *= rate_[c];
    kernels::tanh(a, scratch);
    kernels::exp(a, a);
    for (std::size_t c = 0; c < s_.inner; ++c) {
      const float share = first ? 1.0f : std::sqrt(-scratch[c] * (1 + a[c] * a[c]));
      enters[c] *= x[c] * share;
    }
  }

  Sizes s_;
  kernels::PackedWeight x_, y_, out_;
  std::vector<float> x_bias_, y_bias_, out_bias_, conv_, conv_bias_;
  HeadwiseGate input_gate_, recurrent_gate_;
  std::vector<float> rate_;  // -c softplus(recurrent_param)
  std::size_t conv_at_, h_at_, started_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c);
  if (s.inner % s.heads == 0) return {};
  return fail({Fault::kBadUse, fmt::format("an inner width of {} in {} heads", s.inner, s.heads), std::string(where), "whole heads",
               "Set n_heads, or head_dim to a divisor of the inner width."});
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"linear_out.weight", {s.d, s.inner}},
                                   {"linear_out.bias", {s.d}},
                                   {"conv_1d.weight", {s.inner, 1, s.taps}},
                                   {"conv_1d.bias", {s.inner}},
                                   {"rg_lru.recurrent_param", {s.inner}}};
  for (const std::string each : {"linear_x", "linear_y"}) all.insert({{each + ".weight", {s.inner, s.d}}, {each + ".bias", {s.inner}}});
  for (const std::string each : {"rg_lru.input_gate", "rg_lru.recurrent_gate"}) {
    all.insert({{each + "_weight", {s.heads, s.width(), s.width()}}, {each + "_bias", {s.heads, s.width()}}});
  }
  return all;
}

// recurrent_param such that a^c lies uniformly (in its square) in [0.9, 0.999] where the gate is open (De et al. 2024, section 2.4).
void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == "rg_lru.recurrent_param") {
    for (float& value : tensor.values) {
      const double square = rng.uniform(0.9 * 0.9, 0.999 * 0.999), wanted = -0.5 * std::log(square) / kSharpness;
      value = static_cast<float>(std::log(std::expm1(wanted)));
    }
  } else if (name == "conv_1d.weight") {
    draw_linear(tensor.values, static_cast<std::size_t>(c.d_conv), rng);
  } else if (name.ends_with("weight")) {
    draw_linear(tensor.values, tensor.shape[1], rng);
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Recurrent>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> in) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = in.dims()[0], time = in.dims()[1], p = s.width();
  const auto weight = [&](const std::string& name) { return w.at(prefix + name); };
  const auto project = [&](const std::string& name, Var<T> rows) { return linear(rows, weight(name + ".weight"), weight(name + ".bias")); };
  const Var<T> x = conv1d(project("linear_x", in), weight("conv_1d.weight"), weight("conv_1d.bias"));
  const auto gate = [&](const std::string& name) {
    std::vector<Var<T>> heads;
    for (std::size_t h = 0; h < s.heads; ++h) {
      const Var<T> matrix = permute(reshape(slice(weight(name + "_weight"), 0, h, h + 1), {p, p}), {1, 0});
      heads.push_back(linear(slice(x, 2, h * p, (h + 1) * p), matrix));
    }
    return sigmoid(add(concat(std::span<const Var<T>>(heads), 2), reshape(weight(name + "_bias"), {s.inner})));
  };
  const Var<T> log_a = mul(gate("rg_lru.recurrent_gate"), scale(softplus(weight("rg_lru.recurrent_param")), static_cast<T>(-kSharpness)));
  const Var<T> a = exp(log_a);
  // What a frame may add, so that the state keeps its size; the first frame enters whole.
  const Var<T> room = sqrt(mul(scale(tanh(log_a), T{-1}), add_scalar(square(a), T{1})));
  const std::vector<T> ones(batch * s.inner, T{1});
  const Var<T> whole = in.tape->constant({batch, 1, s.inner}, std::span<const T>(ones));
  std::vector<Var<T>> shares{whole};
  if (time > 1) shares.push_back(slice(room, 1, 1, time));
  const Var<T> share = concat(std::span<const Var<T>>(shares), 1);
  const Var<T> h = gated_scan(a, mul(mul(x, gate("rg_lru.input_gate")), share));
  return project("linear_out", mul(h, gelu_tanh(project("linear_y", in))));
}

// sqrt(d_model) with the 8 digits of a bfloat16, rounded to nearest even.
float embedding_scale(const BackboneConfig& c) {
  const auto bits = std::bit_cast<std::uint32_t>(std::sqrt(static_cast<float>(c.d_model)));
  return std::bit_cast<float>((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000u);
}

class EmbeddingScale final : public Layer {
 public:
  explicit EmbeddingScale(float factor) : factor_(factor) {}
  std::size_t scratch_floats(std::size_t) const noexcept override { return 0; }
  void advance(std::span<const Lane>, MatrixView in, MatrixSpan out, std::span<float>) const noexcept override {
    for (std::size_t r = 0; r < in.rows; ++r) {
      for (std::size_t c = 0; c < in.cols; ++c) out.row(r)[c] = factor_ * in.row(r)[c];
    }
  }

 private:
  float factor_;
};

template <typename T>
autograd::Var<T> scaled(const BackboneConfig& c, const WeightVars<T>&, const std::string&, autograd::Var<T> x) {
  return autograd::scale(x, static_cast<T>(embedding_scale(c)));
}

}  // namespace

const LayerKind kGriffinRecurrent{check, shapes, draw, make, forward<float>, forward<double>};

const LayerKind kEmbeddingScale{[](const BackboneConfig&, std::string_view) -> Result<void> { return {}; },
                                [](const BackboneConfig&) { return std::map<std::string, Shape>{}; },
                                [](const BackboneConfig&, std::int64_t, const std::string&, Tensor&, Rng) {},
                                [](const BackboneConfig& c, const LayerWeights&, const std::string&,
                                   StateLayout&) -> std::unique_ptr<Layer> { return std::make_unique<EmbeddingScale>(embedding_scale(c)); },
                                scaled<float>,
                                scaled<double>};

namespace {

// Two recurrent blocks, then one of attention, and so on.
constexpr std::array<Sublayer, 2> kGriffinBlock{
    {{"norm", "mixer",
      [](const BackboneConfig&, std::int64_t layer) -> const LayerKind& { return layer % 3 == 2 ? kLocalAttention : kGriffinRecurrent; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kGeGlu; }}}};
constexpr std::array<Sublayer, 2> kHawkBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kGriffinRecurrent; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kGeGlu; }}}};

}  // namespace

const StackForm kGriffin{kGriffinBlock, NormKind::kRms, &kEmbeddingScale};
const StackForm kHawk{kHawkBlock, NormKind::kRms, &kEmbeddingScale};

}  // namespace kizzasi
