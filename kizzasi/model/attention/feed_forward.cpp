#include "kizzasi/model/attention/feed_forward.h"

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/fused.h"
#include "kizzasi/model/layer_init.h"
#include "kizzasi/model/layer_pack.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

enum class Form { kSwiGlu, kGeGlu, kExactGeGlu, kGelu };
constexpr bool gated(Form form) { return form != Form::kGelu; }
bool biased(const BackboneConfig& c, Form form) { return form == Form::kGeGlu || form == Form::kGelu || c.proj_bias; }

std::size_t inner(const BackboneConfig& c, Form form) {
  if (c.d_ffn > 0) return static_cast<std::size_t>(c.d_ffn);
  return static_cast<std::size_t>(gated(form) ? (c.d_model * 8 / 3 + 7) / 8 * 8 : 4 * c.d_model);
}

template <Form kForm>
class FeedForward final : public Layer {
 public:
  FeedForward(const BackboneConfig& c, const LayerWeights& w)
      : inner_(inner(c, kForm)), up_(w.pack("up_proj.weight")), down_(w.pack("down_proj.weight")) {
    up_bias_ = w.values_or_none("up_proj.bias");
    down_bias_ = w.values_or_none("down_proj.bias");
    if constexpr (gated(kForm)) {
      gate_ = w.pack("gate_proj.weight");
      gate_bias_ = w.values_or_none("gate_proj.bias");
    }
  }

  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    return gated(kForm) ? 2 * rows * inner_ : kernels::feed_forward_floats(rows, inner_);
  }

  void advance(std::span<const Lane>, MatrixView in, MatrixSpan out, std::span<float> scratch) const noexcept override {
    if constexpr (!gated(kForm)) {
      kernels::feed_forward(up_, up_bias_, kernels::gelu_tanh, down_, down_bias_, in, out, scratch);
    } else {
      Scratch take(scratch);
      const MatrixSpan up = take.rows(in.rows, inner_), gate = take.rows(in.rows, inner_);
      kernels::linear(up_, in, up_bias_, up);
      if constexpr (kForm == Form::kSwiGlu) {
        kernels::linear(gate_, in, gate_bias_, gate);
        for (std::size_t r = 0; r < in.rows; ++r) kernels::mul_silu(up.row(r), gate.row(r), up.row(r));
      } else {
        kernels::linear_then(gate_, in, gate_bias_, kForm == Form::kGeGlu ? kernels::gelu_tanh : kernels::gelu, gate);
        for (std::size_t r = 0; r < in.rows; ++r) {
          for (std::size_t c = 0; c < inner_; ++c) up.row(r)[c] *= gate.row(r)[c];
        }
      }
      kernels::linear(down_, up, down_bias_, out);
    }
  }

 private:
  std::size_t inner_;
  kernels::PackedWeight gate_, up_, down_;
  std::vector<float> gate_bias_, up_bias_, down_bias_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

template <Form kForm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const std::size_t d = static_cast<std::size_t>(c.d_model), f = inner(c, kForm);
  std::map<std::string, Shape> all{{"up_proj.weight", {f, d}}, {"down_proj.weight", {d, f}}};
  if (gated(kForm)) all.emplace("gate_proj.weight", Shape{f, d});
  if (!biased(c, kForm)) return all;
  all.insert({{"up_proj.bias", {f}}, {"down_proj.bias", {d}}});
  if (gated(kForm)) all.emplace("gate_proj.bias", Shape{f});
  return all;
}

void draw(const BackboneConfig&, std::int64_t, const std::string&, Tensor& tensor, Rng rng) {
  if (tensor.shape.size() == 2) draw_linear(tensor.values, tensor.shape[1], rng);  // biases start at zero
}

template <Form kForm>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string&, StateLayout&) {
  return std::make_unique<FeedForward<kForm>>(c, w);
}

template <typename T, Form kForm>
autograd::Var<T> forward(const BackboneConfig&, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const auto project = [&](const std::string& name, Var<T> rows) {
    const std::string bias = prefix + name + ".bias";
    return linear(rows, w.at(prefix + name + ".weight"), w.has(bias) ? w.at(bias) : Var<T>{});
  };
  const Var<T> up = project("up_proj", x);
  if constexpr (!gated(kForm)) return project("down_proj", gelu_tanh(up));
  const Var<T> gate = project("gate_proj", x);
  return project("down_proj", mul(up, kForm == Form::kSwiGlu ? silu(gate) : kForm == Form::kGeGlu ? gelu_tanh(gate) : gelu(gate)));
}

template <Form kForm>
constexpr LayerKind kind_of() {
  return {check, shapes<kForm>, draw, make<kForm>, forward<float, kForm>, forward<double, kForm>};
}

}  // namespace

const LayerKind kSwiGlu = kind_of<Form::kSwiGlu>(), kGeGlu = kind_of<Form::kGeGlu>(), kExactGeGlu = kind_of<Form::kExactGeGlu>(),
                kGelu = kind_of<Form::kGelu>();

}  // namespace kizzasi
