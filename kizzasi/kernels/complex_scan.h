// The diagonal complex recurrence whose states have inputs of their own: LRU (Orvieto et al. 2023), S5 (Smith et al. 2023).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// h[n] <- a[n] h[n] + b[n] x[t][n];   y[t][n] = h[n], all complex.
//
// a, b, h: (2, N), x, y: (rows, 2 N): real parts, then imaginary parts. y may be x. Sequential in time: any split of the rows gives the
// same bits. Real-time: yes. Thread: any.
void complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;
void complex_scan_plain(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept;

// Its adjoint from h = 0: y as the scan gave it, gy the gradient with respect to it, each part of a complex number by itself (so that of
// w = z v is g conj(v)). Gradients are added to what stands there. Real-time: yes. Thread: any.
struct ComplexScanGradients {
  std::span<float> a, b;  // (2, N)
  MatrixSpan x;           // (rows, 2 N)
};
void complex_scan_backward(std::span<const float> a, std::span<const float> b, MatrixView x, MatrixView y, MatrixView gy,
                           const ComplexScanGradients& out) noexcept;

}  // namespace kizzasi::kernels
