#include "kizzasi/model/linear_attention/deltanet.h"

#include <fmt/format.h>

#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/delta_rule.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/linear_attention/heads.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr double kLengthEpsilon = 1e-6;  // in x / sqrt(|x|^2 + epsilon)

template <bool kGated>
struct Sizes : matrix_heads::HeadSizes {
  explicit Sizes(const BackboneConfig& c)
      : HeadSizes(c),
        taps(static_cast<std::size_t>(c.d_conv)),
        key_heads(kGated && c.n_key_heads > 0 ? static_cast<std::size_t>(c.n_key_heads) : heads) {}
  std::size_t taps, key_heads;
  std::size_t keyed() const { return key_heads * keys; }         // width of q, of k
  std::size_t convolved() const { return 2 * keyed() + inner; }  // q, k, v
  std::size_t projected() const { return convolved() + heads + (kGated ? heads + inner : 0); }
  std::size_t key_head(std::size_t head) const { return head * key_heads / heads; }
  // x / |x| = rms_norm(x) / sqrt(keys), with epsilon to match.
  double length_epsilon() const { return kLengthEpsilon / static_cast<double>(keys); }
  double key_scale() const { return 1 / std::sqrt(static_cast<double>(keys)); }
  double query_scale() const { return 1 / static_cast<double>(keys); }
};

template <bool kGated>
class DeltaNet final : public Layer {
 public:
  DeltaNet(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c), epsilon_(static_cast<float>(c.norm_eps)), out_(w.pack("o_proj.weight")) {
    if constexpr (kGated) {
      in_ = w.pack_together({"q_proj.weight", "k_proj.weight", "v_proj.weight", "b_proj.weight", "a_proj.weight", "g_proj.weight"});
      a_ = minus_exp(w.at("A_log").values);
      dt_bias_ = w.at("dt_bias").values;
    } else {
      in_ = w.pack_together({"q_proj.weight", "k_proj.weight", "v_proj.weight", "b_proj.weight"});
    }
    std::vector<float> taps;
    for (const char* each : {"q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight"}) {
      const std::vector<float>& values = w.at(each).values;
      taps.insert(taps.end(), values.begin(), values.end());
    }
    conv_ = transposed(taps, s_.convolved(), s_.taps);
    gain_ = matrix_heads::repeated(w.at("o_norm.weight").values, s_.heads);
    conv_at_ = layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.convolved()}, true);
    state_at_ = layout.add(name + ".state", FieldType::kF32, {s_.heads, s_.keys, s_.values}, true);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (s_.projected() + 3 * s_.key_width()) + s_.keyed(); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, s_.projected()), q = take.rows(in.rows, s_.key_width()),
                     k = take.rows(in.rows, s_.key_width()), a = take.rows(in.rows, s_.key_width());
    const std::span<float> unit = take.floats(s_.keyed());
    kernels::linear(in_, in, {}, projected);
    matrix_heads::Columns columns(projected);
    const MatrixSpan mixed = columns.next(s_.convolved()), beta = columns.next(s_.heads);
    const MatrixSpan decay = kGated ? columns.next(s_.heads) : MatrixSpan(), g = kGated ? columns.next(s_.inner) : MatrixSpan();
    const MatrixSpan y = mixed.columns(2 * s_.keyed(), s_.inner);
    const kernels::DeltaRule rule{s_.heads, s_.keys, s_.values};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto of_lane = [&](MatrixSpan m) { return kernels::MatrixView(lane_rows(m, lanes.size(), i)); };
      const MatrixSpan window = lane_rows(mixed, lanes.size(), i);
      kernels::conv1d_step(conv_, {}, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.convolved()), window, window);
      for (std::size_t r = i * window.rows; r < (i + 1) * window.rows; ++r) {
        kernels::silu(mixed.row(r), mixed.row(r));
        kernels::sigmoid(beta.row(r), beta.row(r));
        if constexpr (kGated) decays(decay.row(r));
        keys(mixed.row(r), beta.row(r), kGated ? decay.row(r) : std::span<const float>(), unit, {q.row(r), k.row(r), a.row(r)});
      }
      const kernels::DeltaRuleRows rows{of_lane(q), of_lane(k), of_lane(y), of_lane(a), of_lane(k), kGated ? of_lane(decay) : MatrixView()};
      kernels::delta_rule(rule, rows, state_floats(lanes[i].state, state_at_, s_.state()), lane_rows(y, lanes.size(), i));
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::rms_norm_groups(y.row(r), s_.heads, gain_, epsilon_, y.row(r));
      if constexpr (kGated) kernels::mul_silu(y.row(r), g.row(r), y.row(r));
    }
    kernels::linear(out_, y, {}, out);
  }

 private:
  struct KeyRow {
    std::span<float> q, k, a;
  };

  void decays(std::span<float> x) const noexcept {
    for (std::size_t h = 0; h < s_.heads; ++h) x[h] += dt_bias_[h];
    kernels::softplus(x, x);
    for (std::size_t h = 0; h < s_.heads; ++h) x[h] *= a_[h];
    kernels::exp(x, x);
  }

  // What the delta rule takes of a row (q, k, v): queries, keys times beta, and minus keys times decay.
  void keys(std::span<const float> row, std::span<const float> beta, std::span<const float> decay, std::span<float> unit,
            const KeyRow& to) const noexcept {
    const auto epsilon = static_cast<float>(s_.length_epsilon());
    const auto query_scale = static_cast<float>(s_.query_scale()), key_scale = static_cast<float>(s_.key_scale());
    kernels::rms_norm_groups(row.first(s_.keyed()), s_.key_heads, {}, epsilon, unit);
    for (std::size_t h = 0; h < s_.heads; ++h) {
      for (std::size_t n = 0; n < s_.keys; ++n) to.q[h * s_.keys + n] = unit[s_.key_head(h) * s_.keys + n] * query_scale;
    }
    kernels::rms_norm_groups(row.subspan(s_.keyed(), s_.keyed()), s_.key_heads, {}, epsilon, unit);
    for (std::size_t h = 0; h < s_.heads; ++h) {
      const float kept = decay.empty() ? -1.0f : -decay[h];
      for (std::size_t n = 0; n < s_.keys; ++n) {
        const float key = unit[s_.key_head(h) * s_.keys + n] * key_scale;
        to.k[h * s_.keys + n] = beta[h] * key;
        to.a[h * s_.keys + n] = kept * key;
      }
    }
  }

  Sizes<kGated> s_;
  float epsilon_;
  kernels::PackedWeight in_, out_;
  std::vector<float> conv_;  // (taps, channels)
  std::vector<float> gain_, a_, dt_bias_;
  std::size_t conv_at_ = 0, state_at_ = 0;
};

