// WaveNet (van den Oord et al. 2016): a stack of causal convolutions whose taps stand further and further apart, gated, each giving one
// part to the next block and one to the output.
#pragma once

#include "kizzasi/model/stack.h"

namespace kizzasi {

// Block i:  (a, g) = W * x + bias, d_conv taps 2^(i mod 10) frames apart;   z = tanh(a) sigmoid(g);   skip += skip_out z
//           out = residual_out z;  of the last block: out = mix relu(skip)
// between the norm and the residual sum of every stack here (the paper has no norm).
// W: conv.weight (2 inner, d_conv d_model), oldest tap first; inner: d_inner, or d_model where that is 0. Uses conv_bias.
// State: the last (d_conv - 1) 2^(i mod 10) rows of each block, a ring.
extern const StackForm kWaveNet;

}  // namespace kizzasi
