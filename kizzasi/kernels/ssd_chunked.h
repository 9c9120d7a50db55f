// Mamba-2's recurrence for training: the scan that keeps its state before every chunk, and its adjoint, chunk by chunk as small matrix
// products (Dao and Gu 2024, section 6).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// As kernels/ssd.h from a zero state, with d (heads), or (heads, P) where wide_skip.
//
// Within a chunk of q rows, Y = (L o C B^T) diag(delta) X with L[i][j] = exp(a (delta[j+1] + ... + delta[i])), j <= i, built up by products
// of decays; between chunks the state goes on. Only non-positive exponents are taken, and none are subtracted.
struct ChunkedSsd {
  std::size_t heads = 0, head_dim = 0, states = 0, groups = 1;
  std::span<const float> a, d;
  bool wide_skip = false;
  std::size_t chunk = 64;

  std::size_t chunks(std::size_t rows) const noexcept { return (rows + chunk - 1) / chunk; }
  std::size_t state_size() const noexcept { return heads * states * head_dim; }
};

std::size_t ssd_chunked_scratch(const ChunkedSsd& s) noexcept;  // floats, for both directions

// x, y: (rows, heads * P); delta: (rows, heads); b, c: (rows, groups * N). kept: (chunks + 1, heads, N, P): the state before each chunk,
// and the final one. y is not x. The recurrence itself (kernels/ssd.h), which is no slower here than its matrix form and equals what is
// deployed bit for bit (where not wide_skip). Thread: any. Real-time: yes.
void ssd_keeping(const ChunkedSsd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> kept, MatrixSpan y,
                 std::span<float> scratch) noexcept;

// Of a loss: with respect to each input, in the layout of that input; gradients are added to what stands there.
struct SsdGradients {
  MatrixSpan x, delta, b, c;
  std::span<float> a, d;
};
// gy: the gradient with respect to y. kept: as ssd_keeping left it. Thread: any. Real-time: no (kernels/gemm.h).
void ssd_chunked_backward(const ChunkedSsd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<const float> kept,
                          MatrixView gy, const SsdGradients& out, std::span<float> scratch);

}  // namespace kizzasi::kernels
