#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kizzasi/model/architectures.h"
#include "kizzasi/model/signal_parts.h"
#include "kizzasi/tensor/quantized.h"

namespace kizzasi {
namespace {

constexpr const char* kBackbone = "backbone.";

// Every tensor around the backbone, by name and shape.
std::vector<std::pair<std::string, Shape>> shapes_around(const SignalShape& s) {
  std::vector<std::pair<std::string, Shape>> list;
  list.emplace_back("head.bias", Shape{s.horizon, s.outputs()});
  list.emplace_back("head.scale", Shape{s.horizon, s.targets});
  if (s.has_backbone) {
    list.emplace_back("embed.weight", Shape{s.d_model, s.vector()});
    list.emplace_back("embed.bias", Shape{s.d_model});
    list.emplace_back("decoder.context.weight", Shape{s.decoder, s.d_model});
    list.emplace_back("decoder.context.bias", Shape{s.decoder});
    if (s.slots() + s.known > 0) list.emplace_back("decoder.slots.weight", Shape{s.decoder, s.slots() + s.known});
    list.emplace_back("decoder.step.weight", Shape{s.horizon, s.decoder});
    list.emplace_back("decoder.mix.weight", Shape{s.decoder, s.decoder});
    list.emplace_back("decoder.mix.bias", Shape{s.decoder});
    list.emplace_back("decoder.out.weight", Shape{s.outputs(), s.decoder});
  }
  if (s.has_shortcut) {
    list.emplace_back("shortcut.bias", Shape{s.horizon, s.targets});
    if (s.recent > 0) list.emplace_back("shortcut.recent.weight", Shape{s.horizon * s.targets, s.recent * s.past()});
    if (s.seasons > 0) list.emplace_back("shortcut.slots.weight", Shape{s.horizon, s.targets, s.seasons});
    if (s.known > 0) list.emplace_back("shortcut.known.weight", Shape{s.horizon, s.targets, s.known});
  }
  return list;
}

// The start of a head's parameters: the steps between quantiles, scales and freedoms of a standard normal times 0.5, centred on the
// short-cut.
void start_head(const HeadConfig& head, std::span<float> bias, std::size_t parameters) {
  const float half = std::log(std::expm1(0.5f));  // softplus(half) = 0.5
  for (std::size_t at = 0; at < bias.size(); at += parameters) {
    const auto one = bias.subspan(at, parameters);
    switch (head.which()) {
      case HeadKind::kPoint:
        break;
      case HeadKind::kGaussian:
        one[1] = half;
        break;
      case HeadKind::kStudentT:
        one[1] = half, one[2] = 3;
        break;
      case HeadKind::kMixture: {
        const std::size_t k = one.size() / 3;
        for (std::size_t i = 0; i < k; ++i) {
          one[k + i] = 0.5f * (static_cast<float>(i) - 0.5f * static_cast<float>(k - 1));
          one[2 * k + i] = half;
        }
        break;
      }
      case HeadKind::kQuantiles:
        for (std::size_t i = 1; i < one.size(); ++i) one[i] = std::log(std::expm1(0.15f));
        break;
    }
  }
}

// Nothing comes of a missing flag until training has seen one: whatever was drawn for it would be noise to a model of unbroken data.
void quiet_flags(const SignalShape& s, std::span<float> embed) {
  for (std::size_t frame = 0; frame < embed.size(); frame += 2 * s.inputs()) {
    std::fill_n(embed.begin() + static_cast<std::ptrdiff_t>(frame + s.inputs()), s.inputs(), 0.0f);
  }
}

std::size_t product(const Shape& shape) { return elements(shape); }

}  // namespace

NamedTensors SignalModel::initial_weights(const ModelConfig& config, ChannelCounts counts, Rng rng) {
  const SignalShape s(config, counts);
  NamedTensors weights;
  for (const auto& [name, shape] : shapes_around(s)) {
    Tensor tensor(shape);
    const bool drawn = name.ends_with(".weight") && !name.starts_with("shortcut.") && name != "decoder.out.weight";
    if (drawn) {
      Rng own = rng.named(name);
      const double bound = 1 / std::sqrt(static_cast<double>(shape.back()));
      for (float& w : tensor.values) w = static_cast<float>(own.uniform(-bound, bound));
    }
    if (name == "embed.weight") quiet_flags(s, tensor.values);
    if (name == "head.bias") start_head(config.head, tensor.values, s.parameters);
    if (name == "head.scale") std::fill(tensor.values.begin(), tensor.values.end(), 1.0f);
    weights.emplace(name, std::move(tensor));
  }
  if (s.has_backbone) {
    const auto architecture = find_architecture(config.backbone.architecture);
    if (architecture) {
      for (auto& [name, tensor] : (*architecture)->initial_weights(config.backbone, rng.named("backbone"))) {
        weights.emplace(kBackbone + name, std::move(tensor));
      }
    }
  }
  return weights;
}

namespace {

Result<void> check_sampling(const ModelConfig& config, ChannelCounts counts, Sampling sampling) {
  if (sampling.as_trained()) return {};
  const auto refused = [](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), "sampling", std::move(expected), "Resample the recording to the step of the model."});
  };
  if (config.parts == "shortcut")
    return refused("the model is a short-cut alone, which knows steps and no time", "a model with a backbone");
  const auto architecture = find_architecture(config.backbone.architecture);
  if (!architecture) return fail(architecture.error());
  if (!(*architecture)->in_time) {
    std::string known;
    for (const Architecture& each : architectures()) {
      if (each.in_time) known.append(known.empty() ? "" : ", ").append(each.name);
    }
    return refused(fmt::format("{} counts frames, not time: it cannot run at another rate", config.backbone.architecture),
                   fmt::format("one of {}", known));
  }
  if (counts.known > 0) return refused("the model has known-future channels, which stand on its own steps", "a model without them");
  return {};
}

}  // namespace

