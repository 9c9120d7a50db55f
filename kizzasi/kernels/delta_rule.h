// The delta rule with decay: a matrix state a head from which a step takes back what it had stored. DeltaNet (Yang et al. 2024), Gated
// DeltaNet (Yang et al. 2025), the time mixing of RWKV-7 (Peng et al. 2025).
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

// z[h][p] = sum_n a[t][h][n] S[h][n][p]
// S[h][n][p] <- w[t][h][n] S[h][n][p] + b[t][h][n] z[h][p] + k[t][h][n] v[t][h][p];   y[t][h][p] = sum_n q[t][h][n] S[h][n][p]
//
// which is S (diag(w) + a b^T) + v k^T in the orientation of RWKV-7. With keys of unit length and a rate beta, DeltaNet is w = 1,
// a = -beta k, b = k, beta k for k; Gated DeltaNet with decay g a head is w = g, a = -g beta k.
//
// q, k, a, b: (rows, heads * K); v, y: (rows, heads * V), y may be v. w, `decay`: one a key channel, (rows, heads * K), or one a head,
// (rows, heads); a single row stands for all rows; without data: ones. state: (heads, K, V), read and written once a row (twice read
// where a block has one row). Sequential in time: any split of the rows gives the same bits. Real-time: yes. Thread: any.
struct DeltaRule {
  std::size_t heads = 0, keys = 0, values = 0;  // heads, K, V

  std::size_t state_size() const noexcept { return heads * keys * values; }
};
struct DeltaRuleRows {
  MatrixView q, k, v, a, b, decay;
  DeltaRuleRows slice(std::size_t begin, std::size_t count) const noexcept;
};
void delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept;
void delta_rule_plain(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept;

// ---- For training, from S = 0, as kernels/linear_attention.h. kept: (matrix_state_chunks + 1, heads, K, V). y is not v.
void delta_rule_keeping(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> kept, MatrixSpan y) noexcept;

// Of a loss: with respect to each input, in the layout of that input (decay: a row for every row, also where one stood for all, and
// nothing where it has no data); gradients are added to what stands there.
struct DeltaRuleGradients {
  MatrixSpan q, k, v, a, b, decay;
};
std::size_t delta_rule_backward_scratch(const DeltaRule& s) noexcept;  // floats
// gy: (rows, heads * V), the gradient with respect to y. kept: as delta_rule_keeping left it. Real-time: yes. Thread: any.
void delta_rule_backward(const DeltaRule& s, const DeltaRuleRows& rows, std::span<const float> kept, MatrixView gy,
                         const DeltaRuleGradients& out, std::span<float> scratch) noexcept;

}  // namespace kizzasi::kernels
