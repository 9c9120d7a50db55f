#include "kizzasi/model/attention/published.h"

#include <fmt/format.h>

#include "kizzasi/autograd/ops.h"

namespace kizzasi {
namespace {

// A whole number from 1; one that is missing, null or no such number is an error.
Result<std::int64_t> count_of(const Json& config, std::string_view key, std::string_view where) {
  const Json* value = config.find(key);
  const double number = python_number(value, 0);
  if (!(number >= 1 && number <= 1e9)) {
    return refused(fmt::format("{} is {}", key, value == nullptr ? "missing" : value->dump()), where, "a whole number from 1");
  }
  return static_cast<std::int64_t>(number);
}

Result<void> expect_word(const Json* value, std::string_view name, std::string_view word, std::string_view where) {
  if (value == nullptr || !value->is_string() || value->string() == word) return {};
  return refused(fmt::format("{} is '{}'", name, value->string()), where, std::string(word));
}

// The rest of `name` after `prefix`, or nothing.
std::optional<std::string> after(const std::string& name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

// "layers.3.<part><rest>" of published parts as parts of the stack; empty where no part fits.
std::string block_name(const std::string& name, std::span<const std::pair<std::string_view, std::string_view>> parts) {
  const std::size_t dot = name.find('.');
  if (dot == name.npos) return "";
  for (const auto& [published, ours] : parts) {
    if (const auto rest = after(name.substr(dot + 1), published)) return fmt::format("layers.{}.{}{}", name.substr(0, dot), ours, *rest);
  }
  return "";
}

constexpr std::pair<std::string_view, std::string_view> kLlamaParts[] = {{"input_layernorm.", "norm."},
                                                                         {"self_attn.", "mixer."},
                                                                         {"post_attention_layernorm.", "ffn_norm."},
                                                                         {"mlp.", "ffn."},
                                                                         {"block_sparse_moe.", "ffn."}};
constexpr std::pair<std::string_view, std::string_view> kGpt2Parts[] = {
    {"ln_1.", "norm."}, {"attn.", "mixer."}, {"ln_2.", "ffn_norm."}, {"mlp.", "ffn."}};

std::int64_t blocks_of(const std::map<std::string, std::string>& names) {
  std::int64_t blocks = 0;
  const auto has = [&](const std::string& ours) {
    return std::any_of(names.begin(), names.end(), [&](const auto& each) { return each.second == ours; });
  };
  while (has(fmt::format("layers.{}.norm.weight", blocks))) ++blocks;
  return blocks;
}

}  // namespace

bool is_published_llama(const NamedTensors& tensors) {
  return tensors.count("model.layers.0.self_attn.q_proj.weight") != 0 && tensors.count("model.layers.0.input_layernorm.weight") != 0;
}

Result<PublishedModel> published_llama(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    if (published == "model.embed_tokens.weight") {
      model.embedding = published;
    } else if (published == "lm_head.weight") {
      model.head = published;
    } else if (published == "model.norm.weight") {
      names.emplace(published, "norm_f.weight");
    } else {
      const auto rest = after(published, "model.layers.");
      const std::string ours = rest ? block_name(*rest, kLlamaParts) : "";
      if (ours.empty()) return refused(fmt::format("tensor '{}' belongs to no Llama known here", published), where);
      names.emplace(published, ours);
    }
  }
  const Json *tied = config.find("tie_word_embeddings"), *rope = config.find("rope_parameters");
  if (model.head.empty() && tied != nullptr && tied->is_bool() && tied->boolean()) model.head = model.embedding;
  if (auto good = expect_word(config.find("hidden_act"), "hidden_act", "silu", where); !good) return fail(good.error());
  if (auto good = expect_word(rope != nullptr ? rope->find("rope_type") : nullptr, "rope_type", "default", where); !good) {
    return fail(good.error());
  }
  if (const Json* scaling = config.find("rope_scaling"); scaling != nullptr && !scaling->is_null()) {
    return refused("rope_scaling is given", where, "positions as they are");
  }
  const std::string first = "model.layers.0.";
  const std::int64_t experts = size_of(tensors, first + "block_sparse_moe.gate.weight", 0);
  BackboneConfig& c = model.config;
  c.architecture = experts > 0 ? "mixtral" : "llama";
  c.d_model = size_of(tensors, "model.norm.weight", 0);
  c.n_layers = blocks_of(names);
  const auto heads = count_of(config, "num_attention_heads", where);
  if (!heads) return fail(heads.error());
  c.n_heads = *heads;
  c.n_kv_heads = static_cast<std::int64_t>(python_number(config.find("num_key_value_heads"), static_cast<double>(*heads)));
  c.head_dim = size_of(tensors, first + "self_attn.q_proj.weight", 0) / c.n_heads;
  c.d_ffn =
      experts > 0 ? size_of(tensors, first + "block_sparse_moe.experts.0.w1.weight", 0) : size_of(tensors, first + "mlp.up_proj.weight", 0);
  c.proj_bias = tensors.count(first + "self_attn.q_proj.bias") != 0;
  c.norm_eps = python_number(config.find("rms_norm_eps"), 1e-6);
  c.rope_theta = python_number(rope != nullptr ? rope->find("rope_theta") : config.find("rope_theta"), 10000);
  const Json* window = config.find("sliding_window");
  const auto seen = count_of(config, window != nullptr && window->is_number() ? "sliding_window" : "max_position_embeddings", where);
  if (!seen) return fail(seen.error());
  c.window = *seen;
  if (experts > 0) {
    c.n_experts = experts;
    const auto used = count_of(config, "num_experts_per_tok", where);
    if (!used) return fail(used.error());
    c.experts_used = *used;
  }
  if (auto good = c.check(where); !good) return fail(good.error());
  set_ours(model, [names](const auto& theirs) { return renamed(theirs, names); });
  model.state = [](const std::string&, const StateBatch&) { return std::nullopt; };
  return model;
}

bool is_published_gpt2(const NamedTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& each) { return each.first.ends_with("h.0.attn.c_attn.weight"); });
}

