#include "kizzasi/model/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/base/suggest.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi {
namespace {

// Longer blocks and larger batches are taken in pieces of so many rows, through all layers at a time: the rows stay in the cache.
constexpr std::size_t kRowsAtOnce = 64;

std::string layer_prefix(std::int64_t i) { return fmt::format("layers.{}.", i); }

class Stack final : public Backbone {
 public:
  Stack(const LayerKind& kind, const BackboneConfig& config, const NamedTensors& weights)
      : kind_(kind), config_(config), d_(static_cast<std::size_t>(config.d_model)), last_norm_(weights.at("norm_f.weight").values) {
    for (std::int64_t i = 0; i < config.n_layers; ++i) {
      norms_.push_back(weights.at(layer_prefix(i) + "norm.weight").values);
      layers_.push_back(kind.make(config, {weights, layer_prefix(i) + "mixer."}, fmt::format("layer{}", i), layout_));
    }
  }

  const BackboneConfig& config() const noexcept override { return config_; }
  const StateLayout& layout() const noexcept override { return layout_; }
  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    const std::size_t n = std::min(rows, kRowsAtOnce);
    return n * d_ + layers_.front()->scratch_floats(n);
  }
  void reset(std::span<std::byte> state) const noexcept override { std::memset(state.data(), 0, layout_.bytes()); }

  void step(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out,
            std::span<float> scratch) const noexcept override {
    const FloatEnv env;
    for (std::size_t i = 0; i < lanes.size(); i += kRowsAtOnce) {
      const std::size_t n = std::min(kRowsAtOnce, lanes.size() - i);
      advance(lanes.subspan(i, n), in.slice(i, n), out.slice(i, n), scratch);
    }
  }
  void run(const Lane& lane, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float> scratch) const noexcept override {
    const FloatEnv env;
    for (std::size_t i = 0; i < in.rows; i += kRowsAtOnce) {
      const std::size_t n = std::min(kRowsAtOnce, in.rows - i);
      advance({&lane, 1}, in.slice(i, n), out.slice(i, n), scratch);
    }
  }

  autograd::Var<float> forward(const WeightVars<float>& weights, autograd::Var<float> x,
                               std::vector<autograd::Var<float>>* layer_outputs) const override {
    return forward_as(kind_.forward, weights, x, layer_outputs);
  }
  autograd::Var<double> forward(const WeightVars<double>& weights, autograd::Var<double> x,
                                std::vector<autograd::Var<double>>* layer_outputs) const override {
    return forward_as(kind_.forward64, weights, x, layer_outputs);
  }

 private:
  // The residual stream lives in `out`.
  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float> scratch) const noexcept {
    const auto epsilon = static_cast<float>(config_.norm_eps);
    Scratch take(scratch);
    const kernels::MatrixSpan mixed = take.rows(in.rows, d_);
    for (std::size_t r = 0; r < in.rows; ++r) std::memmove(out.row(r).data(), in.row(r).data(), d_ * sizeof(float));
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      for (std::size_t r = 0; r < in.rows; ++r) kernels::rms_norm(out.row(r), norms_[i], epsilon, mixed.row(r));
      layers_[i]->advance(lanes, mixed, mixed, take.rest());
      for (std::size_t r = 0; r < in.rows; ++r) {
        float* x = out.row(r).data();
        const float* term = mixed.row(r).data();
        for (std::size_t c = 0; c < d_; ++c) x[c] += term[c];
      }
    }
    for (std::size_t r = 0; r < in.rows; ++r) kernels::rms_norm(out.row(r), last_norm_, epsilon, out.row(r));
  }

  template <typename T>
  autograd::Var<T> forward_as(LayerForward<T> layer, const WeightVars<T>& weights, autograd::Var<T> x,
                              std::vector<autograd::Var<T>>* layer_outputs) const {
    const T epsilon = static_cast<T>(config_.norm_eps);
    for (std::int64_t i = 0; i < config_.n_layers; ++i) {
      const std::string prefix = layer_prefix(i);
      x = autograd::add(x, layer(config_, weights, prefix + "mixer.", autograd::rms_norm(x, weights.at(prefix + "norm.weight"), epsilon)));
      if (layer_outputs != nullptr) layer_outputs->push_back(x);
    }
    return autograd::rms_norm(x, weights.at("norm_f.weight"), epsilon);
  }

  const LayerKind& kind_;
  BackboneConfig config_;
  std::size_t d_;
  StateLayout layout_;
  std::vector<std::vector<float>> norms_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<float> last_norm_;
};

Result<void> check_weights(const std::map<std::string, Shape>& wanted, const NamedTensors& weights) {
  for (const auto& [name, shape] : wanted) {
    const auto found = weights.find(name);
    if (found == weights.end()) {
      return fail(
          {Fault::kBadInput, "the tensor is missing", fmt::format("weight '{}'", name), fmt::format("shape {}", shape_text(shape)), ""});
    }
    const Tensor& tensor = found->second;
    if (tensor.shape != shape || tensor.values.size() != elements(shape)) {
      return fail({Fault::kBadInput, fmt::format("the shape is {}", shape_text(tensor.shape)), fmt::format("weight '{}'", name),
                   shape_text(shape), "The weights belong to another configuration."});
    }
    const auto bad = std::find_if(tensor.values.begin(), tensor.values.end(), [](float v) { return !std::isfinite(v); });
    if (bad != tensor.values.end()) {
      return fail({Fault::kBadInput, fmt::format("value {} is {}", bad - tensor.values.begin(), *bad), fmt::format("weight '{}'", name),
                   "finite values", "The training that made it went astray, or the file is damaged."});
    }
  }
  for (const auto& [name, tensor] : weights) {
    if (wanted.count(name) != 0) continue;
    std::vector<std::string> names;
    for (const auto& [known, shape] : wanted) names.push_back(known);
    return fail(
        {Fault::kBadInput, "this architecture has no such tensor", fmt::format("weight '{}'", name), "", did_you_mean(name, names)});
  }
  return {};
}

}  // namespace

std::map<std::string, Shape> stack_shapes(const LayerKind& kind, const BackboneConfig& config) {
  const auto d = static_cast<std::size_t>(config.d_model);
  std::map<std::string, Shape> shapes{{"norm_f.weight", {d}}};
  for (std::int64_t i = 0; i < config.n_layers; ++i) {
    shapes.emplace(layer_prefix(i) + "norm.weight", Shape{d});
    for (auto& [name, shape] : kind.shapes(config)) shapes.emplace(layer_prefix(i) + "mixer." + name, shape);
  }
  return shapes;
}

NamedTensors initial_stack(const LayerKind& kind, const BackboneConfig& config, Rng rng) {
  NamedTensors weights;
  for (const auto& [name, shape] : stack_shapes(kind, config)) {
    Tensor tensor(shape);
    const std::size_t layer = name.find(".mixer.");
    if (layer == name.npos) {
      std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
    } else {
      kind.draw(config, name.substr(layer + std::string_view(".mixer.").size()), tensor, rng.named(name));
    }
    weights.emplace(name, std::move(tensor));
  }
  return weights;
}

Result<std::unique_ptr<Backbone>> load_stack(const LayerKind& kind, const BackboneConfig& config, const NamedTensors& weights) {
  if (auto good = config.check("backbone"); !good) return fail(good.error());
  if (auto good = check_weights(stack_shapes(kind, config), weights); !good) return fail(good.error());
  return std::make_unique<Stack>(kind, config, weights);
}

}  // namespace kizzasi
