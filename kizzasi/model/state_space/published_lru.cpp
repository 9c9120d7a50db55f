#include "kizzasi/model/state_space/published_lru.h"

#include "kizzasi/model/state_space/lru.h"
#include "kizzasi/model/state_space/published_block.h"
#include "kizzasi/model/state_space/published_states.h"

namespace kizzasi {
namespace {

constexpr const LayerKind& kLruBlock = published_block::kBlock<kLruLayer, published_block::Norm::kLayer>;

// "seq." before the names of a lone layer; the block's norm under the name of ours.
std::string our_name(const std::string& name, bool block) {
  if (!block) return "0.seq." + name;
  constexpr std::string_view kNorm = "normalization.";
  return name.starts_with(kNorm) ? "0.norm." + name.substr(kNorm.size()) : "0." + name;
}

}  // namespace

bool is_published_lru(const NamedTensors& tensors) { return tensors.count("nu_log") != 0 || tensors.count("seq.nu_log") != 0; }

Result<PublishedLayer> published_lru(const NamedTensors& tensors, const Json& config, std::string_view where) {
  const bool block = tensors.count("nu_log") == 0;
  const auto in = tensors.find(block ? "seq.B_re" : "B_re");
  if (in == tensors.end() || in->second.shape.size() != 2) {
    return fail({Fault::kBadInput, "there is no B_re of two axes", std::string(where), "B_re (d_hidden, d_model)", ""});
  }
  const Json *norm = config.find("norm"), *prenorm = config.find("prenorm");
  if (block && ((norm != nullptr && norm->is_string() && norm->string() != "layer") ||
                (prenorm != nullptr && prenorm->is_bool() && !prenorm->boolean()))) {
    return fail({Fault::kBadInput, "the block has another norm than is computed here", std::string(where), "norm layer, prenorm true", ""});
  }
  PublishedLayer layer;
  layer.kind = block ? &kLruBlock : &kLruLayer;
  layer.config.architecture = "lru";
  layer.config.d_model = static_cast<std::int64_t>(in->second.shape[1]);
  layer.config.d_inner = static_cast<std::int64_t>(2 * in->second.shape[0]);
  layer.config.ssm_activation = block ? "full_glu" : "none";
  layer.config.norm_eps = 1e-6;  // flax's
  if (auto good = layer.config.check(where); !good) return fail(good.error());
  std::map<std::string, Shape> wanted;
  std::map<std::string, std::string> names;
  for (const auto& [name, shape] : layer.kind->shapes(layer.config)) {
    const std::string theirs = !block                      ? name.substr(std::string_view("seq.").size())
                               : name.starts_with("norm.") ? "normalization" + name.substr(std::string_view("norm").size())
                                                           : name;
    wanted.emplace(theirs, shape);
    names.emplace(theirs, our_name(theirs, block));
  }
  if (auto good = check_published(tensors, wanted, "LRU", where); !good) return fail(good.error());
  set_ours(layer, [names](const auto& theirs) { return renamed(theirs, names); });
  layer.state = [](const std::string& name, const StateBatch& states) { return complex_states(name, states); };
  return layer;
}

}  // namespace kizzasi
