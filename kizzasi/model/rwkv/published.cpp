#include "kizzasi/model/rwkv/published.h"

#include <fmt/format.h>

#include <array>

#include "kizzasi/autograd/ops.h"

namespace kizzasi {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (const std::size_t at = text.find(from); at != text.npos) text.replace(at, from.size(), to);
  return text;
}

// Hugging Face's names as those of the .pth files.
std::string plain_name(std::string name) {
  if (!name.starts_with("rwkv.")) return name;
  name = name.substr(5);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNames{{{"embeddings.", "emb."},
                                                                                 {".pre_ln.", ".ln0."},
                                                                                 {".attention.", ".att."},
                                                                                 {".feed_forward.", ".ffn."},
                                                                                 {"time_mix_key", "time_mix_k"},
                                                                                 {"time_mix_value", "time_mix_v"},
                                                                                 {"time_mix_receptance", "time_mix_r"}}};
  for (const auto& [from, to] : kNames) name = replaced(std::move(name), from, to);
  return name;
}

// The name of a plain one in the stack.
std::string stack_name(std::string name) {
  if (name.starts_with("blocks.0.ln0.")) return "entry." + name.substr(13);
  if (name.starts_with("ln_out.")) return "norm_f." + name.substr(7);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames{
      {{"blocks.", "layers."}, {".ln1.", ".norm."}, {".ln2.", ".ffn_norm."}, {".att.", ".mixer."}}};
  for (const auto& [from, to] : kNames) name = replaced(std::move(name), from, to);
  return name;
}

std::string version_of(const std::map<std::string, std::string>& names) {
  const auto has = [&](const char* name) { return names.count(std::string("layers.0.mixer.") + name) != 0; };
  if (has("r_k")) return "rwkv7";
  if (has("time_maa_w1")) return "rwkv6";
  if (has("time_faaaa")) return "rwkv5_2";
  if (has("gate.weight")) return "rwkv5_1";
  return has("ln_x.weight") ? "rwkv5_0" : "rwkv4";
}

}  // namespace

bool is_published_rwkv(const NamedTensors& tensors) {
  return tensors.count("blocks.0.att.receptance.weight") != 0 || tensors.count("rwkv.blocks.0.attention.receptance.weight") != 0;
}

Result<PublishedModel> published_rwkv(const NamedTensors& tensors, const Json& config, std::string_view where) {
  PublishedModel model;
  std::map<std::string, std::string> theirs, ours;  // stack name -> published, and back
  for (const auto& [published, tensor] : tensors) {
    const std::string plain = plain_name(published);
    if (plain == "emb.weight") {
      model.embedding = published;
    } else if (plain == "head.weight") {
      model.head = published;
    } else {
      theirs.emplace(stack_name(plain), published);
    }
  }
  BackboneConfig& c = model.config;
  c.architecture = version_of(theirs);
  if (c.architecture == "rwkv7") {
    // Files may hold these for the first block, whose values they would mix with themselves.
    for (const char* unused : {"v0", "v1", "v2"}) theirs.erase(std::string("layers.0.mixer.") + unused);
  }
  for (const auto& [name, published] : theirs) ours.emplace(published, name);
  const auto size = [&](const std::string& name, std::size_t axis) -> std::int64_t {
    const auto found = theirs.find(name);
    if (found == theirs.end()) return 0;
    const Shape& shape = tensors.at(found->second).shape;
    return axis < shape.size() ? static_cast<std::int64_t>(shape[axis]) : 0;
  };
  const auto mixer = [&](const char* name, std::size_t axis) { return size(std::string("layers.0.mixer.") + name, axis); };
  c.d_model = size("norm_f.weight", 0);
  c.n_layers = 0;
  while (theirs.count(fmt::format("layers.{}.norm.weight", c.n_layers)) != 0) ++c.n_layers;
  if (c.d_model == 0 || c.n_layers == 0) return refused("there is no ln_out.weight or no block", where, "a checkpoint of an RWKV");
  if (mixer("key.weight", 0) != c.d_model) {
    return refused(fmt::format("the attention is {} wide", mixer("key.weight", 0)), where, fmt::format("d_model {}", c.d_model));
  }
  c.d_ffn = size("layers.0.ffn.key.weight", 0);
  c.norm_eps = python_number(config.find("layer_norm_epsilon"), 1e-5);
  const std::int64_t heads = std::max({mixer("time_faaaa", 0), mixer("r_k", 0), mixer("time_first", 0)});
  if (c.architecture != "rwkv4") {
    if (heads == 0 || c.d_model % heads != 0) return refused(fmt::format("{} heads of a width {}", heads, c.d_model), where, "whole heads");
    c.head_dim = c.d_model / heads;
  }
  c.mix_rank = mixer("time_maa_w1", 1) / 5;
  c.decay_rank = std::max(mixer("time_decay_w1", 1), mixer("w1", 1));
  c.rate_rank = mixer("a1", 1);
  c.gate_rank = mixer("g1", 1);
  for (const auto& [name, published] : theirs) {
    if (name.ends_with(".mixer.v1")) c.value_rank = size(name, 1);
  }
  c.head_norm_eps = python_number(config.find("head_norm_epsilon"), c.head_norm_eps);
  if (auto good = c.check(where); !good) return fail(good.error());
  set_ours(model, [ours](const auto& from) {
    auto taken = renamed(from, ours);
    std::decay_t<decltype(taken)> flat;
    for (const auto& [name, var] : taken.all()) {
      const bool row = var.dims().size() == 3 && var.dims()[0] == 1 && var.dims()[1] == 1;
      flat.add(name, row ? autograd::reshape(var, {var.dims()[2]}) : var);
    }
    return flat;
  });
  model.state = [seven = c.architecture == "rwkv7"](const std::string& field, const StateBatch& states) {
    // Of 7 the published matrices are (value, key).
    const bool turned = seven && field.ends_with(".att_kv");
    return turned ? states.with_last_axes_swapped(field) : states.all(field);
  };
  return model;
}

}  // namespace kizzasi
