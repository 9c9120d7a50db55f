// Systems of linear equations of any regular matrix.
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi::kernels {

// Factors a (n, n), row-major, in place: a = P L U, L with ones on its diagonal below U, by elimination with partial pivoting (Golub and
// Van Loan, algorithm 3.4.1). At step k rows k and pivots[k] changed places. Returns false where a column has no pivot or one that is not
// finite: the matrix is singular to working precision, or holds a NaN. Real-time: yes. Thread: any.
[[nodiscard]] bool lu(std::span<double> a, std::size_t n, std::span<std::size_t> pivots) noexcept;

// Solves a x = b in place for every column of b (n, columns), from the factors of lu(). Real-time: yes. Thread: any.
void lu_solve(std::span<const double> factors, std::size_t n, std::span<const std::size_t> pivots, std::span<double> b,
              std::size_t columns) noexcept;

}  // namespace kizzasi::kernels
