#include "kizzasi/model/xlstm/mlstm_block.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/heads.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/xlstm/mlstm_cell.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct Sizes {
  std::size_t d, inner, heads, width, taps, block;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.inner())),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.inner() / c.head_dim))),
        width(inner / heads),
        taps(static_cast<std::size_t>(c.d_conv)),
        block(static_cast<std::size_t>(c.qkv_block)) {}
  double key_scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
  MlstmCell::Sizes cell(const BackboneConfig& c) const {
    return {heads, width, width, static_cast<float>(c.mixer_norm_eps), static_cast<float>(c.norm_eps)};
  }
};

// Small matrices along the diagonal, (blocks, B, B) as published.
struct BlockDiagonal {
  std::size_t block;
  std::vector<float> columns;  // [k][channel]: what input k of the channel's block is weighted by
  std::vector<float> bias;
  BlockDiagonal(const LayerWeights& w, const std::string& name, const Sizes& s)
      : block(s.block), columns(transposed(w.at(name + ".weight").values, s.inner, s.block)), bias(w.values_or_none(name + ".bias")) {}
  // x and y do not overlap.
  void operator()(std::span<const float> x, std::span<float> y) const noexcept {
    for (std::size_t at = 0; at < y.size(); at += block) {
      for (std::size_t o = at; o < at + block; ++o) {
        float sum = bias.empty() ? 0.0f : bias[o];
        for (std::size_t k = 0; k < block; ++k) sum += columns[k * y.size() + o] * x[at + k];
        y[o] = sum;
      }
    }
  }
};

class MlstmInner final : public Layer {
 public:
  MlstmInner(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        up_(w.pack("proj_up.weight")),
        down_(w.pack("proj_down.weight")),
        enter_(w.pack("mlstm_cell.igate.weight")),
        keep_(w.pack("mlstm_cell.fgate.weight")),
        up_bias_(w.values_or_none("proj_up.bias")),
        down_bias_(w.values_or_none("proj_down.bias")),
        enter_bias_(w.at("mlstm_cell.igate.bias").values),
        keep_bias_(w.at("mlstm_cell.fgate.bias").values),
        conv_(transposed(w.at("conv1d.conv.weight").values, s_.inner, s_.taps)),
        conv_bias_(w.at("conv1d.conv.bias").values),
        skip_(w.at("learnable_skip").values),
        q_(w, "q_proj", s_),
        k_(w, "k_proj", s_),
        v_(w, "v_proj", s_),
        conv_at_(layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.inner}, true)),
        cell_(s_.cell(c), w.at("mlstm_cell.outnorm.weight").values, name, layout) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (6 * s_.inner + 2 * s_.heads) + cell_.scratch_floats(rows);
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan up = take.rows(in.rows, 2 * s_.inner), seen = take.rows(in.rows, s_.inner), qkv = take.rows(in.rows, 3 * s_.inner);
    const MatrixSpan enter = take.rows(in.rows, s_.heads), keep = take.rows(in.rows, s_.heads);
    const MatrixSpan x = up.columns(0, s_.inner), z = up.columns(s_.inner, s_.inner);
    const MatrixSpan q = qkv.columns(0, s_.inner), k = qkv.columns(s_.inner, s_.inner), v = qkv.columns(2 * s_.inner, s_.inner);
    kernels::linear(up_, in, up_bias_, up);
    for (std::size_t r = 0; r < in.rows; ++r) std::copy_n(x.row(r).data(), s_.inner, seen.row(r).data());
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const MatrixSpan own = lane_rows(seen, lanes.size(), i);
      kernels::conv1d_step(conv_, conv_bias_, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.inner), own, own);
    }
    for (std::size_t r = 0; r < in.rows; ++r) {
      kernels::silu(seen.row(r), seen.row(r));
      q_(seen.row(r), q.row(r));
      k_(seen.row(r), k.row(r));
      v_(x.row(r), v.row(r));
    }
    kernels::linear(enter_, qkv, enter_bias_, enter);
    kernels::linear(keep_, qkv, keep_bias_, keep);
    const auto scale = static_cast<float>(s_.key_scale());
    for (std::size_t r = 0; r < in.rows; ++r) {
      for (std::size_t c = 0; c < s_.inner; ++c) k.row(r)[c] *= scale;
    }
    cell_.advance(lanes, q, k, v, enter, keep, x, take.rest());
    for (std::size_t r = 0; r < in.rows; ++r) {
      for (std::size_t c = 0; c < s_.inner; ++c) x.row(r)[c] += skip_[c] * seen.row(r)[c];
      kernels::mul_silu(x.row(r), z.row(r), x.row(r));
    }
    kernels::linear(down_, x, down_bias_, out);
  }

 private:
  Sizes s_;
  kernels::PackedWeight up_, down_, enter_, keep_;
  std::vector<float> up_bias_, down_bias_, enter_bias_, keep_bias_;
  std::vector<float> conv_, conv_bias_, skip_;  // conv_: (taps, inner)
  BlockDiagonal q_, k_, v_;
  std::size_t conv_at_;
  MlstmCell cell_;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c);
  const auto refuse = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  if (s.inner % s.heads != 0 || (c.n_heads == 0 && c.inner() % c.head_dim != 0)) {
    return refuse(fmt::format("an inner width of {} in heads of {}", s.inner, c.head_dim), "whole heads: set n_heads or head_dim");
  }
  if (s.inner % s.block != 0) {
    return refuse(fmt::format("an inner width of {} in blocks of {}", s.inner, s.block), "qkv_block dividing the inner width");
  }
  return {};
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{
      {"proj_up.weight", {2 * s.inner, s.d}}, {"proj_down.weight", {s.d, s.inner}}, {"conv1d.conv.weight", {s.inner, 1, s.taps}},
      {"conv1d.conv.bias", {s.inner}},        {"learnable_skip", {s.inner}},        {"mlstm_cell.outnorm.weight", {s.inner}}};
  for (const std::string each : {"q_proj", "k_proj", "v_proj"}) {
    all.emplace(each + ".weight", Shape{s.inner / s.block, s.block, s.block});
    if (c.proj_bias) all.emplace(each + ".bias", Shape{s.inner});
  }
  for (const std::string each : {"mlstm_cell.igate", "mlstm_cell.fgate"}) {
    all.insert({{each + ".weight", {s.heads, 3 * s.inner}}, {each + ".bias", {s.heads}}});
  }
  if (c.proj_bias) all.insert({{"proj_up.bias", {2 * s.inner}}, {"proj_down.bias", {s.d}}});
  return all;
}

