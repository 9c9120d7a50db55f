// Griffin and Hawk (De et al. 2024): a real-gated linear recurrent unit behind a short convolution; Griffin puts local attention in every
// third block.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Names as published: linear_x, linear_y, linear_out, conv_1d, rg_lru.{input_gate,recurrent_gate}_{weight,bias}, rg_lru.recurrent_param.
// Width config.inner(); gates in config.n_heads blocks (0: inner / head_dim).
extern const LayerKind kGriffinRecurrent;
// RecurrentGemma's factor sqrt(d_model) on what enters, rounded to bfloat16 as published.
extern const LayerKind kEmbeddingScale;
extern const StackForm kGriffin, kHawk;

}  // namespace kizzasi
