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

// ---- For training: the scan from h = 0 that keeps the state before every kCheckpointRows rows, and its adjoint that computes the states
// between again.

inline constexpr std::size_t kCheckpointRows = 16;  // whose states then fit the L1 and L2 caches beside their adjoints
constexpr std::size_t checkpoints(std::size_t rows) noexcept { return (rows + kCheckpointRows - 1) / kCheckpointRows; }

// kept: (checkpoints + 1, N, E), the last being the final state. The same bits as selective_scan. y may be x.
void selective_scan_keeping(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> kept,
                            MatrixSpan y) noexcept;

// Of a loss: with respect to each input, in the layout of that input; gradients are added to what stands there.
struct SelectiveScanGradients {
  MatrixSpan x, delta, b, c;
  std::span<float> a, d;
};
std::size_t selective_scan_backward_scratch(const SelectiveScan& s) noexcept;  // floats
// gy: (rows, E), the gradient with respect to y. kept: as selective_scan_keeping left it. Gu and Dao 2023, appendix D: recomputation.
// Real-time: yes. Thread: any.
void selective_scan_backward(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c,
                             std::span<const float> kept, MatrixView gy, const SelectiveScanGradients& out,
                             std::span<float> scratch) noexcept;

}  // namespace kizzasi::kernels
