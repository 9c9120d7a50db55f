#include "kizzasi/model/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/base/suggest.h"
#include "kizzasi/kernels/norms.h"
#include "kizzasi/tensor/quantized.h"

namespace kizzasi {
namespace {

// Longer blocks and larger batches are taken in pieces of so many rows, through all layers at a time: the rows stay in the cache.
constexpr std::size_t kRowsAtOnce = 64;

std::string layer_prefix(std::int64_t i) { return fmt::format("layers.{}.", i); }

struct Norm {
  std::vector<float> gain, bias;  // bias: empty in an RMS norm
  void operator()(std::span<const float> x, float epsilon, std::span<float> out) const noexcept {
    if (bias.empty()) {
      kernels::rms_norm(x, gain, epsilon, out);
    } else {
      kernels::layer_norm(x, gain, bias, epsilon, out);
    }
  }
};

template <typename T>
autograd::Var<T> norm_forward(NormKind kind, const WeightVars<T>& weights, const std::string& name, autograd::Var<T> x, T epsilon) {
  const autograd::Var<T> gain = weights.at(name + ".weight");
  return kind == NormKind::kRms ? autograd::rms_norm(x, gain, epsilon) : autograd::layer_norm(x, gain, weights.at(name + ".bias"), epsilon);
}

class Stack final : public Backbone {
 public:
  Stack(const StackForm& form, const BackboneConfig& config, const NamedTensors& weights)
      : form_(form), config_(config), d_(static_cast<std::size_t>(config.d_model)), last_norm_(norm(weights, "norm_f")) {
    if (form.entry != nullptr) {
      entry_ = form.entry->make(config, {weights, "entry.", &packed_}, "entry", layout_);
      costs_.push_back(cost_of("entry", weights, 0));
    }
    for (std::int64_t i = 0; i < config.n_layers; ++i) {
      for (const Sublayer& sublayer : form.sublayers) {
        const std::string prefix = layer_prefix(i);
        const std::size_t before = layout_.bytes();
        const LayerKind& kind = sublayer.kind(config, i);
        parts_.push_back(
            {norm(weights, prefix + std::string(sublayer.norm)),
             kind.make(config, {weights, prefix + std::string(sublayer.name) + ".", &packed_}, fmt::format("layer{}", i), layout_)});
        costs_.push_back(cost_of(prefix + std::string(sublayer.name), weights, before));
        if (kind.beside != nullptr) beside_ = std::max(beside_, kind.beside(config));
      }
    }
  }

  const BackboneConfig& config() const noexcept override { return config_; }
  const StateLayout& layout() const noexcept override { return layout_; }
  const PackedNames& packed() const noexcept override { return packed_; }
  std::size_t scratch_floats(std::size_t rows) const noexcept override {
    const std::size_t n = std::min(rows, kRowsAtOnce);
    std::size_t most = entry_ ? entry_->scratch_floats(n) : 0;
    for (const Part& part : parts_) most = std::max(most, part.layer->scratch_floats(n));
    return n * (d_ + beside_) + most;
  }
  void prepare_rate(float dt) override {
    if (entry_) entry_->prepare_rate(dt);
    for (Part& part : parts_) part.layer->prepare_rate(dt);
  }
  std::size_t rates_computed() const noexcept override {
    std::size_t count = entry_ ? entry_->rates_computed() : 0;
    for (const Part& part : parts_) count += part.layer->rates_computed();
    return count;
  }
  void reset(std::span<std::byte> state) const noexcept override { layout_.reset(state); }

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

  std::vector<LayerCost> profile(const Clock& clock, std::size_t rounds) const override {
    const FloatEnv env;
    std::vector<LayerCost> costs = costs_;
    costs.push_back({"norm_f", last_norm_.gain.size() * sizeof(float), 0, 0, 0, 0});
    AlignedVector<std::byte> state(layout_.bytes());
    reset(state);
    std::vector<float> row(d_, 0.5f), out(d_), scratch(scratch_floats(1));
    const Lane lane{state.data()};
    std::vector<std::vector<double>> times(costs.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      for (float& x : row) x = -x;
      std::size_t part = 0;
      double last = clock.seconds();
      advance({&lane, 1}, {row.data(), 1, d_}, {out.data(), 1, d_}, scratch, [&] {
        const double now = clock.seconds();
        times[part++].push_back(now - last);
        last = now;
      });
    }
    for (std::size_t i = 0; i < costs.size(); ++i) {
      std::sort(times[i].begin(), times[i].end());
      costs[i].seconds = times[i][rounds / 2];
      costs[i].slow_seconds = times[i][rounds * 99 / 100];
    }
    return costs;
  }

