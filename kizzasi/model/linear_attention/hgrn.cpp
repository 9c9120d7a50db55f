#include "kizzasi/model/linear_attention/hgrn.h"

#include <cmath>

#include "kizzasi/autograd/matrix_state.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/linear_attention/heads.h"
#include "kizzasi/model/linear_attention/lower_bound.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;
using matrix_heads::HeadSizes;
using matrix_heads::kLowerBound;

double query_scale(const HeadSizes& s) { return 1 / std::sqrt(static_cast<double>(s.keys)); }

// gate -> what is kept; taken: what is not, 1 - kept, by its own sigmoid: no digits cancel.
void split_gate(std::span<float> gate, std::span<float> taken, std::span<const float> bound) noexcept {
  for (std::size_t e = 0; e < gate.size(); ++e) taken[e] = -gate[e];
  kernels::sigmoid(gate, gate);
  kernels::sigmoid(taken, taken);
  for (std::size_t e = 0; e < gate.size(); ++e) {
    taken[e] *= 1 - bound[e];
    gate[e] = bound[e] + (1 - bound[e]) * gate[e];
  }
}

template <typename T>
struct Gate {
  autograd::Var<T> kept, taken;
};
template <typename T>
Gate<T> split_gate(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Var<T> gate = linear(x, w.at(prefix + "f_proj.weight"));
  Gate<T> out{sigmoid(gate), sigmoid(scale(gate, T{-1}))};
  const Var<T> bound = matrix_heads::lower_bounds(w, prefix, static_cast<std::size_t>(c.n_layers));
  if (bound.tape == nullptr) return out;
  const Var<T> rest = add_scalar(scale(bound, T{-1}), T{1});
  return {add(mul(out.kept, rest), bound), mul(out.taken, rest)};
}

class Hgrn final : public Layer {
 public:
  Hgrn(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : inner_(static_cast<std::size_t>(c.inner())),
        epsilon_(static_cast<float>(c.norm_eps)),
        in_(w.pack_together({"i_proj.weight", "f_proj.weight", "g_proj.weight"})),
        out_(w.pack("o_proj.weight")),
        bound_(matrix_heads::lower_bounds(w, static_cast<std::size_t>(c.n_layers))),
        gain_(w.at("g_norm.weight").values),
        h_at_(layout.add(name + ".h", FieldType::kF32, {inner_}, true)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * 3 * inner_ + inner_; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, 3 * inner_);
    const std::span<float> taken = take.floats(inner_);
    kernels::linear(in_, in, {}, projected);
    matrix_heads::Columns columns(projected);
    const MatrixSpan h = columns.next(inner_), kept = columns.next(inner_), g = columns.next(inner_);
    for (std::size_t r = 0; r < in.rows; ++r) {
      split_gate(kept.row(r), taken, bound_);
      kernels::mul_silu(taken, h.row(r), h.row(r));
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan x = lane_rows(h, lanes.size(), i);
      kernels::gated_scan(lane_rows(kept, lanes.size(), i), x, state_floats(lanes[i].state, h_at_, inner_), x);
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::rms_norm(h.row(r), gain_, epsilon_, h.row(r));
      kernels::mul_silu(h.row(r), g.row(r), h.row(r));
    }
    kernels::linear(out_, h, {}, out);
  }

 private:
  std::size_t inner_;
  float epsilon_;
  kernels::PackedWeight in_, out_;
  std::vector<float> bound_, gain_;
  std::size_t h_at_;
};

