#include "kizzasi/model/norm_entry.h"

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi {
namespace {

class NormEntry final : public Layer {
 public:
  NormEntry(const BackboneConfig& c, const LayerWeights& w)
      : gain_(w.at("weight").values), bias_(w.at("bias").values), epsilon_(static_cast<float>(c.norm_eps)) {}
  std::size_t scratch_floats(std::size_t) const noexcept override { return 0; }
  void advance(std::span<const Lane>, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float>) const noexcept override {
    for (std::size_t r = 0; r < in.rows; ++r) kernels::layer_norm(in.row(r), gain_, bias_, epsilon_, out.row(r));
  }

 private:
  std::vector<float> gain_, bias_;
  float epsilon_;
};

Result<void> check(const BackboneConfig&, std::string_view) { return {}; }

std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  const Shape row{static_cast<std::size_t>(c.d_model)};
  return {{"weight", row}, {"bias", row}};
}

void draw(const BackboneConfig&, std::int64_t, const std::string& name, Tensor& tensor, Rng) {
  if (name == "weight") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
}

std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string&, StateLayout&) {
  return std::make_unique<NormEntry>(c, w);
}

template <typename T>
autograd::Var<T> forward(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  return autograd::layer_norm(x, w.at(prefix + "weight"), w.at(prefix + "bias"), static_cast<T>(c.norm_eps));
}

}  // namespace

const LayerKind kLayerNormEntry{check, shapes, draw, make, forward<float>, forward<double>};

}  // namespace kizzasi
