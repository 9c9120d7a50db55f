#include "kizzasi/model/xlstm/mlstm.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/wkv.h"
#include "kizzasi/autograd/xlstm.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr double kGateCap = 15;  // raw gates are kGateCap tanh(raw / kGateCap)

struct Sizes {
  std::size_t d, heads, keys, values;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.d_model / c.head_dim))),
        keys(static_cast<std::size_t>(c.d_state)),
        values(d / heads) {}
  double key_scale() const { return 1 / std::sqrt(static_cast<double>(keys)); }
};

// Beside its values each head keeps a column of ones: what is read from that column is the sum that the read is divided by.
class Mlstm final : public Layer {
 public:
  Mlstm(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        q_(pack(w.at("q.weight"))),
        k_(pack(w.at("k.weight"))),
        v_(pack(w.at("v.weight"))),
        o_(pack(w.at("ogate_preact.weight"))),
        i_(pack(w.at("igate_preact.weight"))),
        f_(pack(w.at("fgate_preact.weight"))),
        out_(pack(w.at("out_proj.weight"))),
        i_bias_(w.at("igate_preact.bias").values),
        f_bias_(w.at("fgate_preact.bias").values),
        gain_(w.at("multihead_norm.weight").values),
        zeros_(s_.values),
        epsilon_(static_cast<float>(c.mixer_norm_eps)),
        cell_at_(layout.add(name + ".C", FieldType::kF32, {s_.heads, s_.keys, s_.values + 1}, true)),
        m_at_(layout.add(name + ".m", FieldType::kF32, {s_.heads})) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (2 * s_.heads * s_.keys + s_.heads * (s_.values + 1) + 2 * s_.d + 3 * s_.heads) + s_.heads;
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const auto rows_of = [&](std::size_t cols) { return take.rows(in.rows, cols); };
    const MatrixSpan q = rows_of(s_.heads * s_.keys), k = rows_of(s_.heads * s_.keys), wide = rows_of(s_.heads * (s_.values + 1));
    const MatrixSpan v = rows_of(s_.d), gate = rows_of(s_.d), enter = rows_of(s_.heads), keep = rows_of(s_.heads), most = rows_of(s_.heads);
    const std::span<float> one = take.floats(s_.heads);
    kernels::linear(q_, in, {}, q);
    kernels::linear(k_, in, {}, k);
    kernels::linear(v_, in, {}, v);
    kernels::linear(o_, in, {}, gate);
    kernels::linear(i_, in, i_bias_, enter);
    kernels::linear(f_, in, f_bias_, keep);
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      gates(state_floats(lanes[r / rows].state, m_at_, s_.heads), enter.row(r), keep.row(r), most.row(r), one);
      spread(v.row(r), wide.row(r));
      const auto scale = static_cast<float>(s_.key_scale());
      for (std::size_t c = 0; c < q.cols; ++c) {
        q.row(r)[c] *= scale;
        k.row(r)[c] *= enter.row(r)[c / s_.keys];
      }
    }
    const kernels::LinearAttention attention{s_.heads, s_.keys, s_.values + 1, {}};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto of = [&](MatrixSpan m) { return lane_rows(m, lanes.size(), i); };
      kernels::linear_attention(attention, of(q), of(k), of(wide), of(keep), state_floats(lanes[i].state, cell_at_, attention.state_size()),
                                of(wide));
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::sigmoid(gate.row(r), gate.row(r));
      read(wide.row(r), most.row(r), v.row(r));
      for (std::size_t c = 0; c < s_.d; ++c) v.row(r)[c] *= gate.row(r)[c];
    }
    kernels::linear(out_, v, {}, out);
  }

 private:
  static void cap(std::span<float> raw) noexcept {
    for (float& each : raw) each /= static_cast<float>(kGateCap);
    kernels::tanh(raw, raw);
    for (float& each : raw) each *= static_cast<float>(kGateCap);
  }

  // Raw gates become what enters and what stays, under the running exponent m; most: e^-m, the least that a read is divided by.
  void gates(std::span<float> m, std::span<float> enter, std::span<float> keep, std::span<float> most,
             std::span<float> scratch) const noexcept {
    cap(enter);
    cap(keep);
    for (std::size_t h = 0; h < s_.heads; ++h) scratch[h] = -keep[h];
    kernels::softplus(scratch, scratch);  // -log sigmoid
    for (std::size_t h = 0; h < s_.heads; ++h) {
      const float stays = m[h] - scratch[h], next = std::max(stays, enter[h]);
      keep[h] = stays - next;
      enter[h] -= next;
      most[h] = -next;
      m[h] = next;
    }
    kernels::exp(keep, keep);
    kernels::exp(enter, enter);
    kernels::exp(most, most);
  }

  void spread(std::span<const float> v, std::span<float> wide) const noexcept {
    for (std::size_t h = 0; h < s_.heads; ++h) {
      std::copy_n(v.data() + h * s_.values, s_.values, wide.data() + h * (s_.values + 1));
      wide[h * (s_.values + 1) + s_.values] = 1;
    }
  }

  void read(std::span<const float> wide, std::span<const float> least, std::span<float> y) const noexcept {
    for (std::size_t h = 0; h < s_.heads; ++h) {
      const float* from = wide.data() + h * (s_.values + 1);
      const std::span<float> head = y.subspan(h * s_.values, s_.values);
      const float by = std::max(std::abs(from[s_.values]), least[h]) + epsilon_;
      for (std::size_t c = 0; c < s_.values; ++c) head[c] = from[c] / by;
      kernels::layer_norm(head, std::span(gain_).subspan(h * s_.values, s_.values), zeros_, epsilon_, head);
    }
  }

  Sizes s_;
  kernels::PackedWeight q_, k_, v_, o_, i_, f_, out_;
  std::vector<float> i_bias_, f_bias_, gain_, zeros_;
  float epsilon_;
  std::size_t cell_at_, m_at_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c);
  if (s.d % s.heads == 0 && (c.n_heads > 0 || c.d_model % c.head_dim == 0)) return {};
  return fail({Fault::kBadUse, fmt::format("d_model {} in heads of {}", c.d_model, c.head_dim), std::string(where), "whole heads",
               "Set n_heads to a divisor of d_model, or head_dim."});
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"multihead_norm.weight", {s.d}}};
  for (const char* each : {"q.weight", "k.weight"}) all.emplace(each, Shape{s.heads * s.keys, s.d});
  for (const char* each : {"v.weight", "ogate_preact.weight", "out_proj.weight"}) all.emplace(each, Shape{s.d, s.d});
  for (const std::string each : {"igate_preact", "fgate_preact"})
    all.insert({{each + ".weight", {s.heads, s.d}}, {each + ".bias", {s.heads}}});
  return all;
}

