#include "kizzasi/model/rwkv/rwkv5.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/norm_entry.h"
#include "kizzasi/model/rwkv/channel_mix.h"
#include "kizzasi/model/rwkv/head_norm.h"
#include "kizzasi/model/rwkv/token_shift.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Version { k50, k51, k52, k6 };
constexpr bool has_gate(Version v) { return v != Version::k50; }
constexpr bool by_channel(Version v) { return v == Version::k52 || v == Version::k6; }
constexpr bool by_frame(Version v) { return v == Version::k6; }

constexpr const char* bonus_name(Version v) { return by_channel(v) ? "time_faaaa" : "time_first"; }
std::string mix_name(Version v, char of) { return std::string(by_frame(v) ? "time_maa_" : "time_mix_") + of; }

struct Sizes {
  std::size_t d, heads, width, mix_rank, decay_rank;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.d_model / c.head_dim)),
        width(static_cast<std::size_t>(c.head_dim)),
        mix_rank(static_cast<std::size_t>(c.mix_rank > 0 ? c.mix_rank : std::clamp<std::int64_t>(c.d_model / 8, 1, 32))),
        decay_rank(static_cast<std::size_t>(c.decay_rank > 0 ? c.decay_rank : std::clamp<std::int64_t>(c.d_model / 4, 1, 64))) {}
};

constexpr std::size_t kMixes = 5;                // of RWKV-6
constexpr std::string_view kMixOrder = "wkvrg";  // in this order in time_maa_w1 and _w2

template <Version kVersion>
class TimeMix final : public Layer {
 public:
  TimeMix(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        gain_(w.at("ln_x.weight").values),
        bias_(w.at("ln_x.bias").values),
        epsilon_(static_cast<float>(c.head_norm_eps)),
        out_(w.pack("output.weight")),
        last_at_(layout.add(name + ".att_x", FieldType::kF32, {s_.d})),
        kv_at_(layout.add(name + ".att_kv", FieldType::kF32, {s_.heads, s_.width, s_.width}, true)) {
    const auto project = [&](char of, const char* weight) {
      return Projection{w.at(mix_name(kVersion, of)).values, w.pack(std::string(weight) + ".weight")};
    };
    r_ = project('r', "receptance");
    k_ = project('k', "key");
    v_ = project('v', "value");
    if constexpr (has_gate(kVersion)) g_ = project('g', "gate");
    bonus_ = w.at(bonus_name(kVersion)).values;
    decay_ = w.at("time_decay").values;
    if constexpr (!by_channel(kVersion)) {
      for (float& each : bonus_) each = std::exp(each);
      std::vector<float> wide;
      for (const float each : bonus_) wide.insert(wide.end(), s_.width, each);
      bonus_ = std::move(wide);
    }
    if constexpr (by_frame(kVersion)) {
      mix_all_ = w.at("time_maa_x").values;
      mix_down_ = w.pack_transposed("time_maa_w1");
      decay_mix_ = w.at(mix_name(kVersion, 'w')).values;
      decay_down_ = w.pack_transposed("time_decay_w1");
      decay_up_ = w.pack_transposed("time_decay_w2");
      for (std::size_t j = 0; j < kMixes; ++j) mix_up_.push_back(w.pack_transposed("time_maa_w2", j));
    } else {
      for (float& each : decay_) each = static_cast<float>(std::exp(-std::exp(static_cast<double>(each))));
    }
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    const std::size_t low = by_frame(kVersion) ? kMixes * s_.mix_rank + s_.decay_rank : 0;
    return rows * (8 * s_.d + low);
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const auto rows_of = [&](std::size_t cols) { return take.rows(in.rows, cols); };
    const MatrixSpan before = rows_of(s_.d), mixed = rows_of(s_.d), share = rows_of(s_.d);
    const MatrixSpan r = rows_of(s_.d), k = rows_of(s_.d), v = rows_of(s_.d), g = rows_of(s_.d), decay = rows_of(s_.d);
    rwkv::rows_before(lanes, in, last_at_, before);
    MatrixSpan low;
    if constexpr (by_frame(kVersion)) {
      low = rows_of(kMixes * s_.mix_rank);
      rwkv::mix(in, before, mix_all_, mixed);
      kernels::linear(mix_down_, mixed, {}, low);
      for (std::size_t row = 0; row < in.rows; ++row) kernels::tanh(low.row(row), low.row(row));
    }
    // The frame mixed with the one before it, in this projection's own shares.
    const auto mix_as = [&](std::size_t order, const std::vector<float>& shares) {
      if constexpr (by_frame(kVersion)) {
        kernels::linear(mix_up_[order], MatrixView(low).columns(order * s_.mix_rank, s_.mix_rank), shares, share);
        for (std::size_t row = 0; row < in.rows; ++row) {
          rwkv::mix(in.slice(row, 1), MatrixView(before).slice(row, 1), share.row(row), mixed.slice(row, 1));
        }
      } else {
        rwkv::mix(before, in, shares, mixed);
      }
    };
    const auto project = [&](char of, const Projection& p, MatrixSpan y) {
      mix_as(kMixOrder.find(of), p.mix);
      kernels::linear(p.weight, mixed, {}, y);
    };
    project('r', r_, r);
    project('k', k_, k);
    project('v', v_, v);
    if constexpr (has_gate(kVersion)) project('g', g_, g);
    if constexpr (by_frame(kVersion)) {
      const MatrixSpan low_decay = rows_of(s_.decay_rank);
      mix_as(kMixOrder.find('w'), decay_mix_);
      kernels::linear(decay_down_, mixed, {}, low_decay);
      for (std::size_t row = 0; row < in.rows; ++row) kernels::tanh(low_decay.row(row), low_decay.row(row));
      kernels::linear(decay_up_, low_decay, decay_, decay);
      for (std::size_t row = 0; row < in.rows; ++row) {
        const std::span<float> each = decay.row(row);
        kernels::exp(each, each);
        for (float& value : each) value = -value;
        kernels::exp(each, each);
      }
    }
    const kernels::LinearAttention attention{s_.heads, s_.width, s_.width, bonus_};
    const MatrixView fixed(decay_.data(), 1, decay_.size());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto of = [&](MatrixSpan m) { return lane_rows(m, lanes.size(), i); };
      kernels::linear_attention(attention, of(r), of(k), of(v), by_frame(kVersion) ? MatrixView(of(decay)) : fixed,
                                state_floats(lanes[i].state, kv_at_, attention.state_size()), of(v));
    }
    rwkv::norm_heads(v, s_.heads, gain_, bias_, epsilon_);
    if constexpr (has_gate(kVersion)) {
      for (std::size_t row = 0; row < in.rows; ++row) kernels::mul_silu(v.row(row), g.row(row), v.row(row));
    }
    kernels::linear(out_, v, {}, out);
  }

