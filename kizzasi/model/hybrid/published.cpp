#include "kizzasi/model/hybrid/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/hybrid/hybrid.h"

namespace kizzasi {
namespace {

using Parts = std::span<const std::pair<std::string_view, std::string_view>>;
constexpr std::string_view kLayers = "model.layers.";

bool any_named(const NamedTensors& tensors, std::string_view part) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const auto& each) { return each.first.starts_with(kLayers) && each.first.find(part) != std::string::npos; });
}

// "model.layers.3.<part><rest>" as a name of the stack; empty where no part fits.
std::string stack_name(const std::string& published, Parts parts) {
  if (!published.starts_with(kLayers)) return "";
  const std::size_t dot = published.find('.', kLayers.size());
  if (dot == published.npos) return "";
  const std::string block = "layers." + published.substr(kLayers.size(), dot - kLayers.size()) + ".", rest = published.substr(dot + 1);
  for (const auto& [theirs, ours] : parts) {
    if (rest.starts_with(theirs)) return block + std::string(ours) + rest.substr(theirs.size());
  }
  return "";
}

// What all three have alike: names, sizes of the stack and of attention. names: published to those of the stack.
Result<std::map<std::string, std::string>> read_stack(PublishedModel& model, const NamedTensors& tensors, const Json& config,
                                                      std::string_view last_norm, Parts parts, std::string_view where) {
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    if (published == "model.embed_tokens.weight") {
      model.embedding = published;
    } else if (published == "lm_head.weight") {
      model.head = published;
    } else if (published == last_norm) {
      names.emplace(published, "norm_f.weight");
    } else {
      const std::string ours = stack_name(published, parts);
      if (ours.empty()) return refused(fmt::format("tensor '{}' belongs to no {} known here", published, model.config.architecture), where);
      names.emplace(published, ours);
    }
  }
  const Json *tied = config.find("tie_word_embeddings"), *act = config.find("hidden_act");
  if (model.head.empty() && tied != nullptr && tied->is_bool() && tied->boolean()) model.head = model.embedding;
  if (act != nullptr && act->is_string() && act->string() != "silu") {
    return refused(fmt::format("hidden_act is '{}'", act->string()), where, "silu");
  }
  BackboneConfig& c = model.config;
  const auto size = [&](const std::string& name, std::size_t axis) { return size_of(tensors, name, axis); };
  const auto in_block = [](std::int64_t block, std::string_view rest) { return fmt::format("{}{}.{}", kLayers, block, rest); };
  c.d_model = size(std::string(last_norm), 0);
  c.n_layers = 0;
  while (size(in_block(c.n_layers, "input_layernorm.weight"), 0) != 0) ++c.n_layers;
  std::int64_t attends = -1;
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    if (size(in_block(i, "self_attn.q_proj.weight"), 0) == 0) continue;
    c.attention_layers.push_back(static_cast<double>(i));
    attends = i;
  }
  if (attends < 0) return refused("no block has attention", where, "at least one");
  const double heads = python_number(config.find("num_attention_heads"), 0);
  if (!(heads >= 1 && heads <= 65536)) return refused("num_attention_heads is missing or no whole number", where, "from 1");
  c.n_heads = static_cast<std::int64_t>(heads);
  c.n_kv_heads = static_cast<std::int64_t>(python_number(config.find("num_key_value_heads"), heads));
  c.attention_head_dim = size(in_block(attends, "self_attn.o_proj.weight"), 1) / c.n_heads;
  c.norm_eps = python_number(config.find("rms_norm_eps"), 1e-6);
  const Json *window = config.find("sliding_window"), *longest = config.find("max_position_embeddings");
  c.window = static_cast<std::int64_t>(python_number(window != nullptr && window->is_number() ? window : longest, 4096));
  const Json* rope = config.find("rope_parameters");
  const auto turned = [&](std::string_view key, double otherwise) {
    return python_number(rope != nullptr && rope->find(key) != nullptr ? rope->find(key) : config.find(key), otherwise);
  };
  c.rope_theta = turned("rope_theta", 10000);
  c.rope_fraction = turned("partial_rotary_factor", 1);
  // Of an odd number of channels, their code turns one more, by angles that fall as if there were not.
  const auto width = static_cast<double>(c.attention_head_dim), turning = std::floor(width * c.rope_fraction);
  if (!(turning >= 0 && turning <= width)) return refused(fmt::format("partial_rotary_factor is {}", c.rope_fraction), where, "0 to 1");
  if (const double pairs = std::ceil(turning / 2); turning > 0) {
    c.rope_fraction = 2 * pairs / width;
    c.rope_theta = std::pow(c.rope_theta, 2 * pairs / turning);
  }
  const Json* kind = rope != nullptr ? rope->find("rope_type") : nullptr;
  if (kind != nullptr && kind->is_string() && kind->string() != "default") {
    return refused(fmt::format("rope_type is '{}'", kind->string()), where, "default");
  }
  return names;
}

