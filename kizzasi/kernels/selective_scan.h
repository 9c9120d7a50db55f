// The recurrence of Mamba (Gu and Dao 2023, equation 2 with ZOH on A and Euler on B).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// h[n][e] <- exp(delta[t][e] a[n][e]) h[n][e] + delta[t][e] b[t][n] x[t][e]
// y[t][e]  = sum_n c[t][n] h[n][e] + d[e] x[t][e]
//
// x, delta, y: (rows, E), y may be x; b, c: (rows, N); a: (N, E), negative, transposed from the published (E, N); d: (E).
// h: (N, E), read and updated: channels stand in lanes. f32 throughout; only non-positive exponents reach the exponential.
// Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct SelectiveScan {
  std::size_t channels = 0, states = 0;
  std::span<const float> a, d;
};
void selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                    MatrixSpan y) noexcept;
void selective_scan_plain(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                          MatrixSpan y) noexcept;

}  // namespace kizzasi::kernels
