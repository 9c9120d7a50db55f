// The elementwise gated recurrence: minGRU and minLSTM (Feng et al. 2024), HGRN, RG-LRU and all that keep one number a channel.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// h[e] <- a[t][e] h[e] + x[t][e];   y[t][e] = h[e]
//
// a, x, y: (rows, E); h: (E), read and updated. y may be x or a. Sequential in time: any split of the rows gives the same bits.
// Real-time: yes. Thread: any.
void gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
void gated_scan_plain(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;

// Its adjoint from h = 0: y as the scan gave it, gy the gradient with respect to it. Gradients are added to ga and gx (rows, E).
void gated_scan_backward(MatrixView a, MatrixView y, MatrixView gy, MatrixSpan ga, MatrixSpan gx) noexcept;

}  // namespace kizzasi::kernels
