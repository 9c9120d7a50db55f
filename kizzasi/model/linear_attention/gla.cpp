#include "kizzasi/model/linear_attention/gla.h"

#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/linear_attention/heads.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr float kGateRoot = 16;           // decays are the 16th root of their gate: near 1 from the start
constexpr std::size_t kDefaultRank = 16;  // of the gate

struct Sizes : matrix_heads::HeadSizes {
  explicit Sizes(const BackboneConfig& c) : HeadSizes(c), rank(c.dt_rank > 0 ? static_cast<std::size_t>(c.dt_rank) : kDefaultRank) {}
  std::size_t rank;
  std::size_t projected() const { return 2 * key_width() + 2 * inner + rank; }
  double query_scale() const { return 1 / std::sqrt(static_cast<double>(keys)); }
};

class Gla final : public Layer {
 public:
  Gla(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        epsilon_(static_cast<float>(c.norm_eps)),
        in_(w.pack_together({"q_proj.weight", "k_proj.weight", "v_proj.weight", "g_proj.weight", "gk_proj.0.weight"})),
        gate_(w.pack("gk_proj.1.weight")),
        out_(w.pack("o_proj.weight")),
        gate_bias_(w.at("gk_proj.1.bias").values),
        gain_(matrix_heads::repeated(w.at("g_norm_swish_gate.weight").values, s_.heads)),
        state_at_(layout.add(name + ".state", FieldType::kF32, {s_.heads, s_.keys, s_.values}, true)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (s_.projected() + s_.key_width()); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, s_.projected()), decay = take.rows(in.rows, s_.key_width());
    kernels::linear(in_, in, {}, projected);
    matrix_heads::Columns columns(projected);
    const MatrixSpan q = columns.next(s_.key_width()), k = columns.next(s_.key_width()), y = columns.next(s_.inner),
                     g = columns.next(s_.inner), low = columns.next(s_.rank);
    kernels::linear(gate_, low, gate_bias_, decay);
    for (std::size_t r = 0; r < in.rows; ++r) {
      decays(decay.row(r));
      matrix_heads::scale(q.row(r), static_cast<float>(s_.query_scale()));
    }
    const kernels::LinearAttention attention{s_.heads, s_.keys, s_.values, {}};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan v = lane_rows(y, lanes.size(), i);
      kernels::linear_attention(attention, lane_rows(q, lanes.size(), i), lane_rows(k, lanes.size(), i), v,
                                lane_rows(decay, lanes.size(), i), state_floats(lanes[i].state, state_at_, s_.state()), v);
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::rms_norm_groups(y.row(r), s_.heads, gain_, epsilon_, y.row(r));
      kernels::mul_silu(y.row(r), g.row(r), y.row(r));
    }
    kernels::linear(out_, y, {}, out);
  }

 private:
  // sigmoid(x)^(1/16) = exp(-softplus(-x) / 16)
  static void decays(std::span<float> x) noexcept {
    matrix_heads::scale(x, -1);
    kernels::softplus(x, x);
    matrix_heads::scale(x, -1 / kGateRoot);
    kernels::exp(x, x);
  }

  Sizes s_;
  float epsilon_;
  kernels::PackedWeight in_, gate_, out_;
  std::vector<float> gate_bias_, gain_;
  std::size_t state_at_;
};

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  return {{"q_proj.weight", {s.key_width(), s.d}}, {"k_proj.weight", {s.key_width(), s.d}},  {"v_proj.weight", {s.inner, s.d}},
          {"g_proj.weight", {s.inner, s.d}},       {"gk_proj.0.weight", {s.rank, s.d}},      {"gk_proj.1.weight", {s.key_width(), s.rank}},
          {"gk_proj.1.bias", {s.key_width()}},     {"g_norm_swish_gate.weight", {s.values}}, {"o_proj.weight", {s.d, s.inner}}};
}

void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == "gk_proj.1.bias") return;  // zeros
  if (name == "g_norm_swish_gate.weight") {
    std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  } else {
    draw_linear(tensor.values, tensor.shape[1], rng);
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Gla>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const Dims keys{batch, time, s.heads, s.keys}, values{batch, time, s.heads, s.values};
  const auto projected = [&](const char* name) { return linear(x, w.at(prefix + name)); };
  const Var<T> q = reshape(scale(projected("q_proj.weight"), static_cast<T>(s.query_scale())), keys);
  const Var<T> k = reshape(projected("k_proj.weight"), keys), v = reshape(projected("v_proj.weight"), values);
  const Var<T> gate = linear(projected("gk_proj.0.weight"), w.at(prefix + "gk_proj.1.weight"), w.at(prefix + "gk_proj.1.bias"));
  const Var<T> decay = reshape(exp(scale(softplus(scale(gate, T{-1})), T{-1} / static_cast<T>(kGateRoot))), keys);
  const Var<T> o = rms_norm(linear_attention(q, k, v, decay), w.at(prefix + "g_norm_swish_gate.weight"), static_cast<T>(config.norm_eps));
  const Var<T> gated = mul(reshape(o, {batch, time, s.inner}), silu(projected("g_proj.weight")));
  return linear(gated, w.at(prefix + "o_proj.weight"));
}

}  // namespace

const LayerKind kGlaLayer{matrix_heads::check_heads, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