std::int64_t first_without(const std::vector<double>& layers, std::int64_t n_layers) {
  for (std::int64_t i = 0; i < n_layers; ++i) {
    if (std::find(layers.begin(), layers.end(), static_cast<double>(i)) == layers.end()) return i;
  }
  return n_layers;
}

// Biases in all projections or in none: of "in_proj.bias", say, in the blocks that have "in_proj.weight".
Result<void> check_biases(const NamedTensors& tensors, std::string_view where) {
  bool some = false, all = true;
  std::string without;
  for (const auto& [name, tensor] : tensors) {
    constexpr std::string_view kWeight = "_proj.weight";
    if (!name.starts_with(kLayers) || !name.ends_with(kWeight) || name.ends_with(".dt_proj.weight")) continue;
    if (name.ends_with(".x_proj.weight")) continue;
    const bool here = tensors.count(name.substr(0, name.size() - std::string_view("weight").size()) + "bias") != 0;
    some = some || here;
    all = all && here;
    if (!here) without = name;
  }
  if (!some || all) return {};
  return refused(fmt::format("'{}' has no bias, and others have", without), where, "biases in all projections or in none");
}

constexpr std::pair<std::string_view, std::string_view> kMambaParts[] = {{"input_layernorm.", "norm."},
                                                                         {"mamba.", "mixer."},
                                                                         {"self_attn.", "mixer."},
                                                                         {"pre_ff_layernorm.", "ffn_norm."},
                                                                         {"feed_forward.", "ffn."}};

// Which feed-forward halves are mixtures, and their widths. half: "mlp.".
Result<void> read_halves(BackboneConfig& c, const NamedTensors& tensors, const Json& config, std::string_view half, std::string_view router,
                         std::string_view where) {
  c.n_experts = c.experts_used = 1;
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const std::string before = fmt::format("{}{}.{}", kLayers, i, half);
    const std::int64_t experts = size_of(tensors, before + std::string(router), 0);
    if (experts > 0) {
      c.expert_layers.push_back(static_cast<double>(i));
      c.n_experts = experts;
      c.d_expert = size_of(tensors, before + "experts.0.up_proj.weight", 0);
      c.d_shared_expert = size_of(tensors, before + "shared_expert.up_proj.weight", 0);
    } else {
      c.d_ffn = size_of(tensors, before + "up_proj.weight", 0);
    }
  }
  if (c.expert_layers.empty()) return {};
  if (c.n_experts == 1) return refused("a mixture of one expert", where, "at least two");
  const double used = python_number(config.find("num_experts_per_tok"), 0);
  if (!(used >= 1 && used <= 256)) return refused("num_experts_per_tok is missing or no whole number", where, "from 1");
  c.experts_used = static_cast<std::int64_t>(used);
  return {};
}

// Ours keeps channels last; nothing else is asked for.
std::optional<std::vector<float>> no_state(const std::string&, const StateBatch&) { return std::nullopt; }

}  // namespace

bool is_published_jamba(const NamedTensors& tensors) { return any_named(tensors, ".mamba.dt_layernorm.weight"); }

Result<PublishedModel> published_jamba(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  BackboneConfig& c = model.config;
  c.architecture = "jamba";
  const auto names = read_stack(model, tensors, config, "model.final_layernorm.weight", kMambaParts, where);
  if (!names) return fail(names.error());
  if (auto good = check_biases(tensors, where); !good) return fail(good.error());
  const std::string mixer = fmt::format("{}{}.mamba.", kLayers, first_without(c.attention_layers, c.n_layers));
  c.d_inner = size_of(tensors, mixer + "A_log", 0);
  c.d_state = size_of(tensors, mixer + "A_log", 1);
  c.dt_rank = size_of(tensors, mixer + "dt_proj.weight", 1);
  c.d_conv = size_of(tensors, mixer + "conv1d.weight", 2);
  c.conv_bias = tensors.count(mixer + "conv1d.bias") != 0;
  c.proj_bias = tensors.count(mixer + "in_proj.bias") != 0;
  c.mixer_norm_eps = c.norm_eps;
  if (auto good = read_halves(c, tensors, config, "feed_forward.", "router.weight", where); !good) return fail(good.error());
  if (auto good = c.check(where); !good) return fail(good.error());
  set_ours(model, [names = *names](const auto& theirs) { return renamed(theirs, names); });
  model.state = no_state;
  return model;
}

