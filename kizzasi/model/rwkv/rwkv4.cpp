#include "kizzasi/model/rwkv/rwkv4.h"

#include <array>
#include <cmath>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/wkv4.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"
#include "kizzasi/model/norm_entry.h"
#include "kizzasi/model/rwkv/channel_mix.h"
#include "kizzasi/model/rwkv/token_shift.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

class TimeMix final : public Layer {
 public:
  TimeMix(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout)
      : d_(static_cast<std::size_t>(c.d_model)),
        decay_(minus_exp(w.at("time_decay").values)),
        first_(w.at("time_first").values),
        k_(project(w, "time_mix_k", "key")),
        v_(project(w, "time_mix_v", "value")),
        r_(project(w, "time_mix_r", "receptance")),
        out_(w.pack("output.weight")),
        last_at_(layout.add(name + ".att_x", FieldType::kF32, {d_})),
        aa_at_(layout.add(name + ".aa", FieldType::kF32, {d_})),
        bb_at_(layout.add(name + ".bb", FieldType::kF32, {d_})),
        pp_at_(layout.add(name + ".pp", FieldType::kF32, {d_}, false, -1e30f)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * 5 * d_; }

  void advance(std::span<const Lane> lanes, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const MatrixSpan before = take.rows(in.rows, d_), mixed = take.rows(in.rows, d_);
    const MatrixSpan k = take.rows(in.rows, d_), v = take.rows(in.rows, d_), r = take.rows(in.rows, d_);
    rwkv::rows_before(lanes, in, last_at_, before);
    const auto into = [&](const Projection& p, MatrixSpan y) {
      rwkv::mix(before, in, p.mix, mixed);
      kernels::linear(p.weight, mixed, {}, y);
    };
    into(k_, k);
    into(v_, v);
    into(r_, r);
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const auto state = [&](std::size_t at) { return state_floats(lanes[i].state, at, d_); };
      kernels::wkv4({decay_, first_}, lane_rows(MatrixView(k), lanes.size(), i), lane_rows(MatrixView(v), lanes.size(), i),
                    {state(aa_at_), state(bb_at_), state(pp_at_)}, lane_rows(v, lanes.size(), i));
    }
    for (std::size_t row = 0; row < in.rows; ++row) kernels::sigmoid(r.row(row), r.row(row));
    rwkv::multiply(r, v);
    kernels::linear(out_, r, {}, out);
  }

 private:
  struct Projection {
    std::vector<float> mix;
    kernels::PackedWeight weight;
  };
  static Projection project(const LayerWeights& w, const char* mix, const char* name) {
    return {w.at(mix).values, w.pack(std::string(name) + ".weight")};
  }

  std::size_t d_;
  std::vector<float> decay_, first_;
  Projection k_, v_, r_;
  kernels::PackedWeight out_;
  std::size_t last_at_, aa_at_, bb_at_, pp_at_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const auto d = static_cast<std::size_t>(c.d_model);
  std::map<std::string, Shape> all;
  for (const char* row : {"time_decay", "time_first", "time_mix_k", "time_mix_v", "time_mix_r"}) all.emplace(row, Shape{d});
  for (const char* matrix : {"key", "value", "receptance", "output"}) all.emplace(std::string(matrix) + ".weight", Shape{d, d});
  return all;
}

// As BlinkDL/RWKV-LM draws them (RWKV-v4neo): slow channels first, zigzags in the bonus, and zeros but for the values.
void draw(const BackboneConfig& c, std::int64_t layer, const std::string& name, Tensor& tensor, Rng rng) {
  if (name == "value.weight") draw_linear(tensor.values, tensor.shape[1], rng);
  if (tensor.shape.size() != 1) return;
  const rwkv::Depth depth(c, layer);
  const auto d = static_cast<double>(c.d_model);
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const auto n = static_cast<double>(i);
    double value = 0;
    if (name == "time_decay") {
      value = -5 + 8 * std::pow(n / std::max(1.0, d - 1), 0.7 + 1.3 * depth.up);
    } else if (name == "time_first") {
      value = std::log(0.3) + 0.5 * (static_cast<double>((i + 1) % 3) - 1);
    } else {
      value = std::pow(n / d, name == "time_mix_r" ? 0.5 * depth.down : depth.down) + (name == "time_mix_v" ? 0.3 * depth.up : 0);
    }
    tensor.values[i] = static_cast<float>(value);
  }
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<TimeMix>(c, w, name, layout);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig&, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Var<T> before = shifted(x);
  const auto project = [&](const char* share, const char* name) {
    return linear(rwkv::mix(before, x, w.at(prefix + share)), w.at(prefix + name));
  };
  const Var<T> k = project("time_mix_k", "key.weight"), v = project("time_mix_v", "value.weight");
  const Var<T> r = sigmoid(project("time_mix_r", "receptance.weight"));
  const Var<T> y = wkv4(k, v, scale(exp(w.at(prefix + "time_decay")), T{-1}), w.at(prefix + "time_first"));
  return linear(mul(r, y), w.at(prefix + "output.weight"));
}

}  // namespace

const LayerKind kRwkv4TimeMix{check, shapes, draw, make, forward<float>, forward<double>};

namespace {
constexpr std::array kSublayers = std::to_array<Sublayer>({
    {"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kRwkv4TimeMix; }},
    {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kChannelMix4; }},
});
}  // namespace
const StackForm kRwkv4{kSublayers, NormKind::kLayer, &kLayerNormEntry};

}  // namespace kizzasi