// Gates begin nearly closed to what enters and open to what stays (Beck et al. 2025, section 3.2).
void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == "igate_preact.bias") std::fill(tensor.values.begin(), tensor.values.end(), -10.0f);
  if (name == "multihead_norm.weight") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  if (name == "fgate_preact.bias") {
    const double last = std::max(1.0, static_cast<double>(tensor.values.size()) - 1);
    for (std::size_t h = 0; h < tensor.values.size(); ++h) tensor.values[h] = static_cast<float>(3 + 3 * static_cast<double>(h) / last);
  }
  if (tensor.shape.size() == 2 && !name.starts_with("igate") && !name.starts_with("fgate"))
    draw_linear(tensor.values, tensor.shape[1], rng);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Mlstm>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const auto weight = [&](const char* name) { return w.at(prefix + name); };
  const auto heads = [&](const char* name, std::size_t width) { return reshape(linear(x, weight(name)), {batch, time, s.heads, width}); };
  const auto gate = [&](const char* matrix, const char* bias) {
    const Var<T> raw = linear(x, weight(matrix), weight(bias));
    return scale(tanh(scale(raw, static_cast<T>(1 / kGateCap))), static_cast<T>(kGateCap));
  };
  const Var<T> enter = gate("igate_preact.weight", "igate_preact.bias"), raw = gate("fgate_preact.weight", "fgate_preact.bias");
  const Var<T> decay = scale(softplus(scale(raw, T{-1})), T{-1});  // log sigmoid
  const Var<T> m = log_max_scan(decay, enter);
  const Var<T> keep = exp(sub(add(decay, shifted(m)), m)), share = exp(sub(enter, m));
  const Var<T> q = scale(heads("q.weight", s.keys), static_cast<T>(s.key_scale())), k = scale_rows(heads("k.weight", s.keys), share);
  const std::vector<T> ones(batch * time * s.heads, T{1});
  const std::array<Var<T>, 2> both{heads("v.weight", s.values), x.tape->constant({batch, time, s.heads, 1}, std::span<const T>(ones))};
  const Var<T> wide = linear_attention(q, k, concat(std::span<const Var<T>>(both), 3), keep);
  const Var<T> least = exp(scale(m, T{-1}));
  const Var<T> size = abs(reshape(slice(wide, 3, s.values, s.values + 1), {batch, time, s.heads}));
  const Var<T> by = add_scalar(add(relu(sub(size, least)), least), static_cast<T>(config.mixer_norm_eps));
  const Var<T> inverse = div(x.tape->constant({batch, time, s.heads}, std::span<const T>(ones)), by);
  const Var<T> h = scale_rows(slice(wide, 3, 0, s.values), inverse);
  const Var<T> normed = reshape(layer_norm(h, Var<T>{}, Var<T>{}, static_cast<T>(config.mixer_norm_eps)), {batch, time, s.d});
  const Var<T> y = mul(mul(normed, weight("multihead_norm.weight")), sigmoid(linear(x, weight("ogate_preact.weight"))));
  return linear(y, weight("out_proj.weight"));
}

}  // namespace

const LayerKind kMlstm{check, shapes, draw, make, forward<float>, forward<double>};

namespace {
constexpr std::array<Sublayer, 2> kBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kMlstm; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kSwiGlu; }}}};
}  // namespace
const StackForm kXlstm{kBlock};

}  // namespace kizzasi