// As published: gates see nothing at first but their biases, what stays is spread over [3, 6], what enters lies around 0.
void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  if (name == "learnable_skip" || name == "mlstm_cell.outnorm.weight") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  if (name == "mlstm_cell.igate.bias") {
    for (float& value : tensor.values) value = static_cast<float>(0.1 * rng.normal());
  }
  if (name == "mlstm_cell.fgate.bias") {
    const double last = std::max(1.0, static_cast<double>(s.heads) - 1);
    for (std::size_t h = 0; h < s.heads; ++h) tensor.values[h] = static_cast<float>(3 + 3 * static_cast<double>(h) / last);
  }
  if (name.ends_with(".weight") && !name.starts_with("mlstm_cell.")) draw_linear(tensor.values, tensor.shape.back(), rng);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<MlstmInner>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> u) {
  using namespace autograd;
  const Sizes s(config);
  const std::size_t batch = u.dims()[0], time = u.dims()[1];
  const auto weight = [&](const std::string& name) { return w.has(prefix + name) ? w.at(prefix + name) : Var<T>{}; };
  const auto project = [&](Var<T> rows, const std::string& name) { return linear(rows, weight(name + ".weight"), weight(name + ".bias")); };
  const auto blockwise = [&](Var<T> rows, const std::string& name) {
    const Var<T> y = headwise_linear(rows, weight(name + ".weight")), bias = weight(name + ".bias");
    return bias.tape == nullptr ? y : add(y, bias);
  };
  const Var<T> up = project(u, "proj_up");
  const Var<T> x = slice(up, 2, 0, s.inner), z = slice(up, 2, s.inner, 2 * s.inner);
  const Var<T> seen = silu(conv1d(x, weight("conv1d.conv.weight"), weight("conv1d.conv.bias")));
  const std::array<Var<T>, 3> qkv{blockwise(seen, "q_proj"), blockwise(seen, "k_proj"), blockwise(x, "v_proj")};
  const Var<T> side_by_side = concat(std::span<const Var<T>>(qkv), 2);
  const auto heads = [&](Var<T> rows) { return reshape(rows, {batch, time, s.heads, s.width}); };
  const Var<T> cell = mlstm_cell(heads(qkv[0]), heads(scale(qkv[1], static_cast<T>(s.key_scale()))), heads(qkv[2]),
                                 project(side_by_side, "mlstm_cell.igate"), project(side_by_side, "mlstm_cell.fgate"),
                                 static_cast<T>(config.mixer_norm_eps), static_cast<T>(config.norm_eps));
  const Var<T> h = add(mul(cell, weight("mlstm_cell.outnorm.weight")), mul(seen, weight("learnable_skip")));
  return project(mul(h, silu(z)), "proj_down");
}

}  // namespace

const LayerKind kMlstmInner{check, shapes, draw, make, forward<float>, forward<double>};

namespace {
constexpr std::array<Sublayer, 1> kBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kMlstmInner; }}}};
}  // namespace
const StackForm kMlstmStack{kBlock, NormKind::kLayer};

}  // namespace kizzasi
