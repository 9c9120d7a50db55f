// What a quadratic program tells about its answer: multipliers, the reason why there is none, derivatives.
#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

Status QuadraticProgram::solve(const LinearTerms& terms, std::span<std::uint8_t> active) noexcept {
  Status status = load(terms, active);
  if (status == Status::kOptimal) {
    status = semidefinite_ ? solve_proximal(active) : solve_once(active);
  } else {
    std::fill(row_multipliers_.begin(), row_multipliers_.end(), 0.0);
    std::fill(box_multipliers_.begin(), box_multipliers_.end(), 0.0);
  }
  if (status == Status::kOptimal) publish();
  if (!active.empty()) {
    if (status == Status::kOptimal) {
      std::copy_n(activity_.begin(), m_ + n_, active.begin());
    } else {
      std::fill(active.begin(), active.end(), std::uint8_t{kInactive});
    }
  }
  return status;
}

Status QuadraticProgram::solve_once(std::span<const std::uint8_t> warm) noexcept {
  if (!start(warm)) {
    residual_ = 0;
    return Status::kOptimal;
  }
  Status status = run();
  if (status == Status::kIterationLimit && !warm.empty()) {  // a warm start may be a bad place to begin
    start({});
    status = run();
  }
  double sum = 0;
  for (std::size_t i = 0; i < n_; ++i) sum += x_[i] * 0;
  return status == Status::kOptimal && !(sum == 0) ? Status::kBadInput : status;
}

// Steps of 1/2 x'Hx + g'x + rho/2 |x - before|^2 until x stays. On a polyhedron they end after finitely many.
Status QuadraticProgram::solve_proximal(std::span<std::uint8_t> active) noexcept {
  constexpr int kSteps = 1000;
  // With a centre c the gradient is H (x - c): as a linear term, that of the true H.
  if (centred_) {
    for (std::size_t i = 0; i < n_; ++i) {
      const double hc = diagonal_ ? h_[i] * centre_[i] : dot(h_.data() + i * n_, centre_.data(), n_);
      g_[i] = proximity_ * centre_[i] - hc;
    }
    centred_ = false;
  }
  std::copy_n(g_.data(), n_, true_g_.data());
  std::fill_n(before_.data(), n_, 0.0);
  Status status = Status::kIterationLimit;
  double last_step = kNoBound;
  std::span<const std::uint8_t> warm = active;
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < n_; ++i) g_[i] = true_g_[i] - proximity_ * before_[i];
    status = solve_once(warm);
    if (status != Status::kOptimal) break;
    publish();
    std::copy(activity_.begin(), activity_.end(), activity_copy_.begin());
    warm = std::span<const std::uint8_t>(activity_copy_).first(m_ + n_);
    double moved = 0;
    for (std::size_t i = 0; i < n_; ++i) moved = std::max(moved, std::abs(x_[i] - before_[i]));
    const double size = largest(x_.data(), n_);
    if (moved <= 1e-14 * size || moved == 0) break;
    status = Status::kIterationLimit;
    if (step > 2 && moved > 0.9 * last_step && falls_without_end({before_.data(), n_})) {
      status = Status::kUnbounded;
      break;
    }
    last_step = moved;
    std::copy_n(x_.data(), n_, before_.data());
  }
  std::copy_n(true_g_.data(), n_, g_.data());
  return status;
}

// Whether the last step is a direction without curvature, along which nothing ends and the objective falls.
bool QuadraticProgram::falls_without_end(std::span<const double> from) noexcept {
  double* v = normal_.data();
  double size = 0, fall = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    v[i] = x_[i] - from[i];
    size = std::max(size, std::abs(v[i]));
    fall += true_g_[i] * v[i];
  }
  if (!(fall < 0) || soft_) return false;
  const double small = 1e-9 * size;
  for (std::size_t i = 0; i < n_; ++i) {
    const double bend = (diagonal_ ? h_[i] * v[i] : dot(h_.data() + i * n_, v, n_)) - proximity_ * v[i];
    if (std::abs(bend) > 1e-9 * size * (proximity_ * 1e6)) return false;
    if ((v[i] > small && std::isfinite(upper_[i])) || (v[i] < -small && std::isfinite(lower_[i]))) return false;
  }
  for (std::size_t r = 0; r < m_; ++r) {
    double along = 0;
    for (std::size_t j = 0; j < n_; ++j) along += columns_[j * stride_ + r] * v[j];
    if ((along > small && std::isfinite(hi_[r])) || (along < -small && std::isfinite(lo_[r]))) return false;
  }
  return true;
}

