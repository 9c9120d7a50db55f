#include "kizzasi/model/published_mamba.h"

#include <fmt/format.h>

#include <algorithm>

namespace kizzasi {
namespace {

constexpr std::string_view kPrefix = "backbone.";

std::int64_t size_of(const Tensor& tensor, std::size_t axis) {
  return axis < tensor.shape.size() ? static_cast<std::int64_t>(tensor.shape[axis]) : 0;
}

// The first of several keys that is there, looked up in `config` and in mamba_ssm's nested "ssm_cfg".
const Json* key(const Json& config, std::initializer_list<std::string_view> names) {
  const Json* nested = config.find("ssm_cfg");
  for (const std::string_view name : names) {
    if (const Json* value = config.find(name)) return value;
    if (nested == nullptr) continue;
    if (const Json* value = nested->find(name)) return value;
  }
  return nullptr;
}

bool flag(const Json* value, bool otherwise) { return value != nullptr && value->is_bool() ? value->boolean() : otherwise; }

// What the configuration asks for beyond what is computed here.
Result<void> check_kind(const Json& config, std::string_view where) {
  const Json* activation = key(config, {"hidden_act"});
  if (activation != nullptr && activation->is_string() && activation->string() != "silu" && activation->string() != "swish") {
    return refused(fmt::format("hidden_act is '{}'", activation->string()), where, "silu");
  }
  if (const Json* attention = key(config, {"attn_layer_idx"});
      attention != nullptr && attention->is_array() && !attention->items().empty()) {
    return refused("the model has attention layers", where, "Mamba layers only");
  }
  if (const Json* between = key(config, {"d_intermediate"}); python_number(between, 0) != 0) {
    return refused("the model has feed-forward layers between its mixers", where, "d_intermediate 0");
  }
  if (config.find("ssm_cfg") != nullptr) {
    if (!flag(config.find("rms_norm"), true)) return refused("the model has layer norms", where, "rms_norm true");
    if (flag(key(config, {"norm_before_gate"}), false))
      return refused("the gated norm stands before the gate", where, "norm_before_gate false");
    if (flag(key(config, {"D_has_hdim"}), false)) return refused("D has a value for every channel of a head", where, "one for each head");
  }
  return {};
}

void mamba_sizes(const NamedTensors& w, const Json& config, BackboneConfig& c) {
  const auto at = [&](const char* name, std::size_t axis) {
    const auto found = w.find(std::string("layers.0.mixer.") + name);
    return found == w.end() ? std::int64_t{0} : size_of(found->second, axis);
  };
  const Json* type = config.find("model_type");
  const bool falcon = config.find("mixer_rms_eps") != nullptr || (type != nullptr && type->is_string() && type->string() == "falcon_mamba");
  c.architecture = falcon ? "falcon_mamba" : "mamba";
  c.mixer_norm_eps = python_number(config.find("mixer_rms_eps"), c.mixer_norm_eps);
  c.d_inner = at("A_log", 0);
  c.d_state = at("A_log", 1);
  c.dt_rank = at("dt_proj.weight", 1);
}

Result<void> mamba2_sizes(const NamedTensors& w, const Json& config, BackboneConfig& c, std::string_view where) {
  const auto at = [&](const char* name, std::size_t axis) {
    const auto found = w.find(std::string("layers.0.mixer.") + name);
    return found == w.end() ? std::int64_t{0} : size_of(found->second, axis);
  };
  c.architecture = "mamba2";
  c.d_inner = at("out_proj.weight", 1);
  const std::int64_t heads = at("A_log", 0), both = at("conv1d.weight", 0) - c.d_inner;  // both: B and C
  const double groups = python_number(key(config, {"n_groups", "ngroups"}), 1);
  if (!(groups >= 1 && groups <= 65536)) return refused(fmt::format("n_groups is {}", groups), where, "a whole number from 1");
  c.n_groups = static_cast<std::int64_t>(groups);
  if (heads < 1 || c.d_inner % heads != 0 || both < 2 * c.n_groups || both % (2 * c.n_groups) != 0) {
    return refused(fmt::format("tensors of layer 0 do not make whole heads and {} groups", c.n_groups), where);
  }
  c.head_dim = c.d_inner / heads;
  c.d_state = both / (2 * c.n_groups);
  c.chunk = std::clamp<std::int64_t>(static_cast<std::int64_t>(python_number(key(config, {"chunk_size"}), 64)), 1, 1024);
  if (const Json* limit = key(config, {"time_step_limit", "dt_limit"});
      limit != nullptr && limit->is_array() && limit->items().size() == 2) {
    c.dt_limit_low = python_number(&limit->items()[0], 0);
    c.dt_limit_high = std::min(python_number(&limit->items()[1], c.dt_limit_high), c.dt_limit_high);
  }
  return {};
}

}  // namespace

bool is_published_mamba(const NamedTensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto& each) { return each.first.ends_with("layers.0.mixer.A_log"); });
}

Result<PublishedModel> published_mamba(const NamedTensors& tensors, const Json& config, std::string_view where) {
  if (auto good = check_kind(config, where); !good) return fail(good.error());
  PublishedModel model;
  NamedTensors weights;
  std::map<std::string, std::string> names;
  for (const auto& [published, tensor] : tensors) {
    const std::string name = published.starts_with(kPrefix) ? published.substr(kPrefix.size()) : published;
    if (name == "embeddings.weight" || name == "embedding.weight") {
      model.embedding = published;
    } else if (name == "lm_head.weight") {
      model.head = published;
    } else {
      names.emplace(published, name);
      weights.emplace(name, tensor);
    }
  }
  // A tied head may be stored a second time; training it apart is not what the configuration says.
  const bool tied = flag(key(config, {"tie_word_embeddings", "tie_embeddings"}), false) && !model.embedding.empty();
  if (tied || model.head.empty()) model.head = model.embedding;
  set_ours(model, [names](const auto& theirs) { return renamed(theirs, names); });
  // Ours has channels last; the published conv state is (channels, d_conv), the ssm state (inner, d_state) or (heads, head_dim, d_state).
  model.state = [](const std::string& field, const StateBatch& states) { return states.with_last_axes_swapped(field); };

  BackboneConfig& c = model.config;
  const auto norm = weights.find("norm_f.weight");
  if (norm == weights.end()) return refused("there is no norm_f.weight", where, "a checkpoint of the Mamba family");
  c.d_model = size_of(norm->second, 0);
  c.n_layers = 0;
  while (weights.count(fmt::format("layers.{}.norm.weight", c.n_layers)) != 0) ++c.n_layers;
  const auto has = [&](const char* name) { return weights.count(std::string("layers.0.mixer.") + name) != 0; };
  c.proj_bias = has("in_proj.bias");
  c.conv_bias = has("conv1d.bias");
  if (has("conv1d.weight")) c.d_conv = size_of(weights.at("layers.0.mixer.conv1d.weight"), 2);
  c.norm_eps = python_number(key(config, {"layer_norm_epsilon", "norm_epsilon"}), c.norm_eps);
  if (has("dt_bias")) {
    if (auto good = mamba2_sizes(weights, config, c, where); !good) return fail(good.error());
  } else {
    mamba_sizes(weights, config, c);
  }
  if (auto good = c.check(where); !good) return fail(good.error());
  return model;
}

}  // namespace kizzasi
