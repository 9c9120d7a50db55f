// Linear attention with decay: a matrix state a head that forgets, takes one outer product a step and is read by the query. RetNet (Sun et
// al. 2023), GLA (Yang et al. 2023), HGRN2 (Qin et al. 2024), the time mixing of RWKV-5 and 6 (Peng et al. 2024).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// Without bonus:  S[h][n][p] <- a[t][h][n] S[h][n][p] + k[t][h][n] v[t][h][p];   y[t][h][p] = sum_n q[t][h][n] S[h][n][p]
// With bonus u, the read comes first and sees the present row by itself:
//   y[t][h][p] = sum_n q[t][h][n] (S[h][n][p] + u[h][n] k[t][h][n] v[t][h][p]);  then S as above
//
// q, k: (rows, heads * K); v, y: (rows, heads * V), y may be v. a, `decay`: one a key channel, (rows, heads * K), or one a head,
// (rows, heads); a single row stands for all rows. bonus: (heads * K) or empty. state: (heads, K, V), read and updated once a row.
// Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct LinearAttention {
  std::size_t heads = 0, keys = 0, values = 0;  // heads, K, V
  std::span<const float> bonus;

  std::size_t state_size() const noexcept { return heads * keys * values; }
};
void linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                      MatrixSpan y) noexcept;
void linear_attention_plain(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                            MatrixSpan y) noexcept;

// ---- For training: the recurrence from S = 0 that keeps the state before every kMatrixStateRows rows, and its adjoint that computes the
// states between again.

inline constexpr std::size_t kMatrixStateRows = 16;
constexpr std::size_t matrix_state_chunks(std::size_t rows) noexcept { return (rows + kMatrixStateRows - 1) / kMatrixStateRows; }

// kept: (chunks + 1, heads, K, V), the last being the final state. The same bits as linear_attention. y is not v.
void linear_attention_keeping(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> kept,
                              MatrixSpan y) noexcept;

// Of a loss: with respect to each input, in the layout of that input, except that decay and bonus have a row for every row, also where one
// stood for all: who adds these up chooses how many digits to keep. Gradients are added to what stands there.
struct LinearAttentionGradients {
  MatrixSpan q, k, v, decay;
  MatrixSpan bonus;  // not looked at where there is none
};
std::size_t linear_attention_backward_scratch(const LinearAttention& s) noexcept;  // floats
// gy: (rows, heads * V), the gradient with respect to y. kept: as linear_attention_keeping left it. Real-time: yes. Thread: any.
void linear_attention_backward(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay,
                               std::span<const float> kept, MatrixView gy, const LinearAttentionGradients& out,
                               std::span<float> scratch) noexcept;

}  // namespace kizzasi::kernels