// The row `broken` is a combination of rows that hold, with signs that leave no way out: r_ has the factors. The combination is refined,
// and must vanish against the gap that it proves.
bool QuadraticProgram::certify(const Active& broken) noexcept {
  const std::size_t q = factor_.active();
  double* v = normal_.data();
  const auto combine = [&] {
    std::fill_n(v, factor_.dims(), 0.0);
    add_normal(broken, 1, v);
    for (std::size_t k = 0; k < q; ++k) add_normal(working_[k], -r_[k], v);
  };
  combine();
  factor_.rotate(v, d_.data());
  factor_.solve_upper(d_.data());
  for (std::size_t k = 0; k < q; ++k) r_[k] += d_[k];
  std::fill(row_multipliers_.begin(), row_multipliers_.end(), 0.0);
  std::fill(box_multipliers_.begin(), box_multipliers_.end(), 0.0);
  for (std::size_t k = 0; k < q; ++k) {
    if (working_[k].low == 0 && r_[k] > 0) r_[k] = 0;  // by rounding
  }
  combine();
  const double left = largest(v, factor_.dims());
  double gap = 0, most = 1;
  const auto put = [&](const Active& a, double factor) {
    gap += factor * a.sign * bound_of(a);
    most = std::max(most, std::abs(factor));
    if (a.row < m_) {
      row_multipliers_[a.row] = -a.sign * factor * scale_[a.row];
    } else {
      box_multipliers_[a.row - m_] = -a.sign * factor;
    }
  };
  put(broken, 1);
  for (std::size_t k = 0; k < q; ++k) put(working_[k], -r_[k]);
  double size = 0;
  for (const double m : row_multipliers_) size = std::max(size, std::abs(m));
  for (const double m : box_multipliers_) size = std::max(size, std::abs(m));
  for (double& m : row_multipliers_) m /= size;
  for (double& m : box_multipliers_) m /= size;
  return gap > 0 && left <= 1e-9 * most && left * largest(x_.data(), n_) <= 0.5 * gap;
}

void QuadraticProgram::publish() noexcept {
  std::fill(row_multipliers_.begin(), row_multipliers_.end(), 0.0);
  std::fill(box_multipliers_.begin(), box_multipliers_.end(), 0.0);
  std::fill(slack_.begin(), slack_.end(), 0.0);
  std::fill(activity_.begin(), activity_.end(), std::uint8_t{kInactive});
  objective_ = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    d_[i] = centred_ ? x_[i] - centre_[i] : x_[i];
  }
  for (std::size_t i = 0; i < n_; ++i) {
    const double hv = (diagonal_ ? h_[i] * d_[i] : dot(h_.data() + i * n_, d_.data(), n_)) - proximity_ * d_[i];
    objective_ += d_[i] * (0.5 * hv + (centred_ ? 0 : (semidefinite_ ? true_g_[i] : g_[i])));
  }
  const auto pay = [&](std::size_t row, double slack) {
    slack_[row] = slack / scale_[row];
    objective_ += slack * (l1_[row] + l2_[row] * slack);
  };
  for (const Active& a : working_) {
    const bool at_high = a.u * a.sign < 0 || (a.u == 0 && a.at_high);
    std::uint8_t code = is_equality(a.row) ? kEquality : (at_high ? kAtHigh : kAtLow);
    if (a.dimension != kNone) {
      code = static_cast<std::uint8_t>((at_high ? kAtHigh : kAtLow) | kOpen);
      pay(a.row, std::abs(x_[a.dimension]));
    }
    activity_[a.row] = code;
    if (a.row < m_) {
      row_multipliers_[a.row] = -a.sign * a.u * scale_[a.row];
    } else {
      const std::size_t j = a.row - m_;
      box_multipliers_[j] = -a.sign * a.u;
      x_[j] = a.sign > 0 ? lower_[j] : upper_[j];  // a bound is met exactly
    }
  }
  if (!soft_) return;
  for (std::size_t i = 0; i < m_; ++i) {
    if ((state_[i] & kSaturated) == 0) continue;
    const double sign = (state_[i] & kAtHigh) != 0 ? -1 : 1;
    activity_[i] = state_[i];
    row_multipliers_[i] = -sign * l1_[i] * scale_[i];
    pay(i, std::max(0.0, sign * ((sign > 0 ? lo_[i] : hi_[i]) - value(i))));
  }
}

void QuadraticProgram::gradient(std::span<const double> dx, std::span<double> by_g, std::span<double> by_bound,
                                std::span<double> by_box) noexcept {
  const std::size_t q = factor_.active(), dims = factor_.dims();
  std::fill_n(normal_.data(), dims, 0.0);
  std::copy_n(dx.data(), n_, normal_.data());
  factor_.rotate(normal_.data(), d_.data());
  std::copy_n(d_.data(), q, r_.data());
  factor_.solve_upper(r_.data());
  factor_.free_step(d_.data(), z_.data());
  for (std::size_t i = 0; i < n_; ++i) by_g[i] = -z_[i];
  std::fill(by_bound.begin(), by_bound.end(), 0.0);
  std::fill(by_box.begin(), by_box.end(), 0.0);
  for (std::size_t k = 0; k < q; ++k) {
    const Active& a = working_[k];
    if (a.row < m_) {
      by_bound[a.row] = a.sign * r_[k] * scale_[a.row];
    } else {
      by_box[a.row - m_] = a.sign * r_[k];
    }
  }
}

void QuadraticProgram::gradient_of_rows(std::span<const double> by_g, std::span<const double> by_bound,
                                        std::span<double> by_a) const noexcept {
  for (std::size_t i = 0; i < m_; ++i) {
    for (std::size_t j = 0; j < n_; ++j) by_a[i * n_ + j] = row_multipliers_[i] * by_g[j] - by_bound[i] * x_[j];
  }
}

}  // namespace kizzasi::solve