template <bool kGated>
Result<void> check(const BackboneConfig& c, std::string_view where) {
  if (auto good = matrix_heads::check_heads(c, where); !good) return good;
  const Sizes<kGated> s(c);
  if (s.heads % s.key_heads == 0) return {};
  return fail({Fault::kBadUse, fmt::format("{} heads do not divide among n_key_heads {}", s.heads, s.key_heads), std::string(where),
               "n_key_heads dividing the heads", ""});
}

template <bool kGated>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes<kGated> s(c);
  std::map<std::string, Shape> shapes{{"q_proj.weight", {s.keyed(), s.d}},
                                      {"k_proj.weight", {s.keyed(), s.d}},
                                      {"v_proj.weight", {s.inner, s.d}},
                                      {"b_proj.weight", {s.heads, s.d}},
                                      {"q_conv1d.weight", {s.keyed(), 1, s.taps}},
                                      {"k_conv1d.weight", {s.keyed(), 1, s.taps}},
                                      {"v_conv1d.weight", {s.inner, 1, s.taps}},
                                      {"o_norm.weight", {s.values}},
                                      {"o_proj.weight", {s.d, s.inner}}};
  if (kGated) {
    shapes["a_proj.weight"] = {s.heads, s.d};
    shapes["g_proj.weight"] = {s.inner, s.d};
    shapes["A_log"] = shapes["dt_bias"] = {s.heads};
  }
  return shapes;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const std::span<float> out = tensor.values;
  if (name == "o_norm.weight") {
    std::fill(out.begin(), out.end(), 1.0f);
  } else if (name == "A_log") {
    for (float& value : out) value = static_cast<float>(std::log(rng.uniform(1e-3, 16)));
  } else if (name == "dt_bias") {
    draw_step_bias(out, c.dt_min, c.dt_max, rng);
  } else {
    draw_linear(out, tensor.shape.back(), rng);
  }
}

template <bool kGated>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<DeltaNet<kGated>>(c, w, name, layout);
}

template <typename T, bool kGated>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes<kGated> s(config);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const auto projected = [&](const char* name) { return linear(x, w.at(prefix + name)); };
  const auto convolved = [&](const char* in, const char* conv) { return silu(conv1d(projected(in), w.at(prefix + conv), Var<T>{})); };
  // Of unit length, and each key head repeated for its heads of values.
  const auto keys = [&](Var<T> of, double factor) {
    const Var<T> unit = scale(rms_norm_groups(of, s.key_heads, Var<T>{}, static_cast<T>(s.length_epsilon())), static_cast<T>(factor));
    const std::vector<Var<T>> copies(s.heads / s.key_heads, reshape(unit, {batch, time, s.key_heads, 1, s.keys}));
    return reshape(copies.size() == 1 ? copies[0] : concat(std::span<const Var<T>>(copies), 3), {batch, time, s.heads, s.keys});
  };
  const Var<T> q = keys(convolved("q_proj.weight", "q_conv1d.weight"), s.query_scale());
  const Var<T> k = keys(convolved("k_proj.weight", "k_conv1d.weight"), s.key_scale());
  const Var<T> v = reshape(convolved("v_proj.weight", "v_conv1d.weight"), {batch, time, s.heads, s.values});
  const Var<T> weighted = scale_rows(k, sigmoid(projected("b_proj.weight")));
  Var<T> decay, back = scale(k, T{-1});
  if constexpr (kGated) {
    const Var<T> step = softplus(add(projected("a_proj.weight"), w.at(prefix + "dt_bias")));
    decay = exp(scale(mul(step, exp(w.at(prefix + "A_log"))), T{-1}));
    back = scale_rows(back, decay);
  }
  const Var<T> o = delta_rule(q, weighted, v, back, weighted, decay);
  Var<T> y = reshape(rms_norm(o, w.at(prefix + "o_norm.weight"), static_cast<T>(config.norm_eps)), {batch, time, s.inner});
  if constexpr (kGated) y = mul(y, silu(projected("g_proj.weight")));
  return linear(y, w.at(prefix + "o_proj.weight"));
}

}  // namespace

const LayerKind kDeltaNetLayer{check<false>, shapes<false>, draw, make<false>, forward<float, false>, forward<double, false>};
const LayerKind kGatedDeltaNetLayer{check<true>, shapes<true>, draw, make<true>, forward<float, true>, forward<double, true>};

}  // namespace kizzasi
