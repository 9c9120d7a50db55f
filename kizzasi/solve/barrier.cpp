#include "kizzasi/solve/barrier.h"

#include <algorithm>

#include "kizzasi/solve/dense.h"
#include "kizzasi/solve/projection.h"

namespace kizzasi::solve {
namespace {

// a . (A v) and a . (B column), without room for A v.
double through(std::span<const double> a, const double* matrix, std::span<const double> v) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * dot(matrix + i * v.size(), v.data(), v.size());
  return sum;
}

}  // namespace

double barrier_continuous(double h, double lfh, std::span<const double> lgh, double alpha, std::span<double> slope) noexcept {
  std::copy(lgh.begin(), lgh.end(), slope.begin());
  return -(lfh + alpha * h);
}

double barrier_second_degree(double h, double h_dot, double lf2h, std::span<const double> lglfh, double alpha, double alpha2,
                             std::span<double> slope) noexcept {
  std::copy(lglfh.begin(), lglfh.end(), slope.begin());
  return -(lf2h + (alpha + alpha2) * h_dot + alpha * alpha2 * h);
}

double barrier_discrete(std::span<const double> a_matrix, std::span<const double> b_matrix, std::span<const double> x,
                        std::span<const double> a, double b, double gamma, std::span<double> slope, double& h) noexcept {
  h = b - dot(a.data(), x.data(), x.size());
  for (std::size_t j = 0; j < slope.size(); ++j) {
    slope[j] = 0;
    for (std::size_t i = 0; i < a.size(); ++i) slope[j] -= a[i] * b_matrix[i * slope.size() + j];
  }
  return (1 - gamma) * h - (b - through(a, a_matrix.data(), x));
}

double barrier_discrete_second_degree(std::span<const double> a_matrix, std::span<const double> b_matrix, std::span<const double> x,
                                      std::span<const double> a, double b, double gamma, double gamma2, std::span<double> slope) noexcept {
  // a . A is the row that sees x one step earlier; a . A^2 x and a . A B follow from it.
  const std::size_t n = x.size();
  double twice = 0;
  std::fill(slope.begin(), slope.end(), 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    double along = 0;  // (a . A)_j
    for (std::size_t i = 0; i < n; ++i) along += a[i] * a_matrix[i * n + j];
    twice += along * dot(a_matrix.data() + j * n, x.data(), n);
    for (std::size_t k = 0; k < slope.size(); ++k) slope[k] -= along * b_matrix[j * slope.size() + k];
  }
  const double h0 = b - dot(a.data(), x.data(), n), h1 = b - through(a, a_matrix.data(), x), h2 = b - twice;
  return (2 - gamma - gamma2) * h1 - (1 - gamma) * (1 - gamma2) * h0 - h2;
}

void BarrierFilter::prepare(std::size_t inputs, std::size_t barriers) {
  inputs_ = inputs;
  barriers_ = barriers;
  polytope_.prepare(inputs, barriers);
  none_.assign(barriers, kNoBound);
  multipliers_.assign(barriers, 0);
  bound_multipliers_.assign(inputs, 0);
}

Status BarrierFilter::filter(std::span<const double> nominal, std::span<const double> slopes, std::span<const double> least,
                             std::span<const double> u_min, std::span<const double> u_max, std::span<double> u) noexcept {
  if (least.size() != barriers_ || slopes.size() != barriers_ * inputs_ || nominal.size() != inputs_) return Status::kBadInput;
  std::fill(bound_multipliers_.begin(), bound_multipliers_.end(), 0.0);
  if (barriers_ == 1 && u_min.empty() && u_max.empty()) {
    return nearest_in_slab(nominal, slopes, least[0], kNoBound, {}, u, multipliers_[0]);
  }
  if (!polytope_.set_rows(slopes, barriers_)) return Status::kBadInput;
  const Status status = polytope_.nearest(nominal, {slopes, least, none_, u_min, u_max}, u);
  if (status != Status::kOptimal) return status;
  std::copy(polytope_.row_multipliers().begin(), polytope_.row_multipliers().end(), multipliers_.begin());
  std::copy(polytope_.box_multipliers().begin(), polytope_.box_multipliers().end(), bound_multipliers_.begin());
  return status;
}

}  // namespace kizzasi::solve
