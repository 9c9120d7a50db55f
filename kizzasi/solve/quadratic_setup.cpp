// What a quadratic program is made of: memory, curvature, rows, and the numbers of one solve.
#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

bool finite(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v * 0;  // 0, or NaN where one is not finite
  return sum == 0;
}

// L of h + shift I = LL', by rows, lower triangle, and 1 / its diagonal. False where a pivot is not clearly positive.
bool cholesky(const double* h, double shift, double least, double* l, double* inverse, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    double* row = l + i * n;
    for (std::size_t j = 0; j < i; ++j) row[j] = (h[i * n + j] - dot(row, l + j * n, j)) * inverse[j];
    const double pivot = h[i * n + i] + shift - dot(row, row, i);
    if (!(pivot > least * h[i * n + i]) || !(pivot > 0)) return false;
    row[i] = std::sqrt(pivot);
    inverse[i] = 1 / row[i];
  }
  return true;
}

// j = L^-T by rows, upper triangle; the lower one is zero.
void inverse_transposed(const double* l, const double* inverse, double* j, std::size_t n) {
  std::fill_n(j, n * n, 0.0);
  for (std::size_t c = 0; c < n; ++c) {  // row c of j is column c of L^-1: solves L y = e_c
    double* y = j + c * n;
    y[c] = inverse[c];
    for (std::size_t i = c + 1; i < n; ++i) y[i] = -dot(l + i * n + c, y + c, i - c) * inverse[i];
  }
}

}  // namespace

const char* name(Status status) noexcept {
  switch (status) {
    case Status::kOptimal:
      return "ok";
    case Status::kInfeasible:
      return "infeasible";
    case Status::kUnbounded:
      return "unbounded";
    case Status::kIterationLimit:
      return "iteration limit";
    case Status::kBadInput:
      return "bad input";
  }
  return "?";
}

void QuadraticProgram::prepare(std::size_t variables, std::size_t rows, std::size_t soft_rows) {
  n_ = variables;
  m_ = most_rows_ = rows;
  most_soft_ = std::min(soft_rows, rows);
  stride_ = (rows + 3) / 4 * 4;
  const std::size_t dims = n_ + most_soft_, all = n_ + rows;
  factor_.prepare(dims);
  for (auto* v : {&h_, &j0_, &root_}) v->assign(n_ * n_, 0);
  columns_.assign(n_ * stride_, 0);
  rows_.assign(n_ * rows, 0);
  weight_.assign(all, 0);
  for (auto* v : {&lower_, &upper_, &g_, &centre_, &true_g_, &before_, &box_multipliers_}) v->assign(n_, 0);
  for (auto* v : {&x_, &d_, &z_, &r_, &normal_, &rx_, &rb_}) v->assign(dims, 0);
  for (auto* v : {&scale_, &l1_, &l2_, &lo_, &hi_, &row_multipliers_, &slack_}) v->assign(stride_, 0);
  values_.assign(stride_, 0);
  working_.assign(dims, Active{});
  working_.clear();
  for (auto* v : {&state_, &built_from_, &wanted_, &activity_, &activity_copy_}) v->assign(all, 0);
  slack_dimension_.assign(stride_, kNone);
  ready_ = built_ = soft_ = false;
}

Curvature QuadraticProgram::set_diagonal(std::span<const double> h) noexcept {
  ready_ = built_ = false;
  diagonal_ = true;
  if (h.size() != n_ || !finite(h)) return Curvature::kNotFinite;
  const auto [least, most] = std::minmax_element(h.begin(), h.end());
  if (*least < 0) return Curvature::kNotConvex;
  semidefinite_ = *least <= kEpsilon * *most;
  proximity_ = semidefinite_ ? (*most > 0 ? 1e-6 * *most : 1) : 0;
  for (std::size_t i = 0; i < n_; ++i) {
    h_[i] = h[i] + proximity_;
    j0_[i] = 1 / std::sqrt(h_[i]);
  }
  dependence_ = 1e-12;
  ready_ = true;
  return semidefinite_ ? Curvature::kSemidefinite : Curvature::kPositive;
}

