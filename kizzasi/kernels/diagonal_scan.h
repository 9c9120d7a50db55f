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

}  // namespace kizzasi::kernels
