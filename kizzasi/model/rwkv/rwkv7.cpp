#include "kizzasi/model/rwkv/rwkv7.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/delta_rule.h"
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

constexpr double kDecay = 0.606531;     // exp(-1/2) as the published code rounds it: a decay lies between e^-kDecay and 1
constexpr double kLeastLength = 1e-12;  // of a removal key

struct Sizes {
  std::size_t d, heads, width, decay_rank, rate_rank, gate_rank, value_rank;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.d_model / c.head_dim)),
        width(static_cast<std::size_t>(c.head_dim)),
        decay_rank(rank(c, c.decay_rank, 8, 96)),
        rate_rank(rank(c, c.rate_rank, 8, 96)),
        gate_rank(rank(c, c.gate_rank, 4, 256)),
        value_rank(rank(c, c.value_rank, 12, 64)) {}
  float least_square() const { return static_cast<float>(kLeastLength * kLeastLength / static_cast<double>(width)); }

 private:
  static std::size_t rank(const BackboneConfig& c, std::int64_t wanted, std::int64_t part, std::int64_t most) {
    return static_cast<std::size_t>(wanted > 0 ? wanted : std::clamp<std::int64_t>(c.d_model / part, 1, most));
  }
};

// up(f(down(x))) with matrices published as (inputs, rank) and (rank, outputs).
struct LowRank {
  kernels::PackedWeight down, up;
  std::vector<float> base;  // added; may be empty
  LowRank() = default;
  LowRank(const LayerWeights& w, const char* first, const char* second, const char* bias)
      : down(w.pack_transposed(first)), up(w.pack_transposed(second)), base(w.values_or_none(bias)) {}
};

