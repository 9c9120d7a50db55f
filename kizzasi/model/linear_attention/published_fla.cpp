#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "kizzasi/model/linear_attention/deltanet.h"
#include "kizzasi/model/linear_attention/gla.h"
#include "kizzasi/model/linear_attention/hgrn.h"
#include "kizzasi/model/linear_attention/lower_bound.h"
#include "kizzasi/model/linear_attention/published.h"

namespace kizzasi {
namespace {

bool has_all(const NamedTensors& tensors, std::initializer_list<const char*> names) {
  return std::all_of(names.begin(), names.end(), [&](const char* name) { return tensors.count(name) != 0; });
}

// Axis `axis` of a tensor, 0 where it has none.
std::int64_t size_of(const NamedTensors& tensors, const char* name, std::size_t axis) {
  const auto found = tensors.find(name);
  if (found == tensors.end() || found->second.shape.size() <= axis) return 0;
  return static_cast<std::int64_t>(found->second.shape[axis]);
}

std::int64_t integer(const Json& config, const char* name) {
  const Json* value = config.find(name);
  return value != nullptr && value->is_integer() ? value->integer() : 0;
}

// Options that change what a layer computes and have only one value here.
Result<void> check_options(const Json& config, std::string_view where) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"gate_fn", "swish"}, {"qk_activation", "silu"}, {"qk_norm", "l2"}, {"hidden_act", "swish"}};
  for (const auto& [name, only] : kWords) {
    const Json* value = config.find(name);
    if (value == nullptr || !value->is_string() || value->string() == only) continue;
    return fail({Fault::kBadInput, fmt::format("{} is {}", name, value->string()), std::string(where), only, ""});
  }
  for (const char* name : {"allow_neg_eigval", "clamp_min", "feature_map", "num_kv_heads"}) {
    const Json* value = config.find(name);
    if (value == nullptr || value->is_null() || (value->is_bool() && !value->boolean())) continue;
    return fail({Fault::kBadInput, fmt::format("{} is {}", name, value->dump()), std::string(where), "none of it", ""});
  }
  return {};
}

struct Heads {
  std::int64_t count, of_keys;
};

// keyed, inner: the tensors whose rows are the keys (nullptr: none) and the values of all heads.
Result<PublishedLayer> lone(const LayerKind& kind, BackboneConfig sizes, const char* keyed, const char* inner, Heads heads,
                            const NamedTensors& tensors, const Json& config, std::string_view where) {
  const std::int64_t keys = keyed == nullptr ? heads.of_keys : size_of(tensors, keyed, 0), values = size_of(tensors, inner, 0);
  if (heads.count <= 0 || heads.of_keys <= 0 || values <= 0 || values % heads.count != 0 || keys % heads.of_keys != 0) {
    return fail({Fault::kBadInput, fmt::format("{} values in {} heads, {} keys in {}", values, heads.count, keys, heads.of_keys),
                 std::string(where), "heads that divide them", "Check num_heads of its configuration."});
  }
  if (auto good = check_options(config, where); !good) return fail(good.error());
  PublishedLayer layer;
  layer.kind = &kind;
  layer.config = std::move(sizes);
  layer.config.d_model = size_of(tensors, inner, 1);
  layer.config.d_inner = values;
  layer.config.n_layers = 1;
  layer.config.norm_eps = python_number(config.find("norm_eps"), 1e-5);
  if (keyed != nullptr) {
    layer.config.head_dim = values / heads.count;
    layer.config.d_state = keys / heads.of_keys;
  }
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  std::map<std::string, Shape> wanted = kind.shapes(layer.config);
  const auto bound = wanted.find(matrix_heads::kLowerBound);
  const std::size_t bounded = bound == wanted.end() ? 0 : bound->second[0];
  if (bounded > 0) wanted.erase(bound);
  if (auto good = check_published(tensors, wanted, layer.config.architecture, where); !good) return fail(good.error());

  set_ours(layer, [bounded](const auto& published) {
    std::remove_cvref_t<decltype(published)> ours;
    for (const auto& [name, var] : published.all()) ours.add("0." + name, var);
    if (bounded == 0) return ours;
    auto* tape = published.all().begin()->second.tape;
    using Scalar = std::remove_cvref_t<decltype(published.all().begin()->second.value()[0])>;
    const std::vector<Scalar> none(bounded);
    ours.add(std::string("0.") + matrix_heads::kLowerBound, tape->constant({bounded}, std::span<const Scalar>(none)));
    return ours;
  });
  // (batch, head, K, V), or (batch, channel).
  layer.state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name != "state") return std::nullopt;
    auto matrix = states.all("layer0.state");
    return matrix ? matrix : states.all("layer0.h");
  };
  return layer;
}

