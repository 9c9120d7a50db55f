#include "kizzasi/model/xlstm/slstm.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "kizzasi/autograd/heads.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/autograd/xlstm.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr std::array kSlots{"fgate.weight", "igate.weight", "zgate.weight", "ogate.weight"};  // what feeds i, f, z, o
constexpr const char *kRecurrence = "slstm_cell._recurrent_kernel_", *kBias = "slstm_cell._bias_";

struct Sizes {
  std::size_t d, heads, width, taps;
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        heads(static_cast<std::size_t>(c.n_heads > 0 ? c.n_heads : std::max<std::int64_t>(1, c.d_model / c.head_dim))),
        width(d / heads),
        taps(c.slstm_conv ? static_cast<std::size_t>(c.d_conv) : 0) {}
};

// The matrices of all heads, one after the other in a tensor of (heads, outputs, P).
std::vector<kernels::PackedWeight> pack_heads(const LayerWeights& w, std::string_view name) {
  std::vector<kernels::PackedWeight> heads;
  for (std::size_t h = 0; h < w.at(name).shape[0]; ++h) heads.push_back(w.pack_of_stack(name, h));
  return heads;
}

class Slstm final : public Layer {
 public:
  Slstm(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        recurrence_(pack_heads(w, kRecurrence)),
        bias_(w.at(kBias).values),
        gain_(w.at("group_norm.weight").values),
        zeros_(s_.width),
        epsilon_(static_cast<float>(c.norm_eps)),
        y_at_(layout.add(name + ".y", FieldType::kF32, {s_.d})),
        c_at_(layout.add(name + ".c", FieldType::kF32, {s_.d})),
        n_at_(layout.add(name + ".n", FieldType::kF32, {s_.d})),
        m_at_(layout.add(name + ".m", FieldType::kF32, {s_.d})) {
    for (const char* each : kSlots) slots_.push_back(pack_heads(w, each));
    if (s_.taps == 0) return;
    conv_ = transposed(w.at("conv1d.conv.weight").values, s_.d, s_.taps);
    conv_bias_ = w.at("conv1d.conv.bias").values;
    conv_at_ = layout.add(name + ".conv", FieldType::kF32, {s_.taps, s_.d}, true);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * 6 * s_.d + 4 * s_.width + 2 * s_.d; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan x = take.rows(in.rows, s_.d), y = take.rows(in.rows, s_.d), raw = take.rows(in.rows, 4 * s_.d);
    const MatrixSpan inside = take.rows(1, 4 * s_.width);
    const std::span<float> most = take.floats(s_.d), spare = take.floats(s_.d);
    for (std::size_t r = 0; r < in.rows; ++r) std::copy_n(in.row(r).data(), s_.d, x.row(r).data());
    for (std::size_t i = 0; i < lanes.size() && s_.taps > 0; ++i) {
      const MatrixSpan own = lane_rows(x, lanes.size(), i);
      kernels::conv1d_step(conv_, conv_bias_, s_.taps, state_floats(lanes[i].state, conv_at_, s_.taps * s_.d), own, own);
    }
    for (std::size_t r = 0; r < in.rows && s_.taps > 0; ++r) kernels::silu(x.row(r), x.row(r));
    for (std::size_t slot = 0; slot < 4; ++slot) {
      const MatrixView from = slot < 2 ? MatrixView(x) : in;
      for (std::size_t h = 0; h < s_.heads; ++h) {
        const std::size_t at = h * s_.width;
        kernels::linear(slots_[slot][h], from.columns(at, s_.width), std::span(bias_).subspan(slot * s_.d + at, s_.width),
                        raw.columns(slot * s_.d + at, s_.width));
      }
    }
    const std::size_t rows = in.rows / lanes.size();
    for (std::size_t r = 0; r < in.rows; ++r) {
      cell(lanes[r / rows].state, raw.row(r), inside, most, spare, y.row(r));
      for (std::size_t at = 0; at < s_.d; at += s_.width) {
        const std::span<float> head = y.row(r).subspan(at, s_.width);
        kernels::layer_norm(head, std::span(gain_).subspan(at, s_.width), zeros_, epsilon_, head);
      }
    }
    for (std::size_t r = 0; r < in.rows; ++r) std::copy_n(y.row(r).data(), s_.d, out.row(r).data());
  }

 private:
  void cell(std::byte* state, std::span<float> raw, MatrixSpan inside, std::span<float> most, std::span<float> spare,
            std::span<float> out) const noexcept {
    const auto field = [&](std::size_t at) { return state_floats(state, at, s_.d); };
    const std::span<float> last = field(y_at_), c = field(c_at_), n = field(n_at_), m = field(m_at_);
    for (std::size_t h = 0; h < s_.heads; ++h) {
      kernels::linear(recurrence_[h], MatrixView(last.data() + h * s_.width, 1, s_.width), {}, inside);
      for (std::size_t g = 0; g < 4; ++g) {
        for (std::size_t p = 0; p < s_.width; ++p) raw[g * s_.d + h * s_.width + p] += inside.row(0)[g * s_.width + p];
      }
    }
    const std::span<float> i = raw.first(s_.d), f = raw.subspan(s_.d, s_.d), z = raw.subspan(2 * s_.d, s_.d), o = raw.subspan(3 * s_.d);
    for (std::size_t j = 0; j < s_.d; ++j) spare[j] = -f[j];
    kernels::softplus(spare, spare);  // -log sigmoid
    for (std::size_t j = 0; j < s_.d; ++j) {
      const float stays = m[j] - spare[j];
      most[j] = n[j] == 0 ? i[j] : std::max(stays, i[j]);  // nothing stands yet before the first frame
      f[j] = stays - most[j];
      i[j] -= most[j];
      m[j] = most[j];
    }
    kernels::exp(f, f);
    kernels::exp(i, i);
    kernels::tanh(z, z);
    kernels::sigmoid(o, o);
    for (std::size_t j = 0; j < s_.d; ++j) {
      const float keep = std::min(f[j], 1.0f);
      c[j] = keep * c[j] + i[j] * z[j];
      n[j] = keep * n[j] + i[j];
      last[j] = o[j] * c[j] / n[j];
      out[j] = last[j];
    }
  }

  Sizes s_;
  std::vector<std::vector<kernels::PackedWeight>> slots_;  // (4)(heads)
  std::vector<kernels::PackedWeight> recurrence_;
  std::vector<float> bias_, gain_, zeros_, conv_, conv_bias_;
  float epsilon_;
  std::size_t y_at_, c_at_, n_at_, m_at_, conv_at_ = 0;
};

Result<void> check(const BackboneConfig& c, std::string_view where) {
  const Sizes s(c);
  if (s.d % s.heads == 0 && (c.n_heads > 0 || c.d_model % c.head_dim == 0)) return {};
  return fail({Fault::kBadUse, fmt::format("d_model {} in heads of {}", c.d_model, c.head_dim), std::string(where), "whole heads",
               "Set n_heads to a divisor of d_model, or head_dim."});
}

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{kRecurrence, {s.heads, 4 * s.width, s.width}}, {kBias, {4 * s.d}}, {"group_norm.weight", {s.d}}};
  for (const char* each : kSlots) all.emplace(each, Shape{s.heads, s.width, s.width});
  if (s.taps > 0) all.insert({{"conv1d.conv.weight", {s.d, 1, s.taps}}, {"conv1d.conv.bias", {s.d}}});
  return all;
}

