// The recurrence of diagonal linear state spaces (S4D, Gu et al. 2022; also DSS, S5, LRU): complex states, one conjugate half.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// h[n][e] <- a[n][e] h[n][e] + x[t][e];   y[t][e] = Re(sum_n c[n][e] h[n][e]) + d[e] x[t][e]
//
// a (discretised), c (with the factor 2 of the conjugate half and B folded in): (2, N, E), real plane then imaginary plane. x, y: (rows,
// E). h: (2, N, E), read and updated. Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct DiagonalScan {
  std::size_t channels = 0, states = 0;
  std::span<const float> a, c, d;
};
void diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
void diagonal_scan_plain(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;

// ---- For training: the scan from h = 0 that keeps the state before every kDiagonalCheckpointRows rows, and its adjoint that computes the
// states between again.

inline constexpr std::size_t kDiagonalCheckpointRows = 16;
constexpr std::size_t diagonal_checkpoints(std::size_t rows) noexcept {
  return (rows + kDiagonalCheckpointRows - 1) / kDiagonalCheckpointRows;
}

// kept: (diagonal_checkpoints + 1, 2, N, E), the last being the final state. The same bits as diagonal_scan. y may be x.
void diagonal_scan_keeping(const DiagonalScan& s, MatrixView x, std::span<float> kept, MatrixSpan y) noexcept;

// Of a loss: with respect to each input, in the layout of that input; gradients are added to what stands there.
struct DiagonalScanGradients {
  MatrixSpan x;
  std::span<float> a, c, d;
};
std::size_t diagonal_scan_backward_scratch(const DiagonalScan& s) noexcept;  // floats
// gy: (rows, E), the gradient with respect to y. Real-time: yes. Thread: any.
void diagonal_scan_backward(const DiagonalScan& s, MatrixView x, std::span<const float> kept, MatrixView gy,
                            const DiagonalScanGradients& out, std::span<float> scratch) noexcept;

}  // namespace kizzasi::kernels
