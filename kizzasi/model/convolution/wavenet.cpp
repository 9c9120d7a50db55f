#include "kizzasi/model/convolution/wavenet.h"

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/dilated_conv.h"
#include "kizzasi/model/layer.h"
#include "kizzasi/model/layer_init.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr std::size_t kCycle = 10;  // blocks after which taps stand side by side again: 1, 2, 4, ..., 512

// "layers.3.mixer." -> 3
std::size_t block_of(const std::string& prefix) { return std::stoul(prefix.substr(prefix.find_first_of("0123456789"))); }

struct Sizes {
  explicit Sizes(const BackboneConfig& c)
      : d(static_cast<std::size_t>(c.d_model)),
        inner(static_cast<std::size_t>(c.d_inner > 0 ? c.d_inner : c.d_model)),
        taps(static_cast<std::size_t>(c.d_conv)) {}
  std::size_t d, inner, taps;
  kernels::DilatedTaps of_block(std::size_t block) const { return {taps, std::size_t{1} << block % kCycle}; }
};

// Where a block stands: the first begins the sum that goes to the output, the last ends it.
template <bool kFirst, bool kLast>
class Block final : public Layer {
 public:
  Block(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : s_(c),
        taps_(s_.of_block(block_of(w.prefix()))),
        conv_(w.pack("conv.weight")),
        skip_(w.pack("skip_out.weight")),
        out_(w.pack(kLast ? "mix.weight" : "residual_out.weight")),
        bias_(w.values_or_none("conv.bias")),
        seen_at_(layout.add(name + ".frames", FieldType::kU64, {1})) {
    if (taps_.reach() > 0) history_at_ = layout.add(name + ".history", FieldType::kF32, {taps_.reach(), s_.d}, true);
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return rows * (s_.taps * s_.d + 2 * s_.inner + s_.d) + (kFirst && kLast ? rows * s_.d : 0);
  }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan sum = take.rows(in.rows, kFirst && kLast ? s_.d : 0);
    advance_beside(lanes, in, sum, out, take.rest());
  }

  void advance_beside(std::span<const Lane> lanes, MatrixView in, MatrixSpan sum, MatrixSpan out,
                      std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan taken = take.rows(in.rows, s_.taps * s_.d), gated = take.rows(in.rows, 2 * s_.inner), part = take.rows(in.rows, s_.d);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      std::uint64_t& seen = *reinterpret_cast<std::uint64_t*>(lanes[i].state + seen_at_);
      kernels::dilated_rows(taps_, {state_floats(lanes[i].state, history_at_, taps_.reach() * s_.d), seen}, lane_rows(in, lanes.size(), i),
                            lane_rows(taken, lanes.size(), i));
    }
    kernels::linear(conv_, taken, bias_, gated);
    for (std::size_t r = 0; r < in.rows; ++r) {
      const std::span<float> z = gated.row(r).first(s_.inner), gate = gated.row(r).last(s_.inner);
      kernels::tanh(z, z);
      kernels::sigmoid(gate, gate);
      for (std::size_t e = 0; e < s_.inner; ++e) z[e] *= gate[e];
    }
    const MatrixSpan z = gated.columns(0, s_.inner);
    if constexpr (!kLast) kernels::linear(out_, z, {}, out);
    kernels::linear(skip_, z, {}, kFirst ? sum : part);
    for (std::size_t r = 0; r < in.rows; ++r) {
      const std::span<float> to = sum.row(r);
      if constexpr (!kFirst) {
        for (std::size_t c = 0; c < s_.d; ++c) to[c] += part.row(r)[c];
      }
      if constexpr (kLast) kernels::relu(to, to);
    }
    if constexpr (kLast) kernels::linear(out_, sum, {}, out);
  }

 private:
  Sizes s_;
  kernels::DilatedTaps taps_;
  kernels::PackedWeight conv_, skip_, out_;
  std::vector<float> bias_;
  std::size_t seen_at_, history_at_ = 0;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

template <bool kLast>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Sizes s(c);
  std::map<std::string, Shape> all{{"conv.weight", {2 * s.inner, s.taps * s.d}},
                                   {"skip_out.weight", {s.d, s.inner}},
                                   {kLast ? "mix.weight" : "residual_out.weight", {s.d, kLast ? s.d : s.inner}}};
  if (c.conv_bias) all.emplace("conv.bias", Shape{2 * s.inner});
  return all;
}

void draw(const BackboneConfig& c, std::int64_t, const std::string& name, Tensor& tensor, Rng rng) {
  const Sizes s(c);
  draw_linear(tensor.values, name == "conv.bias" ? s.taps * s.d : tensor.shape[1], rng);
}

template <bool kFirst, bool kLast>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Block<kFirst, kLast>>(c, w, name, layout);
}

template <typename T, bool kFirst, bool kLast>
autograd::Var<T> forward_beside(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x,
                                autograd::Var<T>& sum) {
  using namespace autograd;
  const Sizes s(config);
  const kernels::DilatedTaps taps = s.of_block(block_of(prefix));
  const Var<T> bias = config.conv_bias ? w.at(prefix + "conv.bias") : Var<T>{};
  const Var<T> gated = linear(dilated_rows(x, taps.taps, taps.dilation), w.at(prefix + "conv.weight"), bias);
  const Var<T> z = mul(tanh(slice(gated, 2, 0, s.inner)), sigmoid(slice(gated, 2, s.inner, 2 * s.inner)));
  const Var<T> part = linear(z, w.at(prefix + "skip_out.weight"));
  sum = kFirst ? part : add(sum, part);
  return kLast ? linear(relu(sum), w.at(prefix + "mix.weight")) : linear(z, w.at(prefix + "residual_out.weight"));
}

template <typename T, bool kFirst, bool kLast>
autograd::Var<T> forward(const BackboneConfig& config, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  autograd::Var<T> none;
  return forward_beside<T, kFirst, kLast>(config, w, prefix, x, none);
}

std::size_t width_of(const BackboneConfig& c) { return static_cast<std::size_t>(c.d_model); }

template <bool kFirst, bool kLast>
constexpr LayerKind kKind{check,
                          shapes<kLast>,
                          draw,
                          make<kFirst, kLast>,
                          forward<float, kFirst, kLast>,
                          forward<double, kFirst, kLast>,
                          width_of,
                          forward_beside<float, kFirst, kLast>,
                          forward_beside<double, kFirst, kLast>};

constexpr Sublayer kBlock{"norm", "mixer", [](const BackboneConfig& c, std::int64_t block) -> const LayerKind& {
                            const bool first = block == 0, last = block + 1 == c.n_layers;
                            if (first) return last ? kKind<true, true> : kKind<true, false>;
                            return last ? kKind<false, true> : kKind<false, false>;
                          }};

}  // namespace

const StackForm kWaveNet{{&kBlock, 1}};

}  // namespace kizzasi