Result<SignalModel> SignalModel::load(const ModelConfig& config, ChannelCounts counts, const NamedTensors& weights, Sampling sampling) {
  if (auto good = check_sampling(config, counts, sampling); !good) return fail(good.error());
  if (auto good = config.check("model"); !good) return fail(good.error());
  if (counts.targets == 0) return fail({Fault::kBadUse, "the model has no target channel", "model", "at least one channel to predict", ""});
  auto p = std::make_shared<Parts>();
  p->config = config;
  p->counts = counts;
  p->shape = SignalShape(config, counts);
  p->norm = window_norm_of(config);
  const SignalShape& s = p->shape;

  const auto around = shapes_around(s);
  std::set<std::string> names;
  for (const auto& [name, shape] : around) {
    names.insert(name);
    const auto found = weights.find(name);
    if (found == weights.end())
      return fail({Fault::kBroken, fmt::format("tensor '{}' is missing", name), "model weights", shape_text(shape), ""});
    if (found->second.shape != shape) {
      return fail({Fault::kBroken, fmt::format("tensor '{}' has shape {}", name, shape_text(found->second.shape)), "model weights",
                   shape_text(shape), ""});
    }
  }
  NamedTensors inner;
  for (const auto& [name, tensor] : weights) {
    p->weights += product(tensor.shape);
    if (s.has_backbone && name.starts_with(kBackbone)) {
      inner.emplace(name.substr(std::string_view(kBackbone).size()), tensor);
    } else if (!names.contains(name)) {
      return fail({Fault::kBroken, fmt::format("there is a tensor '{}' that this model does not have", name), "model weights", "", ""});
    }
  }
  if (static_cast<std::int64_t>(p->weights) > config.parameter_cap) {
    return fail({Fault::kBadUse, fmt::format("the model has {} parameters", p->weights), "model",
                 fmt::format("at most {}", config.parameter_cap), "Choose a smaller size, or raise parameter_cap."});
  }
  const auto values = [&](const char* name) -> std::vector<float> {
    const auto found = weights.find(name);
    return found == weights.end() ? std::vector<float>{} : found->second.values;
  };
  const LayerWeights own(weights, "", &p->packed);
  const auto packed = [&](const char* name) {
    const auto found = weights.find(name);
    if (found == weights.end() || found->second.values.empty()) return kernels::PackedWeight{};
    return own.pack(name);
  };
  p->head_bias = values("head.bias");
  p->head_scale = values("head.scale");
  if (!std::all_of(p->head_scale.begin(), p->head_scale.end(), [](float x) { return x > 0 && std::isfinite(x); })) {
    return fail({Fault::kBroken, "tensor 'head.scale' holds a number that is no positive one", "model weights", "positive numbers", ""});
  }
  p->embed = packed("embed.weight");
  p->embed_bias = values("embed.bias");
  p->decoder_context = packed("decoder.context.weight");
  p->decoder_bias = values("decoder.context.bias");
  p->decoder_slots = packed("decoder.slots.weight");
  p->decoder_step = values("decoder.step.weight");
  p->decoder_mix = packed("decoder.mix.weight");
  p->decoder_mix_bias = values("decoder.mix.bias");
  p->decoder_out = packed("decoder.out.weight");
  p->shortcut_bias = values("shortcut.bias");
  p->shortcut_slots = values("shortcut.slots.weight");
  p->shortcut_known = values("shortcut.known.weight");
  if (s.has_shortcut) {
    const std::vector<float> recent = values("shortcut.recent.weight");
    p->recent_all = kernels::PackedWeight::pack(recent, s.horizon * s.targets, s.recent * s.past());
    p->recent_first = kernels::PackedWeight::pack(std::span(recent).first(s.targets * s.recent * s.past()), s.targets, s.recent * s.past());
  }

  // The state: backbone lanes first, so that lane i stands at i * lane_stride.
  if (s.has_backbone) {
    const auto architecture = find_architecture(config.backbone.architecture);
    if (!architecture) return fail(architecture.error());
    auto backbone = (*architecture)->load(config.backbone, inner);
    if (!backbone) return fail(backbone.error());
    p->backbone = std::move(*backbone);
    if (!sampling.as_trained()) p->backbone->prepare_rate(sampling.period());
    for (const auto& [name, axis] : p->backbone->packed()) p->packed.emplace(kBackbone + name, axis);
    if (!s.windowed) {
      for (std::size_t lane = 0; lane < s.lanes; ++lane) {
        for (const StateField& f : p->backbone->layout().fields()) {
          p->layout.add(fmt::format("lane{}.{}", lane, f.name), f.type, f.shape, f.may_quantise);
        }
        if (lane == 0) p->lane_stride = p->layout.bytes();
      }
      p->hidden_at = p->layout.add("hidden", FieldType::kF32, {s.lanes, s.d_model});
    }
  }
  p->sampling = sampling;
  p->filling = s;
  // Where a season is no whole number of frames, the value before stands in for a missing one.
  p->filling.season = s.season % sampling.slower == 0 ? sampling.frames_back(s.season) : 0;
  p->ring = sampling.frames_back(s.lookback() - 1) + 1;
  p->values_at = p->layout.add("ring.values", FieldType::kF32, {p->ring, counts.inputs()});
  p->missing_at = p->layout.add("ring.missing", FieldType::kU8, {p->ring, counts.inputs()});
  p->frames_at = p->layout.add("frames", FieldType::kU64, {1});

  const auto pad = [](std::size_t n) { return n + 32; };
  const std::size_t features = s.slots() + s.known;
  const std::size_t window_rows = s.windowed ? s.rows() : 0;
  std::size_t push = 0, predict = 0;
  if (s.has_backbone) {
    const std::size_t block = kRunRows * s.lanes;
    push = pad(s.inputs()) * 2 + pad(block * s.vector()) + 2 * pad(block * s.d_model) +
           p->backbone->scratch_floats(std::max(kRunRows, s.lanes));
    predict = pad(window_rows * s.vector()) + 2 * pad(window_rows * s.d_model) + pad(p->backbone->layout().bytes() / sizeof(float) + 16) +
              (s.windowed ? p->backbone->scratch_floats(window_rows) : 0);
  }
  predict += 2 * pad(s.inputs()) + pad(s.recent * s.past()) + 2 * pad(s.horizon * s.targets) + pad(s.horizon * features) + pad(s.decoder) +
             2 * pad(s.horizon * s.decoder) + pad(s.horizon * s.outputs()) + pad(s.d_model);
  p->scratch = std::max(push, predict) + 64;

  std::size_t bytes = 0;
  for (const auto& [name, tensor] : weights) bytes += stored_bytes(tensor);
  const std::size_t recent_used = (s.has_shortcut ? s.targets * s.recent * s.past() : 0) * sizeof(float);
  const std::size_t all_recent = s.has_shortcut ? s.horizon * s.targets * s.recent * s.past() * sizeof(float) : 0;
  p->weight_bytes = bytes - all_recent + recent_used;
  return SignalModel(std::move(p));
}

WindowNorm window_norm_of(const ModelConfig& config) {
  if (config.window_norm == "last") return WindowNorm::kLast;
  if (config.window_norm == "mean_std") return WindowNorm::kMeanStd;
  return WindowNorm::kNone;
}

}  // namespace kizzasi