bool is_published_bamba(const NamedTensors& tensors) {
  return any_named(tensors, ".mamba.dt_bias") && tensors.count("model.final_layernorm.weight") != 0;
}

Result<PublishedModel> published_bamba(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  BackboneConfig& c = model.config;
  c.architecture = "bamba";
  const auto names = read_stack(model, tensors, config, "model.final_layernorm.weight", kMambaParts, where);
  if (!names) return fail(names.error());
  if (auto good = check_biases(tensors, where); !good) return fail(good.error());
  const std::string mixer = fmt::format("{}{}.mamba.", kLayers, first_without(c.attention_layers, c.n_layers));
  if (const double groups = python_number(config.find("mamba_n_groups"), 1); groups != 1) {
    return refused(fmt::format("mamba_n_groups is {}", groups), where, "1");
  }
  c.d_inner = size_of(tensors, mixer + "out_proj.weight", 1);
  const std::int64_t heads = size_of(tensors, mixer + "A_log", 0), both = size_of(tensors, mixer + "conv1d.weight", 0) - c.d_inner;
  if (heads < 1 || c.d_inner % heads != 0 || both < 2 || both % 2 != 0) {
    return refused("tensors of its Mamba-2 layers do not make whole heads", where);
  }
  c.head_dim = c.d_inner / heads;
  c.d_state = both / 2;
  c.d_conv = size_of(tensors, mixer + "conv1d.weight", 2);
  c.conv_bias = tensors.count(mixer + "conv1d.bias") != 0;
  c.proj_bias = tensors.count(mixer + "in_proj.bias") != 0;
  c.d_ffn = size_of(tensors, std::string(kLayers) + "0.feed_forward.up_proj.weight", 0);
  c.chunk = std::clamp<std::int64_t>(static_cast<std::int64_t>(python_number(config.find("mamba_chunk_size"), 64)), 1, 1024);
  if (const Json* limit = config.find("time_step_limit"); limit != nullptr && limit->is_array() && limit->items().size() == 2) {
    c.dt_limit_low = python_number(&limit->items()[0], 0);
    c.dt_limit_high = std::min(python_number(&limit->items()[1], c.dt_limit_high), c.dt_limit_high);
  }
  if (auto good = c.check(where); !good) return fail(good.error());
  set_ours(model, [names = *names](const auto& theirs) { return renamed(theirs, names); });
  model.state = no_state;
  return model;
}

namespace {

constexpr std::pair<std::string_view, std::string_view> kQwenParts[] = {{"input_layernorm.", "norm."},
                                                                        {"linear_attn.", "mixer."},
                                                                        {"self_attn.", "mixer."},
                                                                        {"post_attention_layernorm.", "ffn_norm."},
                                                                        {"mlp.", "ffn."}};

// Of a Gated DeltaNet layer: how many channels q, k and v have together, and how the rows of its fused projections are grouped.
struct QwenHeads {
  std::size_t key_heads, heads, keys, values, d;
};

// Rows [begin, end) of every key head's group, one after the other.
template <typename Var>
Var of_groups(Var fused, const QwenHeads& h, std::size_t begin, std::size_t end) {
  const std::size_t group = fused.dims()[0] / h.key_heads;
  return autograd::reshape(autograd::slice(autograd::reshape(fused, {h.key_heads, group, h.d}), 1, begin, end),
                           {h.key_heads * (end - begin), h.d});
}

// One published tensor of the layer as ours; before: "layers.0.mixer.".
template <typename Ours, typename Var>
void add_delta(Ours& ours, const std::string& before, const std::string& part, Var var, const QwenHeads& h) {
  using autograd::slice;
  const std::size_t each = h.heads / h.key_heads, wide = each * h.values, keyed = h.key_heads * h.keys;
  if (part == "in_proj_qkvz.weight") {
    ours.add(before + "q_proj.weight", of_groups(var, h, 0, h.keys));
    ours.add(before + "k_proj.weight", of_groups(var, h, h.keys, 2 * h.keys));
    ours.add(before + "v_proj.weight", of_groups(var, h, 2 * h.keys, 2 * h.keys + wide));
    ours.add(before + "g_proj.weight", of_groups(var, h, 2 * h.keys + wide, 2 * h.keys + 2 * wide));
  } else if (part == "in_proj_ba.weight") {
    ours.add(before + "b_proj.weight", of_groups(var, h, 0, each));
    ours.add(before + "a_proj.weight", of_groups(var, h, each, 2 * each));
  } else if (part == "conv1d.weight") {
    ours.add(before + "q_conv1d.weight", slice(var, 0, 0, keyed));
    ours.add(before + "k_conv1d.weight", slice(var, 0, keyed, 2 * keyed));
    ours.add(before + "v_conv1d.weight", slice(var, 0, 2 * keyed, var.dims()[0]));
  } else {
    ours.add(before + (part == "norm.weight" ? "o_norm.weight" : part == "out_proj.weight" ? "o_proj.weight" : part), var);
  }
}

}  // namespace

