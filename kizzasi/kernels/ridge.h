// Linear regression of many outputs at once with a squared penalty on its weights, from sums over blocks of rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kizzasi::kernels {

// Everything that the normal equations need of the rows seen so far: memory does not grow with the rows.
// Each row is added after the one before it, so the bits do not depend on how the rows are split into blocks.
// Thread: one at a time. Real-time: no.
class RidgeSums {
 public:
  RidgeSums(std::size_t inputs, std::size_t outputs);

  std::size_t inputs() const noexcept { return inputs_; }
  std::size_t outputs() const noexcept { return outputs_; }
  std::size_t rows() const noexcept { return rows_; }

  // x (rows, inputs), y (rows, outputs), row-major and finite.
  void add(std::span<const double> x, std::span<const double> y);
  // As if the other's rows had been added here (their sums are joined: the last bits differ).
  void add(const RidgeSums& other);

  // The weights (inputs, outputs) and the bias (outputs) that minimise |x W + bias - y|^2 + lambda |W|^2 over all rows; the bias is not
  // penalised. An empty bias means none: the line goes through the origin. Returns false, with the outputs untouched, where no row was
  // seen or the inputs determine no unique answer: take a larger lambda.
  [[nodiscard]] bool solve(double lambda, std::span<double> weights, std::span<double> bias) const;

 private:
  std::size_t inputs_, outputs_, rows_ = 0;
  std::vector<double> gram_;   // (inputs, inputs), the part on and above the diagonal
  std::vector<double> cross_;  // (inputs, outputs)
  std::vector<double> sum_x_, sum_y_;
};

// Factors the symmetric matrix a (n, n), given by the part on and above its diagonal, as transpose(U) U; U takes that part's place.
// Returns false where it is not positive definite to working precision. Golub and Van Loan, algorithm 4.2.1 in its outer product form.
[[nodiscard]] bool cholesky(std::span<double> a, std::size_t n);

// Solves transpose(U) U x = b in place for every column of b (n, columns), with U from cholesky().
void cholesky_solve(std::span<const double> u, std::size_t n, std::span<double> b, std::size_t columns);

}  // namespace kizzasi::kernels
