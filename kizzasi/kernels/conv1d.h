// Causal depthwise convolution over time.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// y[t][c] = bias[c] + sum_j w[j][c] x[t - (K - 1) + j][c], j = 0 .. K-1 in order; tap K-1 is the current row.
// x, y: (rows, channels), y may be x; w: (K, channels), transposed once from the published (channels, 1, K); bias: (channels) or empty.
// window: (K, channels): the last K raw inputs, newest last, zeros before the start; read for rows before the block and updated.
// Any split of the rows gives the same bits. Real-time: yes. Thread: any.
void conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                 MatrixSpan y) noexcept;

// Of a loss over a whole sequence from a zero window, added to what stands there: gx[t] += sum_j w[j] gy[t + K - 1 - j],
// gw[j] += sum_t x[t - (K - 1) + j] gy[t], gbias += sum_t gy[t] (gbias may be empty). gx must not be x or gy. Real-time: yes. Thread: any.
void conv1d_backward(std::span<const float> w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, std::span<float> gw,
                     std::span<float> gbias) noexcept;

}  // namespace kizzasi::kernels
