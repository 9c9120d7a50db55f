// Causal convolutions over time whose taps stand some frames apart (van den Oord et al. 2016, WaveNet): y[t] is a sum over
// x[t - (K - 1 - j) dilation], j = 0 .. K - 1 in order; tap K - 1 is the current row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

struct DilatedTaps {
  std::size_t taps = 1, dilation = 1;  // >= 1 each
  // How far back the first tap reaches: rows of history.
  std::size_t reach() const noexcept { return (taps - 1) * dilation; }
};

// The last reach() input rows of a stream, a ring: row t stands at t mod reach(), zeros before the start. Writing a row costs the same for
// any reach; nothing is moved.
struct ConvHistory {
  std::span<float> rows;  // (reach, channels)
  std::uint64_t& seen;    // rows so far
};

// Depthwise: y[t][c] = bias[c] + sum_j w[j][c] x[...][c]. x, y: (rows, channels), y may be x; w: (K, channels); bias: (channels) or empty.
// Any split of the rows gives the same bits, the same as conv1d_step's where the dilation is 1. Real-time: yes. Thread: any.
void dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                    MatrixSpan y) noexcept;
void dilated_conv1d_plain(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                          MatrixSpan y) noexcept;

// What each row of a convolution over all channels takes in, side by side, oldest first: x (rows, channels) -> out (rows, K channels), not
// overlapping. Real-time: yes. Thread: any.
void dilated_rows(DilatedTaps taps, ConvHistory history, MatrixView x, MatrixSpan out) noexcept;

// Over all channels: y[t][o] = bias[o] + sum_j sum_c w[o][j][c] x[...][c]. w: (outputs, K channels) packed, from (outputs, channels, K) as
// published by conv_taps_first; scratch: rows K channels floats. y must not overlap x. Any split gives the same bits. Real-time: yes.
// Thread: any.
void dilated_conv(const PackedWeight& w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                  std::span<float> scratch, MatrixSpan y) noexcept;

// (outputs, channels, K) -> (outputs, K, channels). Allocates.
std::vector<float> conv_taps_first(std::span<const float> w, std::size_t outputs, std::size_t channels, std::size_t taps);

}  // namespace kizzasi::kernels
