#include "kizzasi/model/griffin/published.h"

#include <fmt/format.h>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/griffin/griffin.h"

namespace kizzasi {
namespace {

// Ours of the published name; empty where RecurrentGemma has none such. Norms are stored minus one.
std::string stack_name(const std::string& published) {
  if (published == "model.final_norm.weight") return "norm_f.weight";
  constexpr std::string_view kLayers = "model.layers.";
  if (!published.starts_with(kLayers)) return "";
  const std::size_t dot = published.find('.', kLayers.size());
  if (dot == published.npos) return "";
  const std::string block = "layers." + published.substr(kLayers.size(), dot - kLayers.size()) + ".", part = published.substr(dot + 1);
  constexpr std::pair<std::string_view, std::string_view> kParts[] = {
      {"temporal_pre_norm.", "norm."}, {"temporal_block.", "mixer."}, {"channel_pre_norm.", "ffn_norm."}, {"mlp_block.", "ffn."}};
  for (const auto& [theirs, ours] : kParts) {
    if (part.starts_with(theirs)) return block + std::string(ours) + part.substr(theirs.size());
  }
  return "";
}

bool is_norm(const std::string& ours) { return ours == "norm_f.weight" || ours.ends_with("norm.weight"); }

Result<void> check_activation(const Json& config, std::string_view where) {
  const Json* activation = config.find("hidden_activation");
  if (activation == nullptr || !activation->is_string() || activation->string() == "gelu_pytorch_tanh") return {};
  return refused(fmt::format("hidden_activation is '{}'", activation->string()), where, "gelu_pytorch_tanh");
}

Result<std::int64_t> heads_of(const Json& config, std::string_view where) {
  const double heads = python_number(config.find("num_attention_heads"), 0);
  if (!(heads >= 1 && heads <= 65536)) return refused("num_attention_heads is missing or no whole number", where, "from 1");
  return static_cast<std::int64_t>(heads);
}

}  // namespace

bool is_published_griffin(const NamedTensors& tensors) { return tensors.count("model.layers.0.temporal_pre_norm.weight") != 0; }

Result<PublishedModel> published_griffin(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    if (published == "model.embed_tokens.weight") {
      model.embedding = published;
      if (model.head.empty()) model.head = published;
    } else if (published == "lm_head.weight") {
      model.head = published;
    } else {
      const std::string ours = stack_name(published);
      if (ours.empty()) return refused(fmt::format("tensor '{}' belongs to no RecurrentGemma", published), where);
      names.emplace(published, ours);
    }
  }
  if (auto good = check_activation(config, where); !good) return fail(good.error());
  const auto heads = heads_of(config, where);
  if (!heads) return fail(heads.error());
  BackboneConfig& c = model.config;
  c.d_model = size_of(tensors, "model.final_norm.weight", 0);
  c.n_layers = 0;
  bool attention = false, in_turn = true;
  for (;; ++c.n_layers) {
    const std::string block = fmt::format("model.layers.{}.", c.n_layers);
    if (tensors.count(block + "temporal_pre_norm.weight") == 0) break;
    const bool here = tensors.count(block + "temporal_block.q_proj.weight") != 0;
    attention = attention || here;
    in_turn = in_turn && here == (c.n_layers % 3 == 2);
  }
  if (attention && !in_turn) return refused("blocks of another order", where, "recurrent, recurrent, attention");
  c.architecture = attention || in_turn ? "griffin" : "hawk";
  const std::string first = "model.layers.0.temporal_block.";
  c.d_inner = size_of(tensors, first + "linear_x.weight", 0);
  c.d_conv = size_of(tensors, first + "conv_1d.weight", 2);
  c.n_heads = *heads;
  c.n_kv_heads = static_cast<std::int64_t>(python_number(config.find("num_key_value_heads"), 1));
  c.head_dim = static_cast<std::int64_t>(python_number(config.find("head_dim"), static_cast<double>(c.d_model / *heads)));
  c.d_ffn = size_of(tensors, "model.layers.0.mlp_block.up_proj.weight", 0);
  c.window = static_cast<std::int64_t>(python_number(config.find("attention_window_size"), 2048));
  const Json* rope = config.find("rope_parameters");
  c.rope_theta = python_number(rope != nullptr ? rope->find("rope_theta") : config.find("rope_theta"), 10000);
  c.norm_eps = python_number(config.find("rms_norm_eps"), 1e-6);
  model.logit_cap = python_number(config.find("logits_soft_cap"), 0);
  if (auto good = c.check(where); !good) return fail(good.error());
  set_ours(model, [names](const auto& theirs) {
    const auto taken = renamed(theirs, names);
    std::decay_t<decltype(taken)> ours;
    for (const auto& [name, var] : taken.all()) {
      if (is_norm(name)) {
        ours.add(name, autograd::add_scalar(var, std::decay_t<decltype(var.value()[0])>{1}));
      } else {
        ours.add(name, var);
      }
    }
    return ours;
  });
  model.state = [](const std::string&, const StateBatch&) { return std::nullopt; };
  return model;
}

bool is_published_rglru(const NamedTensors& tensors) {
  return tensors.count("rg_lru.recurrent_param") != 0 && tensors.count("linear_x.weight") != 0;
}

Result<PublishedLayer> published_rglru(const NamedTensors& tensors, const Json& config, std::string_view where) {
  if (auto good = check_activation(config, where); !good) return fail(good.error());
  const auto heads = heads_of(config, where);
  if (!heads) return fail(heads.error());
  PublishedLayer layer;
  layer.kind = &kGriffinRecurrent;
  BackboneConfig& c = layer.config;
  c.architecture = "hawk";
  c.d_model = size_of(tensors, "linear_x.weight", 1);
  c.d_inner = size_of(tensors, "linear_x.weight", 0);
  c.d_conv = size_of(tensors, "conv_1d.weight", 2);
  c.n_heads = *heads;
  if (auto good = c.check(where); !good) return fail(good.error());
  if (auto good = check_published(tensors, kGriffinRecurrent.shapes(c), "RG-LRU", where); !good) return fail(good.error());
  set_ours(layer, [](const auto& theirs) {
    std::decay_t<decltype(theirs)> ours;
    for (const auto& [name, var] : theirs.all()) ours.add("0." + name, var);
    return ours;
  });
  layer.state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name == "state") return states.all("layer0.h");
    if (name != "state_conv") return std::nullopt;
    // Theirs holds one frame less than ours, (channels, taps - 1).
    const Shape& shape = states.layout.find("layer0.conv")->shape;
    std::vector<float> all;
    for (std::size_t b = 0; b < states.blocks.size(); ++b) {
      const std::span<const float> window = states.floats(b, "layer0.conv");
      for (std::size_t channel = 0; channel < shape[1]; ++channel) {
        for (std::size_t tap = 1; tap < shape[0]; ++tap) all.push_back(window[tap * shape[1] + channel]);
      }
    }
    return all;
  };
  return layer;
}

}  // namespace kizzasi
