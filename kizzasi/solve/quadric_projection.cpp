#include "kizzasi/solve/quadric_projection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/solve/dense.h"
#include "kizzasi/solve/projection.h"

namespace kizzasi::solve {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

bool finite(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v * 0;
  return sum == 0;
}

}  // namespace

void QuadricProjection::prepare(std::size_t variables, std::size_t rows) {
  n_ = variables;
  m_ = rows;
  for (auto* v : {&q_, &axes_, &h_}) v->assign(n_ * n_, 0);
  for (auto* v : {&c_, &curve_, &bottom_, &g_, &t_, &turned_, &turned_c_, &inside_, &slope_, &move_, &box_}) v->assign(n_, 0);
  a_.assign(n_ * rows, 0);
  rows_.assign(rows, 0);
  by_bound_.assign(rows, 0);
  polytope_.prepare(n_, rows);
  qp_.prepare(n_, rows);
  ready_ = false;
}

// Jacobi's rotations: Q = V diag(curve) V', V by columns in axes_.
void QuadricProjection::axes() noexcept {
  std::copy(q_.begin(), q_.end(), h_.begin());
  std::fill(axes_.begin(), axes_.end(), 0.0);
  for (std::size_t i = 0; i < n_; ++i) axes_[i * n_ + i] = 1;
  constexpr int kSweeps = 60;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double off = 0, on = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      on = std::max(on, std::abs(h_[i * n_ + i]));
      for (std::size_t j = 0; j < i; ++j) off = std::max(off, std::abs(h_[i * n_ + j]));
    }
    if (off <= 1e-300 || off <= 1e-18 * on) break;
    for (std::size_t p = 0; p < n_; ++p) {
      for (std::size_t q = p + 1; q < n_; ++q) {
        const double apq = h_[p * n_ + q];
        if (apq == 0) continue;
        const double theta = (h_[q * n_ + q] - h_[p * n_ + p]) / (2 * apq);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double cosine = 1 / std::sqrt(t * t + 1), sine = t * cosine;
        for (std::size_t k = 0; k < n_; ++k) {
          const double a = h_[k * n_ + p], b = h_[k * n_ + q];
          h_[k * n_ + p] = cosine * a - sine * b;
          h_[k * n_ + q] = sine * a + cosine * b;
        }
        for (std::size_t k = 0; k < n_; ++k) {
          const double a = h_[p * n_ + k], b = h_[q * n_ + k];
          h_[p * n_ + k] = cosine * a - sine * b;
          h_[q * n_ + k] = sine * a + cosine * b;
        }
        for (std::size_t k = 0; k < n_; ++k) {
          const double a = axes_[k * n_ + p], b = axes_[k * n_ + q];
          axes_[k * n_ + p] = cosine * a - sine * b;
          axes_[k * n_ + q] = sine * a + cosine * b;
        }
      }
    }
  }
  for (std::size_t i = 0; i < n_; ++i) curve_[i] = h_[i * n_ + i];
}

Curvature QuadricProjection::set_quadric(std::span<const double> q, std::span<const double> c, double b) noexcept {
  ready_ = ball_ = false;
  if (q.size() != n_ * n_ || c.size() != n_ || !finite(q) || !finite(c) || !std::isfinite(b)) return Curvature::kNotFinite;
  for (std::size_t i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < n_; ++j) q_[i * n_ + j] = 0.5 * (q[i * n_ + j] + q[j * n_ + i]);
    c_[i] = c[i];
  }
  b_ = b;
  axes();
  double most = 0;
  for (const double k : curve_) most = std::max(most, std::abs(k));
  const double nothing = 32 * static_cast<double>(n_) * kEpsilon * most;
  bottomless_ = false;
  bool flat = false;
  for (std::size_t i = 0; i < n_; ++i) {
    if (curve_[i] < -nothing) return Curvature::kNotConvex;
    double along = 0, size = 0;
    for (std::size_t k = 0; k < n_; ++k) {
      along += axes_[k * n_ + i] * c_[k];
      size = std::max(size, std::abs(c_[k]));
    }
    turned_c_[i] = along;
    if (curve_[i] > nothing) {
      turned_[i] = -along / (2 * curve_[i]);
      continue;
    }
    flat = true;
    curve_[i] = 0;
    turned_[i] = 0;
    if (std::abs(along) > 32 * kEpsilon * size) {
      bottomless_ = true;
    } else {
      turned_c_[i] = 0;
    }
  }
  for (std::size_t k = 0; k < n_; ++k) bottom_[k] = dot(axes_.data() + k * n_, turned_.data(), n_);
  lowest_ = bottomless_ ? -kNoBound : level(bottom_);
  ready_ = true;
  return flat ? Curvature::kSemidefinite : Curvature::kPositive;
}