  autograd::Var<float> forward(const WeightVars<float>& weights, autograd::Var<float> x,
                               std::vector<autograd::Var<float>>* layer_outputs) const override {
    return forward_as(weights, x, layer_outputs);
  }
  autograd::Var<double> forward(const WeightVars<double>& weights, autograd::Var<double> x,
                                std::vector<autograd::Var<double>>* layer_outputs) const override {
    return forward_as(weights, x, layer_outputs);
  }

 private:
  struct Part {
    Norm norm;
    std::unique_ptr<Layer> layer;
  };

  Norm norm(const NamedTensors& weights, const std::string& name) const {
    return {weights.at(name + ".weight").values, form_.norm == NormKind::kLayer ? weights.at(name + ".bias").values : std::vector<float>{}};
  }

  // What is known of a layer before it runs; the state's fields that it added stand behind `state_before`.
  LayerCost cost_of(std::string name, const NamedTensors& weights, std::size_t state_before) const {
    LayerCost cost;
    cost.name = std::move(name);
    const std::string prefix = cost.name + ".";
    for (auto each = weights.lower_bound(prefix); each != weights.end() && each->first.starts_with(prefix); ++each) {
      cost.weight_bytes += stored_bytes(each->second);
      if (packed_.count(each->first) != 0) cost.multiply_adds += each->second.values.size();
    }
    cost.state_bytes = layout_.bytes() - state_before;
    return cost;
  }

  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float> scratch) const noexcept {
    advance(lanes, in, out, scratch, [] {});
  }
  // The residual stream lives in `out`. `done` is called after the entry, each layer, and the last norm.
  template <typename Done>
  void advance(std::span<const Lane> lanes, kernels::MatrixView in, kernels::MatrixSpan out, std::span<float> scratch,
               Done done) const noexcept {
    const auto epsilon = static_cast<float>(config_.norm_eps);
    Scratch take(scratch);
    const kernels::MatrixSpan mixed = take.rows(in.rows, d_), beside = take.rows(in.rows, beside_);
    for (std::size_t r = 0; r < in.rows; ++r) std::memmove(out.row(r).data(), in.row(r).data(), d_ * sizeof(float));
    if (entry_) {
      entry_->advance(lanes, out, out, take.rest());
      done();
    }
    for (const Part& part : parts_) {
      for (std::size_t r = 0; r < in.rows; ++r) part.norm(out.row(r), epsilon, mixed.row(r));
      part.layer->advance_beside(lanes, mixed, beside, mixed, take.rest());
      for (std::size_t r = 0; r < in.rows; ++r) {
        float* x = out.row(r).data();
        const float* term = mixed.row(r).data();
        for (std::size_t c = 0; c < d_; ++c) x[c] += term[c];
      }
      done();
    }
    for (std::size_t r = 0; r < in.rows; ++r) last_norm_(out.row(r), epsilon, out.row(r));
    done();
  }

  template <typename T>
  autograd::Var<T> layer_forward(const LayerKind& kind, const WeightVars<T>& weights, const std::string& prefix, autograd::Var<T> x,
                                 autograd::Var<T>& beside) const {
    if constexpr (sizeof(T) == sizeof(double)) {
      return kind.beside == nullptr ? kind.forward64(config_, weights, prefix, x)
                                    : kind.forward_beside64(config_, weights, prefix, x, beside);
    } else {
      return kind.beside == nullptr ? kind.forward(config_, weights, prefix, x) : kind.forward_beside(config_, weights, prefix, x, beside);
    }
  }

  template <typename T>
  autograd::Var<T> forward_as(const WeightVars<T>& weights, autograd::Var<T> x, std::vector<autograd::Var<T>>* layer_outputs) const {
    const T epsilon = static_cast<T>(config_.norm_eps);
    autograd::Var<T> beside;
    if (form_.entry != nullptr) x = layer_forward(*form_.entry, weights, "entry.", x, beside);
    for (std::int64_t i = 0; i < config_.n_layers; ++i) {
      const std::string prefix = layer_prefix(i);
      for (const Sublayer& sublayer : form_.sublayers) {
        const autograd::Var<T> normed = norm_forward(form_.norm, weights, prefix + std::string(sublayer.norm), x, epsilon);
        x = autograd::add(x, layer_forward(sublayer.kind(config_, i), weights, prefix + std::string(sublayer.name) + ".", normed, beside));
      }
      if (layer_outputs != nullptr) layer_outputs->push_back(x);
    }
    return norm_forward(form_.norm, weights, "norm_f", x, epsilon);
  }