 private:
  struct Projection {
    std::vector<float> mix;
    kernels::PackedWeight weight;
  };

  Sizes s_;
  std::vector<float> gain_, bias_;
  float epsilon_;
  std::vector<float> bonus_, decay_;  // decay: of a head or a channel; of RWKV-6 what its low-rank part adds to
  Projection r_, k_, v_, g_;
  kernels::PackedWeight out_;
  std::vector<float> mix_all_, decay_mix_;  // RWKV-6
  kernels::PackedWeight mix_down_, decay_down_, decay_up_;
  std::vector<kernels::PackedWeight> mix_up_;
  std::size_t last_at_, kv_at_;
};

template <Version kVersion>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"ln_x.weight", {s.d}}, {"ln_x.bias", {s.d}}, {"output.weight", {s.d, s.d}}};
  for (const auto& [of, name] : {std::pair{'r', "receptance.weight"}, {'k', "key.weight"}, {'v', "value.weight"}, {'g', "gate.weight"}}) {
    if (of == 'g' && !has_gate(kVersion)) continue;
    all.insert({{mix_name(kVersion, of), {s.d}}, {name, {s.d, s.d}}});
  }
  const Shape a_head = by_channel(kVersion) ? Shape{s.heads, s.width} : Shape{s.heads};
  all.insert({{bonus_name(kVersion), a_head}, {"time_decay", by_frame(kVersion) ? Shape{s.d} : a_head}});
  if (by_frame(kVersion)) {
    all.insert({{"time_maa_x", {s.d}},
                {"time_maa_w", {s.d}},
                {"time_maa_w1", {s.d, kMixes * s.mix_rank}},
                {"time_maa_w2", {kMixes, s.mix_rank, s.d}},
                {"time_decay_w1", {s.d, s.decay_rank}},
                {"time_decay_w2", {s.decay_rank, s.d}}});
  }
  return all;
}

