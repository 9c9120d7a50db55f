#include "kizzasi/model/linear_attention/published.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "kizzasi/model/linear_attention/retnet.h"

namespace kizzasi {
namespace {

constexpr const char* kWeights[] = {"q_proj.weight", "k_proj.weight", "v_proj.weight", "g_proj.weight", "out_proj.weight"};

// All stored constants are what the layer computes with.
Result<void> check_constants(const NamedTensors& tensors, std::size_t heads, std::size_t keys, std::string_view where) {
  const auto expect = [&](const char* name, std::size_t count, auto value) -> Result<void> {
    const auto found = tensors.find(name);
    if (found == tensors.end()) return {};
    for (std::size_t i = 0; i < count; ++i) {
      const double stored = found->second.values[i], ours = value(i);
      if (std::abs(stored - ours) <= 1e-5 * std::abs(ours)) continue;
      return fail({Fault::kBadInput, fmt::format("value {} is {}", i, stored), fmt::format("{}: '{}'", where, name),
                   fmt::format("{}, as published", ours), ""});
    }
    return {};
  };
  const double last = keys > 2 ? static_cast<double>(keys / 2 - 1) : 1.0;
  auto good = expect("pos.angle", keys, [=](std::size_t i) { return std::pow(10000.0, -static_cast<double>(i / 2) / last); });
  if (!good) return good;
  return expect("pos.decay", heads, [](std::size_t h) { return std::log1p(-std::exp2(-5.0 - static_cast<double>(h))); });
}

}  // namespace

bool is_published_retnet(const NamedTensors& tensors) {
  if (tensors.count("q_conv1d.weight") != 0) return false;
  for (const char* name : kWeights) {
    if (tensors.count(name) == 0) return false;
  }
  return true;
}

Result<PublishedLayer> published_retnet(const NamedTensors& tensors, const Json& config, std::string_view where) {
  const auto refused = [&](std::string what, std::string expected) {
    return fail({Fault::kBadInput, std::move(what), std::string(where), std::move(expected), ""});
  };
  const Shape &q = tensors.at("q_proj.weight").shape, &v = tensors.at("v_proj.weight").shape;
  if (q.size() != 2 || v.size() != 2 || q[1] != v[1])
    return refused("q_proj and v_proj do not fit together", "(keys, inputs) and (values, inputs)");
  std::size_t heads = 0;
  if (const auto decay = tensors.find("pos.decay"); decay != tensors.end()) {
    heads = decay->second.values.size();
  } else if (const Json* stated = config.find("num_heads"); stated != nullptr && stated->is_integer() && stated->integer() > 0) {
    heads = static_cast<std::size_t>(stated->integer());
  }
  if (heads == 0 || q[0] % heads != 0 || v[0] % heads != 0) {
    return refused(fmt::format("{} heads of {} keys and {} values", heads, q[0], v[0]), "pos.decay or num_heads, dividing both");
  }
  if (const Json* gate = config.find("gate_fn"); gate != nullptr && gate->is_string() && gate->string() != "swish") {
    return refused(fmt::format("gate_fn is {}", gate->string()), "swish");
  }
  PublishedLayer layer;
  layer.kind = &kRetNetLayer;
  layer.config.architecture = "retnet";
  layer.config.d_model = static_cast<std::int64_t>(q[1]);
  layer.config.d_inner = static_cast<std::int64_t>(v[0]);
  layer.config.head_dim = static_cast<std::int64_t>(v[0] / heads);
  layer.config.d_state = static_cast<std::int64_t>(q[0] / heads);
  layer.config.norm_eps = python_number(config.find("layernorm_eps"), 1e-6);
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  std::map<std::string, Shape> wanted = kRetNetLayer.shapes(layer.config);
  if (tensors.count("pos.angle") != 0) wanted["pos.angle"] = {q[0] / heads};
  if (tensors.count("pos.decay") != 0) wanted["pos.decay"] = {heads};
  if (auto good = check_published(tensors, wanted, "retnet", where); !good) return fail(good.error());
  if (auto good = check_constants(tensors, heads, q[0] / heads, where); !good) return fail(good.error());

  set_ours(layer, [](const auto& published) {
    std::remove_cvref_t<decltype(published)> ours;
    for (const char* name : kWeights) ours.add(std::string("0.") + name, published.at(name));
    return ours;
  });
  // Theirs is (head, value, key) over the root of the scale.
  layer.state = [](const std::string& name, const StateBatch& states) -> std::optional<std::vector<float>> {
    if (name == "state.scale") {
      const std::span<const float> scale = states.floats(0, "layer0.scale");
      return std::vector<float>(scale.begin(), scale.end());
    }
    if (name != "state.kv") return std::nullopt;
    auto kv = states.with_last_axes_swapped("layer0.state");
    if (!kv) return kv;
    const std::size_t scales = states.floats(0, "layer0.scale").size(), size = kv->size() / states.blocks.size() / scales;
    for (std::size_t i = 0; i < kv->size(); ++i) {
      (*kv)[i] /= std::sqrt(states.floats(i / size / scales, "layer0.scale")[i / size % scales]);
    }
    return kv;
  };
  return layer;
}

}  // namespace kizzasi