template <bool kFirst>
class TimeMix final : public Layer {
 public:
  TimeMix(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        epsilon_(static_cast<float>(c.head_norm_eps)),
        r_(w.pack("receptance.weight")),
        k_(w.pack("key.weight")),
        v_(w.pack("value.weight")),
        out_(w.pack("output.weight")),
        decay_(w, "w1", "w2", "w0"),
        rate_(w, "a1", "a2", "a0"),
        gate_(w, "g1", "g2", ""),
        removal_(w.at("k_k").values),
        replacement_(w.at("k_a").values),
        bonus_(w.at("r_k").values),
        gain_(w.at("ln_x.weight").values),
        bias_(w.at("ln_x.bias").values),
        unit_(s_.width, static_cast<float>(1 / std::sqrt(static_cast<double>(s_.width)))),
        last_at_(layout.add(name + ".att_x", FieldType::kF32, {s_.d})),
        kv_at_(layout.add(name + ".att_kv", FieldType::kF32, {s_.heads, s_.width, s_.width}, true)) {
    for (const char* each : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g"}) shares_.push_back(w.at(each).values);
    if constexpr (!kFirst) value_ = LowRank(w, "v1", "v2", "v0");
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (10 * s_.d + std::max({s_.decay_rank, s_.rate_rank, s_.gate_rank, s_.value_rank}));
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    advance_beside(lanes, in, {}, out, scratch);
  }

  void advance_beside(std::span<const Lane> lanes, MatrixView in, MatrixSpan first_values, MatrixSpan out,
                      std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const auto rows_of = [&](std::size_t cols) { return take.rows(in.rows, cols); };
    const MatrixSpan before = rows_of(s_.d), mixed = rows_of(s_.d), r = rows_of(s_.d), w = rows_of(s_.d), k = rows_of(s_.d);
    const MatrixSpan v = rows_of(s_.d), a = rows_of(s_.d), removal = rows_of(s_.d), taken = rows_of(s_.d), y = rows_of(s_.d);
    const std::span<float> rest = take.rest();
    rwkv::rows_before(lanes, in, last_at_, before);
    const auto mix = [&](Share share) { rwkv::mix(in, before, shares_[share], mixed); };
    mix(kR);
    kernels::linear(r_, mixed, {}, r);
    mix(kK);
    kernels::linear(k_, mixed, {}, k);
    mix(kW);
    low_rank(decay_, mixed, kernels::tanh, rest, w);
    mix(kA);
    low_rank(rate_, mixed, nullptr, rest, a);
    mix(kV);
    kernels::linear(v_, mixed, {}, v);
    if constexpr (kFirst) {
      for (std::size_t row = 0; row < first_values.rows; ++row) std::copy_n(v.row(row).data(), s_.d, first_values.row(row).data());
    } else {
      low_rank(value_, mixed, nullptr, rest, y);
      for (std::size_t row = 0; row < in.rows; ++row) {
        kernels::sigmoid(y.row(row), y.row(row));
        float* own = v.row(row).data();
        const float *first = first_values.row(row).data(), *share = y.row(row).data();
        for (std::size_t c = 0; c < s_.d; ++c) own[c] += (first[c] - own[c]) * share[c];
      }
    }
    for (std::size_t row = 0; row < in.rows; ++row) prepare(w.row(row), a.row(row), k.row(row), removal.row(row), taken.row(row));
    const kernels::DeltaRule rule{s_.heads, s_.width, s_.width};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto of = [&](MatrixSpan m) { return lane_rows(MatrixView(m), lanes.size(), i); };
      kernels::delta_rule(rule, {of(r), of(k), of(v), of(removal), of(taken), of(w)},
                          state_floats(lanes[i].state, kv_at_, rule.state_size()), lane_rows(y, lanes.size(), i));
    }
    rwkv::norm_heads(y, s_.heads, gain_, bias_, epsilon_);
    for (std::size_t row = 0; row < in.rows; ++row) add_present(r.row(row), k.row(row), v.row(row), y.row(row));
    mix(kG);
    low_rank(gate_, mixed, kernels::sigmoid, rest, w);
    rwkv::multiply(y, w);
    kernels::linear(out_, y, {}, out);
  }

 private:
  enum Share : std::size_t { kR, kW, kK, kV, kA, kG };

  void low_rank(const LowRank& by, MatrixView x, void (*between)(std::span<const float>, std::span<float>) noexcept,
                std::span<float> scratch, MatrixSpan y) const noexcept {
    const MatrixSpan low = Scratch(scratch).rows(x.rows, by.down.outputs());
    kernels::linear(by.down, x, {}, low);
    for (std::size_t row = 0; row < x.rows && between != nullptr; ++row) between(low.row(row), low.row(row));
    kernels::linear(by.up, low, by.base, y);
  }

  // Of one frame: decay w, rate a and key k as projected become the decay, the replacement key (k), the unit removal key and what of it is
  // taken away.
  void prepare(std::span<float> w, std::span<float> a, std::span<float> k, std::span<float> removal,
               std::span<float> taken) const noexcept {
    kernels::sigmoid(w, w);
    for (float& each : w) each *= static_cast<float>(-kDecay);
    kernels::exp(w, w);
    kernels::sigmoid(a, a);
    for (std::size_t c = 0; c < s_.d; ++c) removal[c] = k[c] * removal_[c];
    for (std::size_t at = 0; at < s_.d; at += s_.width) {
      const std::span<float> head = removal.subspan(at, s_.width);
      kernels::rms_norm(head, unit_, s_.least_square(), head);
    }
    for (std::size_t c = 0; c < s_.d; ++c) {
      taken[c] = -removal[c] * a[c];
      k[c] *= 1 + (a[c] - 1) * replacement_[c];
    }
  }

  // What the frame says of itself: y += (sum r k r_k) v, head by head.
  void add_present(std::span<const float> r, std::span<const float> k, std::span<const float> v, std::span<float> y) const noexcept {
    for (std::size_t at = 0; at < s_.d; at += s_.width) {
      float sum = 0;
      for (std::size_t c = at; c < at + s_.width; ++c) sum += r[c] * k[c] * bonus_[c];
      for (std::size_t c = at; c < at + s_.width; ++c) y[c] += sum * v[c];
    }
  }

  Sizes s_;
  float epsilon_;
  kernels::PackedWeight r_, k_, v_, out_;
  LowRank decay_, rate_, gate_, value_;
  std::vector<float> removal_, replacement_, bonus_, gain_, bias_, unit_;
  std::vector<std::vector<float>> shares_;
  std::size_t last_at_, kv_at_;
};

template <bool kFirst>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"r_k", {s.heads, s.width}}};
  for (const char* row : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "w0", "a0", "k_k", "k_a", "ln_x.weight", "ln_x.bias"}) {
    all.emplace(row, Shape{s.d});
  }
  for (const char* matrix : {"receptance", "key", "value", "output"}) all.emplace(std::string(matrix) + ".weight", Shape{s.d, s.d});
  const auto low = [&](char of, std::size_t rank) {
    all.insert({{std::string(1, of) + "1", {s.d, rank}}, {std::string(1, of) + "2", {rank, s.d}}});
  };
  low('w', s.decay_rank);
  low('a', s.rate_rank);
  low('g', s.gate_rank);
  if (kFirst) return all;
  low('v', s.value_rank);
  all.emplace("v0", Shape{s.d});
  return all;
}

