#include "kizzasi/model/hybrid/hybrid.h"

#include <algorithm>
#include <array>

#include "kizzasi/model/attention/attention.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/linear_attention/deltanet.h"
#include "kizzasi/model/mamba.h"
#include "kizzasi/model/mamba2.h"

namespace kizzasi {
namespace {

bool listed(const std::vector<double>& layers, std::int64_t layer) {
  return std::find(layers.begin(), layers.end(), static_cast<double>(layer)) != layers.end();
}

template <const LayerKind& kRecurrent, const LayerKind& kAttention>
constexpr Sublayer kMixer{"norm", "mixer", [](const BackboneConfig& c, std::int64_t layer) -> const LayerKind& {
                            return has_attention(c, layer) ? kAttention : kRecurrent;
                          }};
constexpr Sublayer kFeedForward{"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kSwiGlu; }};
template <const LayerKind& kExperts>
constexpr Sublayer kFeedForwardOrExperts{"ffn_norm", "ffn", [](const BackboneConfig& c, std::int64_t layer) -> const LayerKind& {
                                           return has_experts(c, layer) ? kExperts : kSwiGlu;
                                         }};

constexpr std::array<Sublayer, 2> kJambaBlock{kMixer<kJambaMambaLayer, kUnplacedAttention>, kFeedForwardOrExperts<kJambaExperts>};
constexpr std::array<Sublayer, 2> kBambaBlock{kMixer<kMamba2Layer, kRotaryAttention>, kFeedForward};
constexpr std::array<Sublayer, 2> kQwen3NextBlock{kMixer<kGatedDeltaNetLayer, kGatedAttention>, kFeedForwardOrExperts<kQwenExperts>};

}  // namespace

bool has_attention(const BackboneConfig& config, std::int64_t layer) {
  if (!config.attention_layers.empty()) return listed(config.attention_layers, layer);
  return layer % 4 == 3 || (config.n_layers < 4 && layer == config.n_layers - 1);
}

bool has_experts(const BackboneConfig& config, std::int64_t layer) {
  if (config.n_experts < 2) return false;
  return config.expert_layers.empty() ? layer % 2 == 1 : listed(config.expert_layers, layer);
}

const StackForm kJamba{kJambaBlock}, kBamba{kBambaBlock}, kQwen3Next{kQwen3NextBlock};

}  // namespace kizzasi
