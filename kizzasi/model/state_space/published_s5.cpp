#include "kizzasi/model/state_space/published_s5.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/s4d.h"
#include "kizzasi/model/state_space/published_block.h"
#include "kizzasi/model/state_space/published_states.h"
#include "kizzasi/model/state_space/s5.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

constexpr const LayerKind& kLayerNormBlock = published_block::kBlock<kS5Layer, published_block::Norm::kLayer>;
constexpr const LayerKind& kBatchNormBlock = published_block::kBlock<kS5Layer, published_block::Norm::kAffine>;
constexpr const char *kMean = "batch_stats.norm.mean", *kVariance = "batch_stats.norm.var";
constexpr double kBatchNormEpsilon = 1e-5, kLayerNormEpsilon = 1e-6;  // flax's

bool flag(const Json& config, std::string_view name, bool otherwise) {
  const Json* value = config.find(name);
  return value != nullptr && value->is_bool() ? value->boolean() : otherwise;
}
std::string text(const Json& config, std::string_view name, std::string_view otherwise) {
  const Json* value = config.find(name);
  return value != nullptr && value->is_string() ? value->string() : std::string(otherwise);
}

// A batch norm after training: (x - mean) / sqrt(variance + epsilon) scale + bias as x scale' + bias'.
template <typename T>
void fold_batch_norm(const WeightVars<T>& theirs, WeightVars<T>& ours) {
  using namespace autograd;
  const Var<T> scaled = div(theirs.at("norm.scale"), sqrt(add_scalar(theirs.at(kVariance), static_cast<T>(kBatchNormEpsilon))));
  ours.add("0.norm.scale", scaled);
  ours.add("0.norm.bias", sub(theirs.at("norm.bias"), mul(theirs.at(kMean), scaled)));
}

// Lambda_bar (P, 2) and B_bar (P, H, 2).
std::optional<std::vector<float>> discretised(const std::string& name, const BackboneConfig& c, const std::map<std::string, Tensor>& seq) {
  if (name != "Lambda_bar" && name != "B_bar") return std::nullopt;
  const auto states = seq.at("Lambda_re").values.size(), d = static_cast<std::size_t>(c.d_model);
  std::vector<float> out;
  const auto add = [&out](Complex value) {
    out.push_back(static_cast<float>(value.real()));
    out.push_back(static_cast<float>(value.imag()));
  };
  for (std::size_t n = 0; n < states; ++n) {
    const Complex lambda(static_cast<double>(std::min(seq.at("Lambda_re").values[n], kS5LargestReal)),
                         static_cast<double>(seq.at("Lambda_im").values[n]));
    const auto element = autograd::discretize(discretization_of(c), lambda, std::exp(static_cast<double>(seq.at("log_step").values[n])));
    if (name == "Lambda_bar") add(element.a);
    for (std::size_t e = 0; e < d && name == "B_bar"; ++e) {
      const float* b = &seq.at("B").values[2 * (n * d + e)];
      add(element.b * Complex(static_cast<double>(b[0]), static_cast<double>(b[1])));
    }
  }
  return out;
}

Result<BackboneConfig> configuration(const NamedTensors& tensors, const Json& config, bool block, std::string_view where) {
  const auto refused = [&](std::string what, std::string expected) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), ""});
  };
  const auto b = tensors.find(block ? "seq.B" : "B");
  if (b == tensors.end() || b->second.shape.size() != 3) return refused("there is no B of three axes", "B (P, H, 2)");
  if (!flag(config, "prenorm", true)) return refused("the norm stands behind the residual sum", "prenorm true");
  if (python_number(config.find("step_rescale"), 1) != 1) return refused("step_rescale is not 1", "1; a stream's dt scales the step");
  BackboneConfig c;
  c.architecture = "s5";
  c.d_model = static_cast<std::int64_t>(b->second.shape[1]);
  c.d_inner = static_cast<std::int64_t>(2 * b->second.shape[0]);
  c.discretization = text(config, "discretization", "zoh");
  c.ssm_activation = block ? text(config, "activation", "half_glu1") : "none";
  c.norm_eps = kLayerNormEpsilon;
  if (auto good = c.check(where); !good) return fail(good.error());
  c.bidirectional = tensors.count(block ? "seq.C1" : "C1") != 0;  // what check refuses: nothing here streams it
  return c;
}

}  // namespace

bool is_published_s5(const NamedTensors& tensors) { return tensors.count("Lambda_re") != 0 || tensors.count("seq.Lambda_re") != 0; }

Result<PublishedLayer> published_s5(const NamedTensors& tensors, const Json& config, std::string_view where) {
  const bool block = tensors.count("Lambda_re") == 0, batch_norm = tensors.count(kMean) != 0;
  auto ours = configuration(tensors, config, block, where);
  if (!ours) return fail(ours.error());
  PublishedLayer layer;
  layer.config = *ours;
  layer.kind = !block ? &kS5Layer : batch_norm ? &kBatchNormBlock : &kLayerNormBlock;
  layer.streams = !layer.config.bidirectional;

  constexpr std::string_view kSeq = "seq.";
  std::map<std::string, Shape> wanted;
  for (const auto& [name, shape] : layer.kind->shapes(layer.config)) wanted.emplace(block ? name : name.substr(kSeq.size()), shape);
  if (batch_norm) {
    for (const char* name : {kMean, kVariance}) wanted.emplace(name, Shape{static_cast<std::size_t>(layer.config.d_model)});
  }
  if (auto good = check_published(tensors, wanted, "S5", where); !good) return fail(good.error());
  std::map<std::string, Tensor> seq;  // of the SSM, by its bare names
  for (const auto& [name, tensor] : tensors) {
    if (!block) seq.emplace(name, tensor);
    if (block && name.starts_with(kSeq)) seq.emplace(name.substr(kSeq.size()), tensor);
  }
  const std::vector<float>& real = seq.at("Lambda_re").values;
  const auto unstable = std::find_if(real.begin(), real.end(), [](float v) { return v > kS5LargestReal; });
  if (unstable != real.end() && !flag(config, "clip_eigs", false)) {
    return fail({Fault::kBadInput, fmt::format("Lambda_re[{}] is {} and clip_eigs is false", unstable - real.begin(), *unstable),
                 std::string(where), fmt::format("real parts of at most {}", kS5LargestReal), "The state would grow without bound."});
  }

  const bool halved = !flag(config, "conj_sym", true);
  set_ours(layer, [=]<typename T>(const WeightVars<T>& theirs) {
    WeightVars<T> all;
    for (const auto& [name, var] : theirs.all()) {
      if (batch_norm && (name.starts_with("norm.") || name.starts_with("batch_stats."))) continue;
      const std::string bare = block ? name : std::string(kSeq) + name;
      all.add("0." + bare, halved && bare.starts_with("seq.C") ? autograd::scale(var, T{0.5}) : var);
    }
    if (batch_norm) fold_batch_norm(theirs, all);
    return all;
  });
  layer.state = [](const std::string& name, const StateBatch& states) { return complex_states(name, states); };
  layer.derived = [c = layer.config, seq](const std::string& name, std::size_t) { return discretised(name, c, seq); };
  return layer;
}

}  // namespace kizzasi
