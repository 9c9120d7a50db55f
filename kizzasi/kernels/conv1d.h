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

}  // namespace kizzasi::kernels
