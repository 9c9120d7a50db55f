// The factors behind an active-set method: a basis in which the curvature is the identity and the active rows are a triangle.
#pragma once

#include <cstddef>
#include <vector>

namespace kizzasi::solve {

// For a positive definite H and the active normals N = (n_1 ... n_q) it holds J and R with  J'HJ = I,  J'N = (R; 0),  R upper triangular
// (Goldfarb and Idnani 1983, section 4). Rows enter by a Householder reflection and leave by plane rotations, so J stays orthogonal in the
// metric of H however many came and went. The space may grow while it is used: `open_dimension` adds one that no row touches yet.
// Thread: one at a time. Real-time: yes, after `prepare`.
class ActiveFactor {
 public:
  void prepare(std::size_t most_dimensions);

  // Begins with no row and J = j0, `dims` x `dims`, row-major.
  void reset(const double* j0, std::size_t dims) noexcept;
  // As `reset`, with J = diag(j0).
  void reset_diagonal(const double* j0, std::size_t dims) noexcept;
  // One more dimension, of curvature 1 / j^2, apart from the others. Returns its index.
  std::size_t open_dimension(double j) noexcept;

  std::size_t dims() const noexcept { return dims_; }
  std::size_t active() const noexcept { return active_; }
  const double* row(std::size_t i) const noexcept { return j_.data() + i * stride_; }

  // d = J'v for a v of dims() values.
  void rotate(const double* v, double* d) const noexcept;
  // z = J2 d2: the part of the step that leaves the active rows untouched; d of dims() values, its first active() ignored.
  void free_step(const double* d, double* z) const noexcept;
  // v = J y.
  void expand(const double* y, double* v) const noexcept;
  // r = R^-1 v and r = R^-T v, in place, of active() values.
  void solve_upper(double* v) const noexcept;
  void solve_transposed(double* v) const noexcept;

  // The row whose d = J'n and z = J2 d2 are given enters as the last one; `length2` = |d2|^2 > 0.
  void add(const double* d, const double* z, double length2) noexcept;
  // The k-th row leaves.
  void drop(std::size_t k) noexcept;

 private:
  double* r_column(std::size_t k) noexcept { return r_.data() + k * stride_; }
  const double* r_column(std::size_t k) const noexcept { return r_.data() + k * stride_; }

  std::size_t stride_ = 0, dims_ = 0, active_ = 0;
  std::vector<double> j_, r_;      // J by rows; R by columns
  std::vector<double> inverse_;    // 1 / the diagonal of R
  std::vector<double> reflector_;  // scratch
};

}  // namespace kizzasi::solve