Curvature QuadraticProgram::set_hessian(std::span<const double> h) noexcept {
  ready_ = built_ = false;
  diagonal_ = false;
  if (h.size() != n_ * n_ || !finite(h)) return Curvature::kNotFinite;
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j <= i; ++j) h_[i * n_ + j] = h_[j * n_ + i] = h[i * n_ + j];
  }
  double most = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    if (h_[i * n_ + i] < 0) return Curvature::kNotConvex;
    most = std::max(most, h_[i * n_ + i]);
  }
  const double rounding = 8 * static_cast<double>(n_) * kEpsilon;
  semidefinite_ = !cholesky(h_.data(), 0, rounding, root_.data(), normal_.data(), n_);
  proximity_ = 0;
  if (semidefinite_) {
    if (most > 0 && !cholesky(h_.data(), 16 * rounding * most, 0, root_.data(), normal_.data(), n_)) return Curvature::kNotConvex;
    if (most == 0 && largest(h_.data(), n_ * n_) > 0) return Curvature::kNotConvex;
    proximity_ = most > 0 ? 1e-6 * most : 1;
    for (std::size_t i = 0; i < n_; ++i) h_[i * n_ + i] += proximity_;
    if (!cholesky(h_.data(), 0, 0, root_.data(), normal_.data(), n_)) return Curvature::kNotConvex;
  }
  inverse_transposed(root_.data(), normal_.data(), j0_.data(), n_);
  double tall = 0, small = kNoBound;
  for (std::size_t i = 0; i < n_; ++i) {
    tall = std::max(tall, root_[i * n_ + i]);
    small = std::min(small, root_[i * n_ + i]);
  }
  dependence_ = std::max(1e-12, 64 * kEpsilon * tall / small);
  ready_ = true;
  return semidefinite_ ? Curvature::kSemidefinite : Curvature::kPositive;
}

bool QuadraticProgram::set_rows(std::span<const double> a, std::size_t rows) noexcept {
  built_ = soft_ = false;
  rows_ready_ = rows <= most_rows_ && a.size() == rows * n_ && finite(a);
  if (!rows_ready_) return false;
  m_ = rows;
  for (std::size_t i = 0; i < m_; ++i) {
    const double* row = a.data() + i * n_;
    const double size = largest(row, n_);
    scale_[i] = size > 0 ? std::ldexp(1.0, -std::ilogb(size)) : 1;
    if (!std::isfinite(scale_[i])) scale_[i] = 1;  // a row of denormals
    for (std::size_t j = 0; j < n_; ++j) columns_[j * stride_ + i] = rows_[i * n_ + j] = row[j] * scale_[i];
    l1_[i] = kNoBound;
    l2_[i] = 0;
  }
  return true;
}

bool QuadraticProgram::set_softness(std::span<const double> l1, std::span<const double> l2) noexcept {
  built_ = soft_ = false;
  if (!rows_ready_) return false;
  std::size_t open = 0;
  for (std::size_t i = 0; i < m_ && i < l1.size() && i < l2.size(); ++i) {
    if (!(l1[i] >= 0) || !(l2[i] >= 0) || (l1[i] == 0 && l2[i] == 0)) return rows_ready_ = false;
    const bool hard = std::isinf(l1[i]) || std::isinf(l2[i]);
    l1_[i] = hard ? kNoBound : l1[i] / scale_[i];
    l2_[i] = hard ? 0 : l2[i] / scale_[i] / scale_[i];
    soft_ = soft_ || !hard;
    if (!hard && l2[i] > 0) ++open;
  }
  if (l1.size() != m_ || l2.size() != m_ || open > most_soft_) return rows_ready_ = false;
  return true;
}

// Copies and scales what `solve` was given. kInfeasible: one row or bound alone leaves nothing.
Status QuadraticProgram::load(const LinearTerms& terms, std::span<const std::uint8_t> active) noexcept {
  inverted_ = kNone;
  iterations_ = 0;
  centred_ = !terms.centre.empty();
  const auto linear = centred_ ? terms.centre : terms.g;
  const bool boxed = boxed_ = !terms.lower.empty() || !terms.upper.empty();
  if (!ready_ || !rows_ready_ || linear.size() != n_ || terms.lo.size() != m_ || terms.hi.size() != m_ || !finite(linear) ||
      (boxed && (terms.lower.size() != n_ || terms.upper.size() != n_)) || (!active.empty() && active.size() != m_ + n_)) {
    return Status::kBadInput;
  }
  std::copy_n(linear.data(), n_, centred_ ? centre_.data() : g_.data());
  bool inverted = false;
  for (std::size_t i = 0; i < m_; ++i) {
    lo_[i] = terms.lo[i] * scale_[i];
    hi_[i] = terms.hi[i] * scale_[i];
    inverted |= !(terms.lo[i] <= terms.hi[i]) || terms.lo[i] == kNoBound || terms.hi[i] == -kNoBound;
  }
  for (std::size_t j = 0; j < n_; ++j) {
    lower_[j] = boxed ? terms.lower[j] : -kNoBound;
    upper_[j] = boxed ? terms.upper[j] : kNoBound;
    inverted |= !(lower_[j] <= upper_[j]) || lower_[j] == kNoBound || upper_[j] == -kNoBound;
  }
  if (!inverted) return Status::kOptimal;
  for (std::size_t i = m_ + n_; i-- > 0;) {
    const double low = i < m_ ? lo_[i] : lower_[i - m_], high = i < m_ ? hi_[i] : upper_[i - m_];
    if (std::isnan(low) || std::isnan(high)) return Status::kBadInput;
    if (low > high || low == kNoBound || high == -kNoBound) inverted_ = i;
  }
  return Status::kInfeasible;
}

}  // namespace kizzasi::solve
