#include "kizzasi/model/attention/transformer.h"

#include <array>

#include "kizzasi/model/attention/attention.h"
#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/attention/positions.h"

namespace kizzasi {
namespace {

template <const LayerKind& kMixer, const LayerKind& kFeedForward>
constexpr std::array<Sublayer, 2> kBlock{
    {{"norm", "mixer", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kMixer; }},
     {"ffn_norm", "ffn", [](const BackboneConfig&, std::int64_t) -> const LayerKind& { return kFeedForward; }}}};

}  // namespace

const StackForm kLlama{kBlock<kRotaryAttention, kSwiGlu>};
const StackForm kMixtral{kBlock<kRotaryAttention, kMixtureOfExperts>};
const StackForm kGpt2{kBlock<kPlainAttention, kGelu>, NormKind::kLayer, &kLearnedPositions};

}  // namespace kizzasi
