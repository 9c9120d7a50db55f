#include "kizzasi/model/xlstm/mlstm.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/xlstm/mlstm_cell.h"

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

class Mlstm final : public Layer {
 public:
  Mlstm(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        q_(w.pack("q.weight")),
        k_(w.pack("k.weight")),
        v_(w.pack("v.weight")),
        o_(w.pack("ogate_preact.weight")),
        i_(w.pack("igate_preact.weight")),
        f_(w.pack("fgate_preact.weight")),
        out_(w.pack("out_proj.weight")),
        i_bias_(w.at("igate_preact.bias").values),
        f_bias_(w.at("fgate_preact.bias").values),
        cell_({s_.heads, s_.keys, s_.values, static_cast<float>(c.mixer_norm_eps), static_cast<float>(c.norm_eps)},
              w.at("multihead_norm.weight").values, name, layout) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (2 * s_.heads * s_.keys + 2 * s_.d + 2 * s_.heads) + cell_.scratch_floats(rows);
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const auto rows_of = [&](std::size_t cols) { return take.rows(in.rows, cols); };
    const MatrixSpan q = rows_of(s_.heads * s_.keys), k = rows_of(s_.heads * s_.keys), v = rows_of(s_.d), gate = rows_of(s_.d);
    const MatrixSpan enter = rows_of(s_.heads), keep = rows_of(s_.heads);
    kernels::linear(q_, in, {}, q);
    kernels::linear(k_, in, {}, k);
    kernels::linear(v_, in, {}, v);
    kernels::linear(o_, in, {}, gate);
    kernels::linear(i_, in, i_bias_, enter);
    kernels::linear(f_, in, f_bias_, keep);
    const auto scale = static_cast<float>(s_.key_scale());
    for (std::size_t r = 0; r < in.rows; ++r) {
      cap(enter.row(r));
      cap(keep.row(r));
      for (std::size_t c = 0; c < q.cols; ++c) q.row(r)[c] *= scale;
    }
    cell_.advance(lanes, q, k, v, enter, keep, v, take.rest());
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::sigmoid(gate.row(r), gate.row(r));
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

  Sizes s_;
  kernels::PackedWeight q_, k_, v_, o_, i_, f_, out_;
  std::vector<float> i_bias_, f_bias_;
  MlstmCell cell_;
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
  const Var<T> q = scale(heads("q.weight", s.keys), static_cast<T>(s.key_scale()));
  const Var<T> normed =
      mlstm_cell(q, heads("k.weight", s.keys), heads("v.weight", s.values), gate("igate_preact.weight", "igate_preact.bias"),
                 gate("fgate_preact.weight", "fgate_preact.bias"), static_cast<T>(config.mixer_norm_eps), static_cast<T>(config.norm_eps));
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