// As BlinkDL/RWKV-LM draws them (RWKV-v7).
void draw(const BackboneConfig& c, std::int64_t layer, const std::string& name, Tensor& tensor, Rng rng) {
  const rwkv::Depth depth(c, layer);
  const auto d = static_cast<double>(c.d_model), half = (static_cast<double>(c.head_dim) - 1) / 2;
  if (name == "receptance.weight" || name == "value.weight") return draw_linear(tensor.values, tensor.shape[1], rng, 0.5);
  if (name == "key.weight") return draw_linear(tensor.values, tensor.shape[1], rng, 0.05);
  if (name == "g1" || (name.size() == 2 && name[1] == '2')) return draw_linear(tensor.values, tensor.shape[0], rng, 0.1);
  for (std::size_t i = 0; i < tensor.values.size() && !name.ends_with('1') && !name.starts_with("output"); ++i) {
    const double n = static_cast<double>(i), along = n / std::max(1.0, d - 1) - 0.5;
    const double z = half > 0 ? (std::fmod(n, static_cast<double>(c.head_dim)) - half) / half : 0, zigzag = z * std::abs(z);
    double value = 0;
    if (name.starts_with("x_")) {
      const double power = name == "x_r" || name == "x_g" ? 0.2 : name == "x_k" || name == "x_v" ? 0.7 : 0.9;
      value = 1 - std::pow(n / d, power * depth.down);
    } else if (name == "w0") {
      value = -6 + 6 * std::pow(n / std::max(1.0, d - 1), 1 + std::pow(depth.up, 0.3)) + 0.5 + 2.5 * zigzag;
    } else if (name == "a0") {
      value = -0.19 + 0.3 * zigzag + 0.4 * along;
    } else if (name == "v0") {
      value = 0.73 - 0.4 * along;
    } else if (name == "k_k") {
      value = 0.71 - 0.1 * along;
    } else if (name == "k_a") {
      value = 1.02;
    } else if (name == "r_k") {
      value = -0.04;
    } else if (name == "ln_x.weight") {
      value = std::pow((1 + static_cast<double>(layer)) / static_cast<double>(c.n_layers), 0.7);
    }
    tensor.values[i] = static_cast<float>(value);
  }
}

template <bool kFirst>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<TimeMix<kFirst>>(c, w, name, layout);
}

