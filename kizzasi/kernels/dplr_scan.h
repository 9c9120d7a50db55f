// The recurrence of a diagonal-plus-low-rank linear state space (S4, Gu et al. 2022), discretised: a diagonal, and one number that all
// states of a channel give and take.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// q = Re(sum_n p[n][e] h[n][e]);   h[n][e] <- a[n][e] h[n][e] + b[n][e] x[t][e] + r[n][e] q;
// y[t][e] = Re(sum_n c[n][e] h[n][e]) + d[e] x[t][e]
//
// a, b, c, p, r (conjugate halves counted in): (2, N, E), real plane then imaginary plane. x, y: (rows, E); y may be x. h: (2, N, E), read
// and updated. Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct DplrScan {
  std::size_t channels = 0, states = 0;
  std::span<const float> a, b, c, p, r, d;
};
void dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
void dplr_scan_plain(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;

// ---- For training: its adjoint from h = 0, which keeps every kDplrChunk-th state and computes the others again.

inline constexpr std::size_t kDplrChunk = 16;

// Of a loss: with respect to each input, in the layout of that input; gradients are added to what stands there.
struct DplrScanGradients {
  MatrixSpan x;
  std::span<float> a, b, c, p, r, d;
};
std::size_t dplr_scan_backward_scratch(const DplrScan& s, std::size_t rows) noexcept;  // floats
// gy: (rows, E), the gradient with respect to y. Real-time: yes. Thread: any.
void dplr_scan_backward(const DplrScan& s, MatrixView x, MatrixView gy, const DplrScanGradients& out, std::span<float> scratch) noexcept;

}  // namespace kizzasi::kernels
