#include "kizzasi/solve/active_factor.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {

void ActiveFactor::prepare(std::size_t most_dimensions) {
  stride_ = (most_dimensions + 1) / 2 * 2;
  j_.assign(most_dimensions * stride_, 0);
  r_.assign(most_dimensions * stride_, 0);
  reflector_.assign(most_dimensions, 0);
  inverse_.assign(most_dimensions, 0);
  dims_ = active_ = 0;
}

void ActiveFactor::reset(const double* j0, std::size_t dims) noexcept {
  dims_ = dims;
  active_ = 0;
  for (std::size_t i = 0; i < dims; ++i) std::copy_n(j0 + i * dims, dims, j_.data() + i * stride_);
}

void ActiveFactor::reset_diagonal(const double* j0, std::size_t dims) noexcept {
  dims_ = dims;
  active_ = 0;
  for (std::size_t i = 0; i < dims; ++i) {
    double* row = j_.data() + i * stride_;
    std::fill_n(row, dims, 0.0);
    row[i] = j0[i];
  }
}

std::size_t ActiveFactor::open_dimension(double j) noexcept {
  for (std::size_t i = 0; i < dims_; ++i) j_[i * stride_ + dims_] = 0;
  double* row = j_.data() + dims_ * stride_;
  std::fill_n(row, dims_, 0.0);
  row[dims_] = j;
  return dims_++;
}

void ActiveFactor::rotate(const double* v, double* d) const noexcept {
  std::fill_n(d, dims_, 0.0);
  add_combination(d, v, j_.data(), dims_, dims_, stride_);
}

void ActiveFactor::free_step(const double* d, double* z) const noexcept {
  for (std::size_t i = 0; i < dims_; ++i) z[i] = dot(row(i) + active_, d + active_, dims_ - active_);
}

void ActiveFactor::expand(const double* y, double* v) const noexcept {
  for (std::size_t i = 0; i < dims_; ++i) v[i] = dot(row(i), y, dims_);
}

void ActiveFactor::solve_upper(double* v) const noexcept {
  for (std::size_t k = active_; k-- > 0;) {
    const double* column = r_column(k);
    const double factor = v[k] *= inverse_[k];
    for (std::size_t i = 0; i < k; ++i) v[i] -= factor * column[i];
  }
}

void ActiveFactor::solve_transposed(double* v) const noexcept {
  for (std::size_t k = 0; k < active_; ++k) {
    const double* column = r_column(k);
    v[k] = (v[k] - dot(column, v, k)) * inverse_[k];
  }
}

void ActiveFactor::add(const double* d, const double* z, double length2) noexcept {
  const std::size_t q = active_, rest = dims_ - q;
  const double length = std::sqrt(length2);
  const double pivot = d[q] > 0 ? -length : length;
  double* column = r_column(q);
  std::copy_n(d, q, column);
  column[q] = pivot;
  inverse_[q] = 1 / pivot;
  // J2 <- J2 (I - v v' / (v'v / 2)) with v = d2 - pivot e_1; J2 v = z - pivot (first column of J2) is known already.
  const double half = length2 - pivot * d[q];
  std::copy_n(d + q, rest, reflector_.data());
  reflector_[0] -= pivot;
  for (std::size_t i = 0; i < dims_; ++i) {
    double* row = j_.data() + i * stride_ + q;
    add_scaled(row, -(z[i] - pivot * row[0]) / half, reflector_.data(), rest);
  }
  ++active_;
}

void ActiveFactor::drop(std::size_t k) noexcept {
  for (std::size_t c = k; c + 1 < active_; ++c) std::copy_n(r_column(c + 1), c + 2, r_column(c));
  --active_;
  for (std::size_t c = k; c < active_; ++c) {
    double* column = r_column(c);
    const double length = std::sqrt(column[c] * column[c] + column[c + 1] * column[c + 1]);
    inverse_[c] = 1 / column[c];
    if (column[c + 1] == 0 || length == 0) continue;
    const double cosine = column[c] / length, sine = column[c + 1] / length;
    column[c] = length;
    inverse_[c] = 1 / length;
    column[c + 1] = 0;
    for (std::size_t other = c + 1; other < active_; ++other) {
      double* o = r_column(other);
      const double a = o[c], b = o[c + 1];
      o[c] = cosine * a + sine * b;
      o[c + 1] = cosine * b - sine * a;
    }
    for (std::size_t i = 0; i < dims_; ++i) {
      double* row = j_.data() + i * stride_ + c;
      const double a = row[0], b = row[1];
      row[0] = cosine * a + sine * b;
      row[1] = cosine * b - sine * a;
    }
  }
}

}  // namespace kizzasi::solve