  const StackForm& form_;
  BackboneConfig config_;
  std::size_t d_;
  std::size_t beside_ = 0;  // width of the rows that layers hand on
  StateLayout layout_;
  PackedNames packed_;
  std::vector<LayerCost> costs_;  // without times
  std::unique_ptr<Layer> entry_;
  std::vector<Part> parts_;
  Norm last_norm_;
};

// Every norm and layer of a stack: norm(name), layer(kind, prefix, number of its block).
template <typename OnNorm, typename OnLayer>
void for_each_part(const StackForm& form, const BackboneConfig& config, OnNorm norm, OnLayer layer) {
  if (form.entry != nullptr) layer(*form.entry, std::string("entry."), std::int64_t{0});
  for (std::int64_t i = 0; i < config.n_layers; ++i) {
    for (const Sublayer& sublayer : form.sublayers) {
      norm(layer_prefix(i) + std::string(sublayer.norm));
      layer(sublayer.kind(config, i), layer_prefix(i) + std::string(sublayer.name) + ".", i);
    }
  }
  norm(std::string("norm_f"));
}

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

std::map<std::string, Shape> stack_shapes(const StackForm& form, const BackboneConfig& config) {
  const Shape row{static_cast<std::size_t>(config.d_model)};
  std::map<std::string, Shape> shapes;
  for_each_part(
      form, config,
      [&](const std::string& name) {
        shapes.emplace(name + ".weight", row);
        if (form.norm == NormKind::kLayer) shapes.emplace(name + ".bias", row);
      },
      [&](const LayerKind& kind, const std::string& prefix, std::int64_t) {
        for (auto& [name, shape] : kind.shapes(config)) shapes.emplace(prefix + name, shape);
      });
  return shapes;
}

std::size_t stack_parameters(const StackForm& form, const BackboneConfig& config) {
  std::size_t count = 0;
  std::map<const LayerKind*, std::size_t> known;  // blocks are mostly alike
  for_each_part(
      form, config,
      [&](const std::string&) { count += static_cast<std::size_t>(config.d_model) * (form.norm == NormKind::kLayer ? 2 : 1); },
      [&](const LayerKind& kind, const std::string&, std::int64_t) {
        const auto [place, fresh] = known.emplace(&kind, 0);
        if (fresh) {
          for (const auto& [name, shape] : kind.shapes(config)) place->second += elements(shape);
        }
        count += place->second;
      });
  return count;
}

NamedTensors initial_stack(const StackForm& form, const BackboneConfig& config, Rng rng) {
  NamedTensors weights;
  const Shape row{static_cast<std::size_t>(config.d_model)};
  for_each_part(
      form, config,
      [&](const std::string& name) {
        Tensor gain(row);
        std::fill(gain.values.begin(), gain.values.end(), 1.0f);
        weights.emplace(name + ".weight", std::move(gain));
        if (form.norm == NormKind::kLayer) weights.emplace(name + ".bias", Tensor(row));
      },
      [&](const LayerKind& kind, const std::string& prefix, std::int64_t layer) {
        for (const auto& [name, shape] : kind.shapes(config)) {
          Tensor tensor(shape);
          kind.draw(config, layer, name, tensor, rng.named(prefix + name));
          weights.emplace(prefix + name, std::move(tensor));
        }
      });
  return weights;
}

Result<void> check_stack(const StackForm& form, const BackboneConfig& config, std::string_view where) {
  Result<void> good;
  for_each_part(
      form, config, [](const std::string&) {},
      [&](const LayerKind& kind, const std::string&, std::int64_t) {
        if (good) good = kind.check(config, where);
      });
  return good;
}

Result<std::unique_ptr<Backbone>> load_stack(const StackForm& form, const BackboneConfig& config, const NamedTensors& weights) {
  if (auto good = config.check("backbone"); !good) return fail(good.error());
  if (auto good = check_weights(stack_shapes(form, config), weights); !good) return fail(good.error());
  return std::make_unique<Stack>(form, config, weights);
}

}  // namespace kizzasi
