#include "kizzasi/model/rwkv/channel_mix.h"

#include <cmath>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/rwkv/token_shift.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

// The versions differ in the name of the mix and in what it is the share of: up to 5 the frame itself, then the one before.
constexpr bool gated(int version) { return version < 7; }
std::string mix_name(int version, char of) { return std::string(version < 6 ? "time_mix_" : version == 6 ? "time_maa_" : "x_") + of; }

std::size_t inner(const BackboneConfig& c, int version) {
  if (c.d_ffn > 0) return static_cast<std::size_t>(c.d_ffn);
  if (version == 4 || version == 7) return static_cast<std::size_t>(4 * c.d_model);
  return static_cast<std::size_t>(std::max<std::int64_t>(32, c.d_model * 7 / 2 / 32 * 32));
}

template <int kVersion>
class ChannelMix final : public Layer {
 public:
  ChannelMix(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : d_(static_cast<std::size_t>(c.d_model)),
        inner_(inner(c, kVersion)),
        mix_k_(w.at(mix_name(kVersion, 'k')).values),
        key_(w.pack("key.weight")),
        value_(w.pack("value.weight")),
        last_at_(layout.add(name + ".ffn_x", FieldType::kF32, {d_})) {
    if (!gated(kVersion)) return;
    mix_r_ = w.at(mix_name(kVersion, 'r')).values;
    receptance_ = w.pack("receptance.weight");
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * (3 * d_ + inner_); }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan before = take.rows(in.rows, d_), mixed = take.rows(in.rows, d_), gate = take.rows(in.rows, d_);
    const MatrixSpan k = take.rows(in.rows, inner_);
    rwkv::rows_before(lanes, in, last_at_, before);
    const MatrixView from = kVersion < 6 ? MatrixView(before) : in, to = kVersion < 6 ? in : MatrixView(before);
    rwkv::mix(from, to, mix_k_, mixed);
    kernels::linear(key_, mixed, {}, k);
    for (std::size_t r = 0; r < in.rows; ++r) {
      for (float& each : k.row(r)) each = each > 0 ? each * each : (each <= 0 ? 0.0f : each);  // NaN stays
    }
    if constexpr (gated(kVersion)) {
      rwkv::mix(from, to, mix_r_, mixed);
      kernels::linear(receptance_, mixed, {}, gate);
      for (std::size_t r = 0; r < in.rows; ++r) kernels::sigmoid(gate.row(r), gate.row(r));
    }
    kernels::linear(value_, k, {}, out);
    if constexpr (gated(kVersion)) rwkv::multiply(out, gate);
  }

 private:
  std::size_t d_, inner_;
  std::vector<float> mix_k_, mix_r_;
  kernels::PackedWeight key_, value_, receptance_;
  std::size_t last_at_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

template <int kVersion>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const auto d = static_cast<std::size_t>(c.d_model);
  std::map<std::string, Shape> all{
      {mix_name(kVersion, 'k'), {d}}, {"key.weight", {inner(c, kVersion), d}}, {"value.weight", {d, inner(c, kVersion)}}};
  if (gated(kVersion)) all.insert({{mix_name(kVersion, 'r'), {d}}, {"receptance.weight", {d, d}}});
  return all;
}

// As BlinkDL/RWKV-LM draws them: what leads out of the layer starts at zero.
template <int kVersion>
void draw(const BackboneConfig& c, std::int64_t layer, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == "key.weight") draw_linear(tensor.values, tensor.shape[1], rng);
  if (tensor.shape.size() != 1) return;
  const double down = rwkv::Depth(c, layer).down, power = kVersion == 7 ? std::pow(down, 4) : down;
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double share = std::pow(static_cast<double>(i) / static_cast<double>(c.d_model), power);
    tensor.values[i] = static_cast<float>(kVersion < 6 ? share : 1 - share);
  }
}

template <int kVersion>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<ChannelMix<kVersion>>(c, w, name, layout);
}

template <typename T, int kVersion>
autograd::Var<T> forward(const BackboneConfig&, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Var<T> before = shifted(x), from = kVersion < 6 ? before : x, to = kVersion < 6 ? x : before;
  const Var<T> k = square(relu(linear(rwkv::mix(from, to, w.at(prefix + mix_name(kVersion, 'k'))), w.at(prefix + "key.weight"))));
  const Var<T> y = linear(k, w.at(prefix + "value.weight"));
  if constexpr (!gated(kVersion)) return y;
  const Var<T> r = linear(rwkv::mix(from, to, w.at(prefix + mix_name(kVersion, 'r'))), w.at(prefix + "receptance.weight"));
  return mul(sigmoid(r), y);
}

template <int kVersion>
constexpr LayerKind kind_of() {
  return {check, shapes<kVersion>, draw<kVersion>, make<kVersion>, forward<float, kVersion>, forward<double, kVersion>};
}

}  // namespace

const LayerKind kChannelMix4 = kind_of<4>(), kChannelMix5 = kind_of<5>(), kChannelMix6 = kind_of<6>(), kChannelMix7 = kind_of<7>();

}  // namespace kizzasi