Curvature QuadricProjection::set_ball(std::span<const double> centre, double radius) noexcept {
  ready_ = false;
  if (centre.size() != n_ || !finite(centre) || !std::isfinite(radius)) return Curvature::kNotFinite;
  ball_ = true;
  bottomless_ = false;
  std::copy(centre.begin(), centre.end(), bottom_.begin());
  radius_ = radius;
  b_ = radius * radius;
  lowest_ = 0;
  ready_ = true;
  return Curvature::kPositive;
}

bool QuadricProjection::set_rows(std::span<const double> a, std::size_t rows) noexcept {
  if (a.size() > a_.size() || a.size() != rows * n_) return false;
  m_ = rows;
  std::copy(a.begin(), a.end(), a_.begin());
  return polytope_.set_rows(a, rows);
}

double QuadricProjection::level(std::span<const double> x) const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    if (ball_) {
      sum += (x[i] - bottom_[i]) * (x[i] - bottom_[i]);
      continue;
    }
    double row = c_[i];
    for (std::size_t j = 0; j < n_; ++j) row += q_[i * n_ + j] * x[j];
    sum += x[i] * row;
  }
  return sum;
}

bool QuadricProjection::obeys(std::span<const double> x) const noexcept {
  return ball_ ? norm_of(x, bottom_, Norm::kL2) <= radius_ : level(x) <= b_;
}

// The gradient of level().
void QuadricProjection::steepest(std::span<const double> x, std::span<double> gradient) const noexcept {
  for (std::size_t i = 0; i < n_; ++i) gradient[i] = ball_ ? 2 * (x[i] - bottom_[i]) : c_[i] + 2 * dot(q_.data() + i * n_, x.data(), n_);
}

bool QuadricProjection::pull(std::span<double> x, std::span<const double> inside) const noexcept {
  for (double by = kEpsilon; by < 1e-8 && !obeys(x); by *= 2) {
    for (std::size_t j = 0; j < n_; ++j) x[j] += by * (inside[j] - x[j]);
  }
  return obeys(x);
}

Status QuadricProjection::nearest(std::span<const double> y, std::span<double> x) noexcept {
  multiplier_ = 0;
  if (!ready_ || y.size() != n_ || x.size() != n_ || !finite(y)) return Status::kBadInput;
  if (ball_) {
    const Status status = nearest_in_ball(y, bottom_, radius_, Norm::kL2, x, {}, multiplier_);
    return status;
  }
  if (obeys(y)) {
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  if (lowest_ > b_) return Status::kInfeasible;
  for (std::size_t i = 0; i < n_; ++i) {  // y in the axes of Q
    turned_[i] = 0;
    for (std::size_t k = 0; k < n_; ++k) turned_[i] += axes_[k * n_ + i] * y[k];
  }
  // q over m is convex and falls, so that Newton's steps from 0 come up to the root from one side.
  constexpr int kSteps = 500;
  for (int step = 0; step < kSteps; ++step) {
    double over = -b_, slope = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double v = (turned_[i] - multiplier_ * turned_c_[i]) / (1 + 2 * multiplier_ * curve_[i]);
      const double steep = 2 * curve_[i] * v + turned_c_[i];
      over += v * (curve_[i] * v + turned_c_[i]);
      slope -= steep * steep / (1 + 2 * multiplier_ * curve_[i]);
    }
    if (!(over > 0) || slope == 0) break;
    double more = -over / slope;
    if (std::isfinite(lowest_) && b_ > lowest_) {  // 1 / sqrt(q - lowest) is close to linear: larger steps that do not overshoot far
      const double s = over + b_ - lowest_, t = b_ - lowest_;
      more = 2 * s * (std::sqrt(s / t) - 1) / -slope;
      const double careful = -over / slope;
      if (!(more >= careful)) more = careful;
    }
    const double next = multiplier_ + more;
    if (!(next > multiplier_)) break;
    multiplier_ = next;
  }
  for (int step = 0; step < 4; ++step) {  // the larger steps may have passed the root by a little: plain Newton from there
    double over = -b_, slope = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      const double v = (turned_[i] - multiplier_ * turned_c_[i]) / (1 + 2 * multiplier_ * curve_[i]);
      const double steep = 2 * curve_[i] * v + turned_c_[i];
      over += v * (curve_[i] * v + turned_c_[i]);
      slope -= steep * steep / (1 + 2 * multiplier_ * curve_[i]);
    }
    if (slope == 0) break;
    multiplier_ = std::max(0.0, multiplier_ - over / slope);
  }
  for (std::size_t i = 0; i < n_; ++i) {
    t_[i] = (turned_[i] - multiplier_ * turned_c_[i]) / (1 + 2 * multiplier_ * curve_[i]);
    inside_[i] = t_[i] - (curve_[i] == 0 ? turned_c_[i] : 0);
  }
  for (std::size_t k = 0; k < n_; ++k) x[k] = dot(axes_.data() + k * n_, t_.data(), n_);
  if (bottomless_) {  // inwards is down the slope
    for (std::size_t k = 0; k < n_; ++k) slope_[k] = dot(axes_.data() + k * n_, inside_.data(), n_);
  } else {
    std::copy(bottom_.begin(), bottom_.end(), slope_.begin());
  }
  return pull(x, slope_) ? Status::kOptimal : Status::kIterationLimit;
}

