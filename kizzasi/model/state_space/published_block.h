// The published blocks around a layer, x + layer(norm(x)) with a norm that the stacks here do not have: for `verify` alone.
#pragma once

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/model/layer.h"

namespace kizzasi::published_block {

enum class Norm {
  kLayer,   // with config.norm_eps
  kAffine,  // x scale + bias: a batch norm after training, its mean and variance folded in
};

template <Norm kNorm>
class Block final : public Layer {
 public:
  Block(const BackboneConfig& c, const LayerWeights& w, std::unique_ptr<Layer> layer)
      : scale_(w.at("norm.scale").values),
        bias_(w.at("norm.bias").values),
        epsilon_(static_cast<float>(c.norm_eps)),
        layer_(std::move(layer)) {}

  std::size_t scratch_floats(std::size_t rows) const noexcept override { return rows * scale_.size() + layer_->scratch_floats(rows); }

  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out,
               std::span<float> scratch) const noexcept override {
    Scratch take(scratch);
    const kernels::MatrixSpan normed = take.rows(in.rows, scale_.size());
    for (std::size_t r = 0; r < in.rows; ++r) {
      if constexpr (kNorm == Norm::kLayer) {
        kernels::layer_norm(in.row(r), scale_, bias_, epsilon_, normed.row(r));
      } else {
        for (std::size_t e = 0; e < scale_.size(); ++e) normed.row(r)[e] = in.row(r)[e] * scale_[e] + bias_[e];
      }
    }
    layer_->advance(lanes, normed, normed, take.rest());
    for (std::size_t r = 0; r < in.rows; ++r) {
      for (std::size_t e = 0; e < scale_.size(); ++e) out.row(r)[e] = in.row(r)[e] + normed.row(r)[e];
    }
  }

 private:
  std::vector<float> scale_, bias_;
  float epsilon_;
  std::unique_ptr<Layer> layer_;
};

template <const LayerKind& kInner, Norm kNorm>
std::map<std::string, Shape> shapes(const BackboneConfig& c) {
  std::map<std::string, Shape> all = kInner.shapes(c);
  const Shape row{static_cast<std::size_t>(c.d_model)};
  all.emplace("norm.scale", row);
  all.emplace("norm.bias", row);
  return all;
}

template <const LayerKind& kInner, Norm kNorm>
std::unique_ptr<Layer> make(const BackboneConfig& c, const LayerWeights& w, const std::string& name, StateLayout& layout) {
  return std::make_unique<Block<kNorm>>(c, w, kInner.make(c, w, name, layout));
}

template <typename T, const LayerKind& kInner, Norm kNorm>
autograd::Var<T> forward(const BackboneConfig& c, const WeightVars<T>& w, const std::string& prefix, autograd::Var<T> x) {
  using namespace autograd;
  const Var<T> scale = w.at(prefix + "norm.scale"), bias = w.at(prefix + "norm.bias");
  const Var<T> normed = kNorm == Norm::kLayer ? layer_norm(x, scale, bias, static_cast<T>(c.norm_eps)) : add(mul(x, scale), bias);
  if constexpr (sizeof(T) == sizeof(double)) {
    return add(x, kInner.forward64(c, w, prefix, normed));
  } else {
    return add(x, kInner.forward(c, w, prefix, normed));
  }
}

// kInner in its published block. Its tensors are named as they are alone, beside norm.scale and norm.bias.
template <const LayerKind& kInner, Norm kNorm>
inline const LayerKind kBlock{kInner.check,        shapes<kInner, kNorm>,         kInner.draw,
                              make<kInner, kNorm>, forward<float, kInner, kNorm>, forward<double, kInner, kNorm>};

}  // namespace kizzasi::published_block