Result<PublishedModel> published_gpt2(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    const std::string bare = after(published, "transformer.").value_or(published);
    if (bare == "wte.weight") {
      model.embedding = published;
      if (model.head.empty()) model.head = published;
    } else if (bare == "lm_head.weight") {
      model.head = published;
    } else if (bare == "wpe.weight") {
      names.emplace(published, "entry.weight");
    } else if (const auto last = after(bare, "ln_f.")) {
      names.emplace(published, "norm_f." + *last);
    } else {
      if (bare.ends_with(".attn.bias") || bare.ends_with(".attn.masked_bias")) continue;  // masks, not weights
      const auto rest = after(bare, "h.");
      const std::string ours = rest ? block_name(*rest, kGpt2Parts) : "";
      if (ours.empty()) return refused(fmt::format("tensor '{}' belongs to no GPT-2 known here", published), where);
      names.emplace(published, ours);
    }
  }
  if (auto good = expect_word(config.find("activation_function"), "activation_function", "gelu_new", where); !good) {
    return fail(good.error());
  }
  const auto heads = count_of(config, "n_head", where);
  if (!heads) return fail(heads.error());
  const auto size = [&](const std::string& ours, std::size_t axis) {
    for (const auto& [published, name] : names) {
      if (name == ours) return size_of(tensors, published, axis);
    }
    return std::int64_t{0};
  };
  BackboneConfig& c = model.config;
  c.architecture = "gpt2";
  c.d_model = size("norm_f.weight", 0);
  c.n_layers = blocks_of(names);
  c.n_heads = *heads;
  c.head_dim = std::max<std::int64_t>(1, c.d_model / c.n_heads);
  c.window = size("entry.weight", 0);
  c.d_ffn = size("layers.0.ffn.c_fc.weight", 1);
  c.norm_eps = python_number(config.find("layer_norm_epsilon"), 1e-5);
  if (auto good = c.check(where); !good) return fail(good.error());
  // Their matrices are (inputs, outputs), and query, key and value stand side by side.
  set_ours(model, [names, d = static_cast<std::size_t>(c.d_model)](const auto& theirs) {
    const auto taken = renamed(theirs, names);
    std::decay_t<decltype(taken)> ours;
    for (const auto& [name, var] : taken.all()) {
      const bool matrix = var.dims().size() == 2 && name != "entry.weight";
      const auto turned = matrix ? autograd::permute(var, {1, 0}) : var;
      const std::size_t at = name.rfind('.', name.rfind('.') - 1) + 1;  // of "c_attn.weight"
      const std::string before = name.substr(0, at), part = name.substr(at);
      const std::string_view kind = matrix ? ".weight" : ".bias";
      if (part.starts_with("c_attn")) {
        for (std::size_t i = 0; i < 3; ++i) {
          ours.add(before + std::string(1, "qkv"[i]) + "_proj" + std::string(kind), autograd::slice(turned, 0, i * d, (i + 1) * d));
        }
      } else if (part.starts_with("c_")) {
        const bool attention = before.ends_with("mixer.");
        ours.add(before + (attention ? "o_proj" : part.starts_with("c_fc") ? "up_proj" : "down_proj") + std::string(kind), turned);
      } else {
        ours.add(name, turned);
      }
    }
    return ours;
  });
  model.state = [](const std::string&, const StateBatch&) { return std::nullopt; };
  return model;
}

}  // namespace kizzasi