bool is_published_qwen3_next(const NamedTensors& tensors) { return any_named(tensors, ".linear_attn.in_proj_qkvz.weight"); }

Result<PublishedModel> published_qwen3_next(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  BackboneConfig& c = model.config;
  c.architecture = "qwen3_next";
  if (const Json* sums = config.find("norm_topk_prob"); sums != nullptr && sums->is_bool() && !sums->boolean()) {
    return refused("norm_topk_prob is false", where, "true");
  }
  const auto names = read_stack(model, tensors, config, "model.norm.weight", kQwenParts, where);
  if (!names) return fail(names.error());
  if (auto good = check_biases(tensors, where); !good) return fail(good.error());
  const std::string mixer = fmt::format("{}{}.linear_attn.", kLayers, first_without(c.attention_layers, c.n_layers));
  const std::int64_t heads = size_of(tensors, mixer + "A_log", 0);
  const double key_heads = python_number(config.find("linear_num_key_heads"), static_cast<double>(heads));
  c.d_inner = size_of(tensors, mixer + "out_proj.weight", 1);
  c.head_dim = size_of(tensors, mixer + "norm.weight", 0);
  c.d_conv = size_of(tensors, mixer + "conv1d.weight", 2);
  if (auto good = read_halves(c, tensors, config, "mlp.", "gate.weight", where); !good) return fail(good.error());
  const std::int64_t keyed = (size_of(tensors, mixer + "conv1d.weight", 0) - c.d_inner) / 2;
  if (!(key_heads >= 1 && key_heads <= 4096) || heads < 1 || c.head_dim * heads != c.d_inner || keyed < 1 ||
      keyed % static_cast<std::int64_t>(key_heads) != 0 || heads % static_cast<std::int64_t>(key_heads) != 0) {
    return refused(fmt::format("{} heads of values and {} of keys do not fit the tensors", heads, key_heads), where, "whole heads");
  }
  for (std::int64_t i = 0; i < c.n_layers; ++i) {
    const std::string layer = fmt::format("{}{}.linear_attn.", kLayers, i);
    const std::int64_t d = c.d_model,
                       fused[][3] = {{2 * keyed + 2 * c.d_inner, d, 0}, {2 * heads, d, 0}, {2 * keyed + c.d_inner, 1, c.d_conv}};
    constexpr const char* kFused[] = {"in_proj_qkvz.weight", "in_proj_ba.weight", "conv1d.weight"};
    for (std::size_t t = 0; t < 3 && !has_attention(c, i); ++t) {
      for (std::size_t axis = 0; axis < 3; ++axis) {
        if (size_of(tensors, layer + kFused[t], axis) == fused[t][axis]) continue;
        return refused(
            fmt::format("'{}{}' is missing or has another shape than that of the first block without attention", layer, kFused[t]), where);
      }
    }
  }
  c.n_key_heads = static_cast<std::int64_t>(key_heads);
  c.d_state = keyed / c.n_key_heads;
  if (auto good = c.check(where); !good) return fail(good.error());
  const auto count = [](std::int64_t v) { return static_cast<std::size_t>(v); };
  const QwenHeads sizes{count(c.n_key_heads), count(heads), count(c.d_state), count(c.head_dim), count(c.d_model)};
  // Norms of the stack and of queries and keys are stored minus one.
  set_ours(model, [names = *names, sizes](const auto& theirs) {
    std::decay_t<decltype(theirs)> ours;
    for (const auto& [published, name] : names) {
      const auto var = theirs.at(published);
      using Scalar = std::decay_t<decltype(var.value()[0])>;
      const std::size_t at = published.find(".linear_attn.");
      if (at != published.npos) {
        const std::string part = published.substr(at + std::string_view(".linear_attn.").size());
        add_delta(ours, name.substr(0, name.size() - part.size()), part, var, sizes);
      } else if (name == "norm_f.weight" || name.ends_with("norm.weight")) {
        ours.add(name, autograd::add_scalar(var, Scalar{1}));
      } else {
        ours.add(name, var);
      }
    }
    return ours;
  });
  model.state = [](const std::string& field, const StateBatch& states) -> std::optional<std::vector<float>> {
    return field.find('.') == field.npos ? states.all(field + ".state") : std::nullopt;
  };
  return model;
}

}  // namespace kizzasi