BackboneConfig named(const char* architecture) {
  BackboneConfig config;
  config.architecture = architecture;
  return config;
}

}  // namespace

bool is_published_gla(const NamedTensors& tensors) { return has_all(tensors, {"gk_proj.0.weight", "gk_proj.1.weight", "v_proj.weight"}); }
bool is_published_hgrn(const NamedTensors& tensors) { return has_all(tensors, {"i_proj.weight", "f_proj.weight", "g_proj.weight"}); }
bool is_published_hgrn2(const NamedTensors& tensors) { return has_all(tensors, {"i_proj.weight", "f_proj.weight", "q_proj.weight"}); }
bool is_published_deltanet(const NamedTensors& tensors) {
  return has_all(tensors, {"b_proj.weight", "q_conv1d.weight", "v_proj.weight"}) && tensors.count("A_log") == 0;
}
bool is_published_gated_deltanet(const NamedTensors& tensors) {
  return has_all(tensors, {"b_proj.weight", "a_proj.weight", "A_log", "q_conv1d.weight", "v_proj.weight"});
}

Result<PublishedLayer> published_gla(const NamedTensors& tensors, const Json& config, std::string_view where) {
  BackboneConfig sizes = named("gla");
  sizes.dt_rank = size_of(tensors, "gk_proj.0.weight", 0);
  const std::int64_t values = size_of(tensors, "g_norm_swish_gate.weight", 0),
                     heads = values > 0 ? size_of(tensors, "v_proj.weight", 0) / values : 0;
  return lone(kGlaLayer, sizes, "q_proj.weight", "v_proj.weight", {heads, heads}, tensors, config, where);
}

Result<PublishedLayer> published_hgrn(const NamedTensors& tensors, const Json& config, std::string_view where) {
  return lone(kHgrnLayer, named("hgrn"), nullptr, "i_proj.weight", {1, 1}, tensors, config, where);
}

Result<PublishedLayer> published_hgrn2(const NamedTensors& tensors, const Json& config, std::string_view where) {
  std::int64_t heads = integer(config, "num_heads");
  if (const std::int64_t keys = integer(config, "expand_ratio"); keys > 0) heads = size_of(tensors, "q_proj.weight", 0) / keys;
  return lone(kHgrn2Layer, named("hgrn2"), "q_proj.weight", "i_proj.weight", {heads, heads}, tensors, config, where);
}

Result<PublishedLayer> published_deltanet(const NamedTensors& tensors, const Json& config, std::string_view where) {
  BackboneConfig sizes = named("deltanet");
  sizes.d_conv = size_of(tensors, "q_conv1d.weight", 2);
  const std::int64_t heads = size_of(tensors, "b_proj.weight", 0);
  return lone(kDeltaNetLayer, sizes, "q_proj.weight", "v_proj.weight", {heads, heads}, tensors, config, where);
}

Result<PublishedLayer> published_gated_deltanet(const NamedTensors& tensors, const Json& config, std::string_view where) {
  BackboneConfig sizes = named("gated_deltanet");
  sizes.d_conv = size_of(tensors, "q_conv1d.weight", 2);
  const std::int64_t heads = size_of(tensors, "A_log", 0), stated = integer(config, "num_heads"), of_keys = stated > 0 ? stated : heads;
  sizes.n_key_heads = of_keys == heads ? 0 : of_keys;
  return lone(kGatedDeltaNetLayer, sizes, "q_proj.weight", "v_proj.weight", {heads, of_keys}, tensors, config, where);
}

}  // namespace kizzasi