template <typename T, bool kFirst>
autograd::Var<T> forward_beside(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x,
                                autograd::Var<T>& first_values) {
  using namespace autograd;
  const Sizes s(config);
  const Dims dims = x.dims(), heads{dims[0], dims[1], s.heads, s.width};
  const auto weight = [&](const char* name) { return w.at(prefix + name); };
  const auto times = [&](Var<T> rows, const char* name) { return linear(rows, permute(weight(name), {1, 0})); };
  const Var<T> before = shifted(x);
  const auto mixed = [&](const char* share) { return rwkv::mix(x, before, weight(share)); };
  const Var<T> r = linear(mixed("x_r"), weight("receptance.weight")), xv = mixed("x_v");
  Var<T> k = linear(mixed("x_k"), weight("key.weight")), v = linear(xv, weight("value.weight"));
  const Var<T> low_decay = tanh(times(mixed("x_w"), "w1"));
  const Var<T> decay = exp(scale(sigmoid(add(times(low_decay, "w2"), weight("w0"))), static_cast<T>(-kDecay)));
  const Var<T> rate = sigmoid(add(times(times(mixed("x_a"), "a1"), "a2"), weight("a0")));
  const Var<T> gate = times(sigmoid(times(mixed("x_g"), "g1")), "g2");
  if constexpr (kFirst) {
    first_values = v;
  } else {
    v = add(v, mul(sub(first_values, v), sigmoid(add(times(times(xv, "v1"), "v2"), weight("v0")))));
  }
  const auto by_head = [&](Var<T> rows) { return reshape(rows, heads); };
  const Var<T> squeezed = rms_norm(by_head(mul(k, weight("k_k"))), Var<T>{}, static_cast<T>(s.least_square()));
  const Var<T> removal = scale(squeezed, static_cast<T>(1 / std::sqrt(static_cast<double>(s.width))));
  k = mul(k, add_scalar(mul(add_scalar(rate, T{-1}), weight("k_a")), T{1}));
  const Var<T> rh = by_head(r), kh = by_head(k), vh = by_head(v);
  const Var<T> taken = scale(mul(removal, by_head(rate)), T{-1});
  Var<T> y = delta_rule(rh, kh, vh, removal, taken, by_head(decay));
  y = rwkv::norm_heads(y, weight("ln_x.weight"), weight("ln_x.bias"), static_cast<T>(config.head_norm_eps));
  // (sum r k r_k) v: the sums, one a head, are spread over its channels by a product with ones.
  const Var<T> sums = reshape(sum_last(mul(mul(rh, kh), weight("r_k"))), {dims[0], dims[1], s.heads, 1});
  const std::vector<T> ones(s.width, T{1});
  const Var<T> spread = linear(sums, x.tape->constant({s.width, 1}, ones));
  y = add(y, reshape(mul(spread, vh), dims));
  return linear(mul(y, gate), weight("output.weight"));
}

template <typename T, bool kFirst>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  autograd::Var<T> none;
  return forward_beside<T, kFirst>(config, w, prefix, x, none);
}

std::size_t width_of(const BackboneConfig& c) { return static_cast<std::size_t>(c.d_model); }

template <bool kFirst>
constexpr LayerKind kind_of() {
  return {rwkv::check_heads,
          shapes<kFirst>,
          draw,
          make<kFirst>,
          forward<float, kFirst>,
          forward<double, kFirst>,
          width_of,
          forward_beside<float, kFirst>,
          forward_beside<double, kFirst>};
}

}  // namespace

const LayerKind kRwkv7FirstTimeMix = kind_of<true>(), kRwkv7TimeMix = kind_of<false>();

namespace {
constexpr std::array<Sublayer, 2> kBlock{
    {{"norm", "mixer",
      [](const BackboneConfig&, std::int64_t layer) -> const LayerKind& { return layer == 0 ? kRwkv7FirstTimeMix : kRwkv7TimeMix; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kChannelMix7; }}}};
}  // namespace
const StackForm kRwkv7{kBlock, NormKind::kLayer, &kLayerNormEntry};

}  // namespace kizzasi