// As BlinkDL/RWKV-LM draws them; low-rank parts near zero, what leads out at zero.
template <Version kVersion>
void draw(const BackboneConfig& c, std::int64_t layer, const std::string& name, Tensor& tensor, Rng rng) {
  if (name.ends_with(".weight") && tensor.shape.size() == 2 && name != "output.weight") draw_linear(tensor.values, tensor.shape[1], rng);
  if (name.ends_with("_w1")) return;
  if (name.ends_with("_w2")) return draw_uniform(tensor.values, -0.01, 0.01, rng);
  if (name == "ln_x.weight") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  if (!name.starts_with("time_")) return;
  const rwkv::Depth depth(c, layer);
  const auto size = static_cast<double>(tensor.values.size());
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double n = static_cast<double>(i), along = n / std::max(1.0, size - 1), zigzag = static_cast<double>((i + 1) % 3) - 1;
    double value = 0;
    if (name == "time_decay") {
      value = by_channel(kVersion) ? -6 + 5 * std::pow(along, 0.7 + 1.3 * depth.up) : -8 + 7 * std::pow(along, 0.7 + 1.3 * depth.up);
    } else if (name == "time_faaaa") {
      value = depth.up * (1 - along) + 0.1 * zigzag;
    } else if (name == "time_first") {
      value = std::log(0.3) + 0.5 * zigzag;
    } else {
      const bool half = name.ends_with("_r") || name.ends_with("_g");
      const double share = std::pow(n / size, half ? 0.5 * depth.down : depth.down) + (name.ends_with("_v") ? 0.3 * depth.up : 0);
      value = by_frame(kVersion) ? 1 - share : share;
    }
    tensor.values[i] = static_cast<float>(value);
  }
}

template <Version kVersion>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<TimeMix<kVersion>>(c, w, name, layout);
}

// x @ w for w (k, outputs)
template <typename T>
autograd::Var<T> times(autograd::Var<T> x, autograd::Var<T> w) {
  return autograd::linear(x, autograd::permute(w, {1, 0}));
}

template <typename T, Version kVersion>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const std::string& name) { return w.at(prefix + name); };
  const Var<T> before = shifted(x);
  Var<T> low;
  if constexpr (by_frame(kVersion)) low = tanh(times(rwkv::mix(x, before, weight("time_maa_x")), weight("time_maa_w1")));
  const auto mixed = [&](char of) {
    Var<T> share = weight(mix_name(kVersion, of));
    if constexpr (!by_frame(kVersion)) {
      return rwkv::mix(before, x, share);
    } else {
      const std::size_t j = kMixOrder.find(of);
      const Var<T> up = reshape(slice(weight("time_maa_w2"), 0, j, j + 1), {s.mix_rank, s.d});
      return rwkv::mix(x, before, add(times(slice(low, 2, j * s.mix_rank, (j + 1) * s.mix_rank), up), share));
    }
  };
  const Dims dims = x.dims(), heads{dims[0], dims[1], s.heads, s.width};
  const auto project = [&](char of, const char* name) { return reshape(linear(mixed(of), weight(name)), heads); };
  const Var<T> r = project('r', "receptance.weight"), k = project('k', "key.weight"), v = project('v', "value.weight");
  Var<T> decay = weight("time_decay"), bonus = weight(bonus_name(kVersion));
  if constexpr (by_frame(kVersion)) {
    decay = reshape(add(times(tanh(times(mixed('w'), weight("time_decay_w1"))), weight("time_decay_w2")), decay), heads);
  }
  decay = by_frame(kVersion) ? exp(scale(exp(decay), T{-1})) : decay_of(decay);
  if constexpr (!by_channel(kVersion)) {
    // One number a head for all of its channels.
    const std::vector<T> ones(s.heads * s.width, T{1});
    const Var<T> column = permute(mul(x.tape->constant({s.width, s.heads}, ones), exp(bonus)), {1, 0});
    bonus = column;
  }
  Var<T> y = rwkv::norm_heads(linear_attention(r, k, v, decay, bonus), weight("ln_x.weight"), weight("ln_x.bias"),
                              static_cast<T>(config.head_norm_eps));
  if constexpr (has_gate(kVersion)) y = mul(y, silu(linear(mixed('g'), weight("gate.weight"))));
  return linear(y, weight("output.weight"));
}

template <Version kVersion>
constexpr LayerKind kind_of() {
  return {rwkv::check_heads, shapes<kVersion>, draw<kVersion>, make<kVersion>, forward<float, kVersion>, forward<double, kVersion>};
}

template <const LayerKind& kTimeMix, const LayerKind& kChannelMix>
constexpr std::array<Sublayer, 2> kBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kTimeMix; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kChannelMix; }}}};

}  // namespace

const LayerKind kRwkv50TimeMix = kind_of<Version::k50>(), kRwkv51TimeMix = kind_of<Version::k51>(),
                kRwkv52TimeMix = kind_of<Version::k52>(), kRwkv6TimeMix = kind_of<Version::k6>();
const StackForm kRwkv50{kBlock<kRwkv50TimeMix, kChannelMix5>, NormKind::kLayer, &kLayerNormEntry};
const StackForm kRwkv51{kBlock<kRwkv51TimeMix, kChannelMix5>, NormKind::kLayer, &kLayerNormEntry};
const StackForm kRwkv52{kBlock<kRwkv52TimeMix, kChannelMix5>, NormKind::kLayer, &kLayerNormEntry};
const StackForm kRwkv6{kBlock<kRwkv6TimeMix, kChannelMix6>, NormKind::kLayer, &kLayerNormEntry};

}  // namespace kizzasi
