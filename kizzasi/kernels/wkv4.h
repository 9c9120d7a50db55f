// The attention-like average of RWKV-4 (Peng et al. 2023, equations 12 to 18), kept from overflowing by the largest exponent so far.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// Weights of the channels: w = -exp(time_decay) and u = time_first, (C) each.
struct Wkv4 {
  std::span<const float> w, u;
};
// Sums so far, scaled by e^-pp, and the exponent pp, (C) each; 0, 0 and -1e30 before the first row.
struct Wkv4State {
  std::span<float> aa, bb, pp;
};

// y = (aa e^pp + e^(u + k) v) / (bb e^pp + e^(u + k)), then aa and bb are multiplied by e^w and take in e^k v and e^k.
// k, v, y: (rows, C); y may be k or v. Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
void wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept;
void wkv4_plain(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept;

// Its adjoint from the state before the first row: gy the gradient of y; gradients are added to gk, gv (rows, C), gw and gu (C). Allocates.
void wkv4_backward(const Wkv4& weights, MatrixView k, MatrixView v, MatrixView gy, MatrixSpan gk, MatrixSpan gv, std::span<float> gw,
                   std::span<float> gu);

}  // namespace kizzasi::kernels