class Hgrn2 final : public Layer {
 public:
  Hgrn2(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        epsilon_(static_cast<float>(c.norm_eps)),
        in_(w.pack_together({"q_proj.weight", "f_proj.weight", "i_proj.weight"})),
        out_(w.pack("o_proj.weight")),
        bound_(matrix_heads::lower_bounds(w, static_cast<std::size_t>(c.n_layers))),
        gain_(w.at("g_norm.weight").values),
        state_at_(layout.add(name + ".state", FieldType::kF32, {s_.heads, s_.keys, s_.values}, true)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (3 * s_.key_width() + s_.inner); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan projected = take.rows(in.rows, 2 * s_.key_width() + s_.inner), k = take.rows(in.rows, s_.key_width());
    kernels::linear(in_, in, {}, projected);
    matrix_heads::Columns columns(projected);
    const MatrixSpan q = columns.next(s_.key_width()), kept = columns.next(s_.key_width()), y = columns.next(s_.inner);
    for (std::size_t r = 0; r < in.rows; ++r) {
      split_gate(kept.row(r), k.row(r), bound_);
      kernels::silu(q.row(r), q.row(r));
      matrix_heads::scale(q.row(r), static_cast<float>(query_scale(s_)));
    }
    const kernels::LinearAttention attention{s_.heads, s_.keys, s_.values, {}};
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan v = lane_rows(y, lanes.size(), i);
      kernels::linear_attention(attention, lane_rows(q, lanes.size(), i), lane_rows(k, lanes.size(), i), v,
                                lane_rows(kept, lanes.size(), i), state_floats(lanes[i].state, state_at_, s_.state()), v);
    }
    for (std::size_t r = 0; r < in.rows; ++r) kernels::rms_norm(y.row(r), gain_, epsilon_, y.row(r));
    kernels::linear(out_, y, {}, out);
  }

 private:
  HeadSizes s_;
  float epsilon_;
  kernels::PackedWeight in_, out_;
  std::vector<float> bound_, gain_;
  std::size_t state_at_;
};

std::map<std::string, Shape> hgrn_shapes(const BackboneConfig& c) {
  const auto d = static_cast<std::size_t>(c.d_model), inner = static_cast<std::size_t>(c.inner());
  return {{"i_proj.weight", {inner, d}}, {"f_proj.weight", {inner, d}}, {"g_proj.weight", {inner, d}},
          {"g_norm.weight", {inner}},    {"o_proj.weight", {d, inner}}, {kLowerBound, {inner}}};
}

std::map<std::string, Shape> hgrn2_shapes(const BackboneConfig& c) {
  const HeadSizes s(c);
  return {{"q_proj.weight", {s.key_width(), s.d}}, {"f_proj.weight", {s.key_width(), s.d}},
          {"i_proj.weight", {s.inner, s.d}},       {"g_norm.weight", {s.inner}},
          {"o_proj.weight", {s.d, s.inner}},       {kLowerBound, {s.key_width()}}};
}

void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == kLowerBound) return;  // zeros: bounds rise evenly
  if (name == "g_norm.weight") {
    std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  } else {
    draw_linear(tensor.values, tensor.shape[1], rng);
  }
}

template <typename Kind>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Kind>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> hgrn(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Gate<T> gate = split_gate(config, w, prefix, x);
  const Var<T> h = gated_scan(gate.kept, mul(gate.taken, silu(linear(x, w.at(prefix + "i_proj.weight")))));
  const Var<T> normal = rms_norm(h, w.at(prefix + "g_norm.weight"), static_cast<T>(config.norm_eps));
  return linear(mul(normal, silu(linear(x, w.at(prefix + "g_proj.weight")))), w.at(prefix + "o_proj.weight"));
}

template <typename T>
autograd::Var<T> hgrn2(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const HeadSizes s(config);
  const std::size_t batch = x.dims()[0], time = x.dims()[1];
  const Dims keys{batch, time, s.heads, s.keys}, values{batch, time, s.heads, s.values};
  const Gate<T> gate = split_gate(config, w, prefix, x);
  const Var<T> q = scale(silu(linear(x, w.at(prefix + "q_proj.weight"))), static_cast<T>(query_scale(s)));
  const Var<T> v = reshape(linear(x, w.at(prefix + "i_proj.weight")), values);
  const Var<T> o = linear_attention(reshape(q, keys), reshape(gate.taken, keys), v, reshape(gate.kept, keys));
  const Var<T> normal = rms_norm(reshape(o, {batch, time, s.inner}), w.at(prefix + "g_norm.weight"), static_cast<T>(config.norm_eps));
  return linear(normal, w.at(prefix + "o_proj.weight"));
}

Result<void> any(const BackboneConfig&, std::string_view) { return {}; }

}  // namespace

const LayerKind kHgrnLayer{any, hgrn_shapes, draw, make<Hgrn>, hgrn<float>, hgrn<double>};
const LayerKind kHgrn2Layer{matrix_heads::check_heads, hgrn2_shapes, draw, make<Hgrn2>, hgrn2<float>, hgrn2<double>};

}  // namespace kizzasi
