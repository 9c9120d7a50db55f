// The recurrence of Mamba-2, state space duality (Dao and Gu 2024).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// S[h][n][p] <- exp(delta[t][h] a[h]) S[h][n][p] + delta[t][h] x[t][h][p] b[t][g(h)][n]
// y[t][h][p]  = sum_n S[h][n][p] c[t][g(h)][n] + d[h] x[t][h][p],   g(h) = floor(h groups / heads)
//
// x, y: (rows, heads * P), y may be x; delta: (rows, heads); b, c: (rows, groups * N); a (heads) negative, d (heads).
// state: (heads, N, P), read and updated. Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct Ssd {
  std::size_t heads = 0, head_dim = 0, states = 0, groups = 1;
  std::span<const float> a, d;
};
void ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state, MatrixSpan y) noexcept;
void ssd_step_plain(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                    MatrixSpan y) noexcept;

}  // namespace kizzasi::kernels