Status QuadricProjection::nearest(std::span<const double> y, const Polytope& set, std::span<double> x) noexcept {
  multiplier_ = 0;
  polytope_empty_ = false;
  if (!ready_ || y.size() != n_ || x.size() != n_) return Status::kBadInput;
  if (ball_ && radius_ < 0) return Status::kInfeasible;
  Status status = polytope_.nearest(y, set, x);
  polytope_empty_ = status == Status::kInfeasible;
  if (status != Status::kOptimal) return status;
  std::copy(polytope_.row_multipliers().begin(), polytope_.row_multipliers().end(), rows_.begin());
  std::copy(polytope_.box_multipliers().begin(), polytope_.box_multipliers().end(), box_.begin());
  if (obeys(x)) return Status::kOptimal;

  // Where the polytope lies deepest in the quadric: whether they meet, and which way is inwards.
  const auto set_curvature = [&](double identity, double m) {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        h_[i * n_ + j] = (i == j ? identity : 0) + 2 * m * (ball_ ? (i == j ? 1 : 0) : q_[i * n_ + j]);
      }
      g_[i] = -identity * y[i] + m * (ball_ ? -2 * bottom_[i] : c_[i]);
    }
    return qp_.set_hessian(h_);
  };
  const LinearTerms terms{g_, {}, set.lo, set.hi, set.lower, set.upper};
  if (!qp_.set_rows({a_.data(), m_ * n_}, m_)) return Status::kBadInput;
  set_curvature(0, 1);
  status = qp_.solve(terms);
  if (status == Status::kUnbounded ||
      status == Status::kIterationLimit) {  // q falls without end inside: some point far down the way is well inside
    set_curvature(1, 1e6);
    status = qp_.solve(terms);
  }
  if (status != Status::kOptimal) return status;
  std::copy(qp_.x().begin(), qp_.x().end(), inside_.begin());
  double least = level(inside_);
  if (!obeys(inside_)) return Status::kInfeasible;
  if (bottomless_) least = 2 * least - b_ - 1;

  double low = 0, high = kNoBound, m = 0;
  const double target = b_ - least;
  constexpr int kSteps = 200;
  for (int step = 0; step < kSteps; ++step) {
    set_curvature(1, m);
    status = qp_.solve(terms);
    if (status != Status::kOptimal) return status;
    const double over = level(qp_.x()) - b_;
    if (over > 0) low = m;
    if (over <= 0) high = m;
    steepest(qp_.x(), slope_);
    qp_.gradient(slope_, move_, by_bound_, t_);  // d x / d m = move_, as d g / d m = slope_
    const double falls = dot(slope_.data(), move_.data(), n_);
    const double here = over + target;
    // Newton on 1 / sqrt(q - least), which is close to linear in m.
    double next = falls < 0 && target > 0 && here > 0 ? m + 2 * here * (std::sqrt(here / target) - 1) / -falls : kNoBound;
    if (!(next > low && next < high)) next = std::isfinite(high) ? 0.5 * (low + high) : std::max(1.0, 4 * low);
    if (std::abs(next - m) <= 2 * kEpsilon * m || (std::isfinite(high) && high - low <= 2 * kEpsilon * high)) break;
    m = next;
  }
  std::copy(qp_.x().begin(), qp_.x().end(), x.begin());
  std::copy(qp_.row_multipliers().begin(), qp_.row_multipliers().end(), rows_.begin());
  std::copy(qp_.box_multipliers().begin(), qp_.box_multipliers().end(), box_.begin());
  multiplier_ = ball_ ? 2 * m : m;
  return pull(x, inside_) ? Status::kOptimal : Status::kIterationLimit;
}

}  // namespace kizzasi::solve
