// Two kernels in one pass, while the numbers between them are still in the nearest cache. Each gives the bits of its parts one after the
// other.
//
// What of the usual fusions stands where:
//   norm and activation          layer_norm_then, rms_norm_then (here)
//   product and activation       linear_then (here)
//   feed-forward                 feed_forward (here)
//   queries, keys and values     one product by matrices packed one under the other (model: LayerWeights::pack_together)
//   softmax and weighted sum     ring_attention: one pass over the keys, no row of weights
//   heads and output             ring_attention writes heads side by side, as the rows of the output's product: nothing is gathered
//   step of a state space        selective_scan, ssd, diagonal_scan, dplr_scan, complex_scan: decay, input, output and skip in one pass
//   quantise and dequantise      linear with int8 and int4: inputs rounded, products in integers, scales put on, in one call
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// An elementwise function of kernels/activations.h: silu, gelu, ... out may be x.
using Elementwise = void (*)(std::span<const float> x, std::span<float> out) noexcept;

// y = f(x W^T + b): every block of outputs goes through f as soon as its sums are done. With integer weights row by row after the product.
// Shapes as in linear. Real-time: yes. Thread: any.
void linear_then(const PackedWeight& w, MatrixView x, std::span<const float> bias, Elementwise f, MatrixSpan y) noexcept;

// out = f(norm(x)), as in norms.h, piece by piece; out may be x. Real-time: yes. Thread: any.
void layer_norm_then(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, float epsilon, Elementwise f,
                     std::span<float> out) noexcept;
void rms_norm_then(std::span<const float> x, std::span<const float> gain, float epsilon, Elementwise f, std::span<float> out) noexcept;

// y = f(x U^T + c) D^T + b, some rows at a time, so that what stands between the two products is read from the cache it was written to.
// x: (rows, inputs of up), y: (rows, outputs of down), may be x; hidden: feed_forward_floats(rows, outputs of up) of scratch.
// Real-time: yes. Thread: any.
inline constexpr std::size_t kFeedForwardRows = 48;
constexpr std::size_t feed_forward_floats(std::size_t rows, std::size_t inner) noexcept {
  return (rows < kFeedForwardRows ? rows : kFeedForwardRows) * inner;
}
void feed_forward(const PackedWeight& up, std::span<const float> up_bias, Elementwise f, const PackedWeight& down,
                  std::span<const float> down_bias, MatrixView x, MatrixSpan y, std::span<float> hidden) noexcept;

}  // namespace kizzasi::kernels