// What stays is kept for long where its bias is high: spread over [3, 6]; all else as torch draws it.
void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  if (name == "group_norm.weight") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
  if (tensor.shape.size() == 3) draw_linear(tensor.values, name.starts_with("conv1d") ? s.taps : s.width, rng);
  for (std::size_t j = 0; j < s.d && name == kBias; ++j) {
    tensor.values[s.d + j] = static_cast<float>(3 + 3 * static_cast<double>(j) / std::max(1.0, static_cast<double>(s.d) - 1));
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Slstm>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Sizes s(config);
  const auto weight = [&](const std::string& name) { return w.at(prefix + name); };
  const Var<T> seen = s.taps == 0 ? x : silu(conv1d(x, weight("conv1d.conv.weight"), weight("conv1d.conv.bias")));
  std::vector<Var<T>> raw;
  for (std::size_t slot = 0; slot < 4; ++slot) raw.push_back(headwise_linear(slot < 2 ? seen : x, weight(kSlots[slot])));
  const Var<T> y = slstm(add(concat(std::span<const Var<T>>(raw), 2), weight(kBias)), weight(kRecurrence));
  const Dims dims = x.dims();
  const Var<T> normed = layer_norm(reshape(y, {dims[0], dims[1], s.heads, s.width}), Var<T>{}, Var<T>{}, static_cast<T>(config.norm_eps));
  return mul(reshape(normed, dims), weight("group_norm.weight"));
}

}  // namespace

const LayerKind kSlstm{check, shapes, draw, make, forward<float>, forward<double>};

namespace {
constexpr std::array<Sublayer, 2> kBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kSlstm; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kExactGeGlu; }}}};
}  // namespace
const StackForm kSlstmStack{kBlock, NormKind::kLayer};

}  // namespace kizzasi
