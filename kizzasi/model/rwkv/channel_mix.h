// The second half of an RWKV block: value(relu(key(x))^2), gated by the receptance up to version 6.
#pragma once

#include "kizzasi/model/layer.h"

namespace kizzasi {

// Names as published: time_mix_k and _r (4, 5), time_maa_k and _r (6), x_k (7); key, value, receptance. Inner width config.d_ffn.
extern const LayerKind kChannelMix4, kChannelMix5, kChannelMix6, kChannelMix7;

}  // namespace kizzasi
