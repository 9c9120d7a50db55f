#include "kizzasi/solve/polytope_projection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/base/compensated_sum.h"

namespace kizzasi::solve {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct RowValue {
  double plain = 0;  // from left to right
  double size = 0;   // sum |a_j x_j|
};

RowValue evaluate(const double* a, std::span<const double> x) {
  RowValue value;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double term = a[j] * x[j];
    value.plain += term;
    value.size += std::abs(term);
  }
  return value;
}

double exact_value(const double* a, std::span<const double> x) {
  CompensatedSum sum;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double product = a[j] * x[j];
    sum.add(product);
    sum.add(std::fma(a[j], x[j], -product));
  }
  return sum.value();
}

bool row_obeys(const RowValue& v, double lo, double hi) {
  if (lo == hi) return std::abs(v.plain - lo) <= 8 * kEpsilon * (v.size + std::abs(lo));
  return v.plain >= lo && v.plain <= hi;
}

}  // namespace

void PolytopeProjection::prepare(std::size_t variables, std::size_t rows) {
  n_ = variables;
  m_ = rows;
  qp_.prepare(n_, rows);
  level_qp_.prepare(n_, rows, rows);
  a_.assign(n_ * rows, 0);
  for (auto* v : {&weight_, &x_, &low_box_, &high_box_, &small_}) v->assign(n_, 0);
  zeros_.assign(n_ + rows, 0);
  for (auto* v : {&lo_, &hi_, &value_, &l1_, &l2_}) v->assign(rows, 0);
}

bool PolytopeProjection::set_rows(std::span<const double> a, std::size_t rows, std::span<const double> weight) noexcept {
  if (a.size() != rows * n_ || a.size() > a_.size() || (!weight.empty() && weight.size() != n_)) return false;
  m_ = rows;
  std::copy(a.begin(), a.end(), a_.begin());
  for (std::size_t j = 0; j < n_; ++j) {
    weight_[j] = weight.empty() ? 1 : weight[j];
    if (!(weight_[j] > 0)) return false;
  }
  return qp_.set_diagonal(weight_) == Curvature::kPositive && qp_.set_rows(a, rows);
}

bool PolytopeProjection::inside(std::span<const double> x, const Polytope& set, bool exactly) const noexcept {
  for (std::size_t j = 0; j < n_ && !set.lower.empty(); ++j) {
    if (!(x[j] >= set.lower[j] && x[j] <= set.upper[j])) return false;
  }
  for (std::size_t i = 0; i < m_; ++i) {
    const double* a = a_.data() + i * n_;
    if (row_obeys(evaluate(a, x), set.lo[i], set.hi[i])) continue;
    if (!exactly) return false;
    const double value = exact_value(a, x);
    if (!(value >= set.lo[i] && value <= set.hi[i])) return false;
  }
  return true;
}

double PolytopeProjection::distance_to(std::span<const double> y, std::span<const double> x) const noexcept {
  double sum = 0;
  for (std::size_t j = 0; j < n_; ++j) sum += weight_[j] * (x[j] - y[j]) * (x[j] - y[j]);
  return std::sqrt(sum);
}

// By how much x_ breaks rows, as evaluated.
double PolytopeProjection::broken(const Polytope& set) const noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < m_; ++i) {
    const RowValue v = evaluate(a_.data() + i * n_, x_);
    if (!row_obeys(v, set.lo[i], set.hi[i])) sum += std::max(set.lo[i] - v.plain, v.plain - set.hi[i]);
  }
  return sum;
}

// For sets too thin to step inside: single coordinates move by single roundings, as long as that breaks less.
bool PolytopeProjection::settle_roundings(const Polytope& set) noexcept {
  constexpr int kMoves = 64, kFarthest = 4;
  double now = broken(set);
  for (int move = 0; move < kMoves && now > 0; ++move) {
    double least = now, best = 0;
    std::size_t coordinate = n_;
    for (std::size_t j = 0; j < n_; ++j) {
      const double before = x_[j];
      for (const double end : {-kNoBound, kNoBound}) {
        double to = before;
        for (int step = 0; step < kFarthest; ++step) {
          to = std::nextafter(to, end);
          if (!set.lower.empty() && !(to >= set.lower[j] && to <= set.upper[j])) break;
          x_[j] = to;
          const double then = broken(set);
          if (then < least) least = then, best = to, coordinate = j;
        }
      }
      x_[j] = before;
    }
    if (coordinate == n_) break;
    x_[coordinate] = best;
    now = least;
  }
  return now == 0;
}

Status PolytopeProjection::nearest(std::span<const double> y, const Polytope& set, std::span<double> x,
                                   std::span<std::uint8_t> active) noexcept {
  obeys_ = unchanged_ = false;
  const bool boxed = !set.lower.empty() || !set.upper.empty();
  if (y.size() != n_ || x.size() != n_ || set.lo.size() != m_ || set.hi.size() != m_ || (boxed && set.lower.size() != n_) ||
      (boxed && set.upper.size() != n_)) {
    return Status::kBadInput;
  }
  if (inside(y, set, true)) {
    for (const double v : y) {
      if (!std::isfinite(v)) return Status::kBadInput;
    }
    std::copy(y.begin(), y.end(), x.begin());
    std::fill(active.begin(), active.end(), std::uint8_t{kInactive});
    obeys_ = unchanged_ = true;
    distance_ = 0;
    return Status::kOptimal;
  }
  Status status = qp_.solve({{}, y, set.lo, set.hi, set.lower, set.upper}, active);
  if (status != Status::kOptimal) return status;
  std::copy(qp_.x().begin(), qp_.x().end(), x_.begin());
  obeys_ = inside(x_, set, false);
  std::copy(set.lo.begin(), set.lo.end(), lo_.begin());
  std::copy(set.hi.begin(), set.hi.end(), hi_.begin());
  // Once more, with the bounds that are near further in by a few roundings.
  const std::span<const double> lo(lo_.data(), m_), hi(hi_.data(), m_);
  for (double more = 16; !obeys_ && more <= 1024; more *= 8) {
    for (std::size_t i = 0; i < m_; ++i) {
      const RowValue v = evaluate(a_.data() + i * n_, x_);
      if (set.lo[i] == set.hi[i]) continue;
      const double rounding = kEpsilon * (v.size + std::min(std::abs(set.lo[i]), std::abs(set.hi[i])));
      if (v.plain > set.hi[i] - 4096 * rounding) hi_[i] = set.hi[i] - more * rounding;
      if (v.plain < set.lo[i] + 4096 * rounding) lo_[i] = set.lo[i] + more * rounding;
      if (lo_[i] > hi_[i]) lo_[i] = hi_[i] = 0.5 * set.lo[i] + 0.5 * set.hi[i];
    }
    if (qp_.solve({{}, y, lo, hi, set.lower, set.upper}, active) != Status::kOptimal) break;
    obeys_ = inside(qp_.x(), set, false);
    if (obeys_) std::copy(qp_.x().begin(), qp_.x().end(), x_.begin());
  }
  if (!obeys_) obeys_ = settle_roundings(set);
  if (!obeys_) qp_.solve({{}, y, set.lo, set.hi, set.lower, set.upper}, active);
  std::copy(x_.begin(), x_.end(), x.begin());
  distance_ = distance_to(y, x);
  return Status::kOptimal;
}

std::span<const double> PolytopeProjection::row_multipliers() const noexcept {
  return unchanged_ ? std::span<const double>(zeros_).first(m_) : qp_.row_multipliers();
}

std::span<const double> PolytopeProjection::box_multipliers() const noexcept {
  return unchanged_ ? std::span<const double>(zeros_).first(n_) : qp_.box_multipliers();
}

// Finds the least |slack|_2 of one level and writes the bounds that it leaves for the levels after into lo_ and hi_: a row that had to give
// way has the same value in every best point.
Status PolytopeProjection::settle_level(std::span<const double> y, int level, std::span<const int> priority, const Polytope& set) noexcept {
  const auto level_of = [&](std::size_t i) { return priority.empty() ? 0 : priority[i]; };
  for (std::size_t i = 0; i < m_; ++i) {
    const bool now = level_of(i) == level;
    l1_[i] = now ? 0 : kNoBound;
    l2_[i] = now ? 0.5 : 0;
    if (now || level_of(i) > level) {
      lo_[i] = now ? set.lo[i] : -kNoBound;
      hi_[i] = now ? set.hi[i] : kNoBound;
    }
  }
  // Proximal steps on 1/2 |slack|^2: their curvature is small beside that of any row.
  double size = 0;
  for (std::size_t e = 0; e < m_ * n_; ++e) size = std::max(size, std::abs(a_[e]));
  std::fill(small_.begin(), small_.end(), 1e-6 * (size > 0 ? size * size : 1));
  level_qp_.set_diagonal(small_);
  level_qp_.set_rows({a_.data(), m_ * n_}, m_);
  level_qp_.set_softness({l1_.data(), m_}, {l2_.data(), m_});
  std::copy(y.begin(), y.end(), x_.begin());
  constexpr int kSteps = 40;
  for (int step = 0; step < kSteps; ++step) {
    const Status status = level_qp_.solve({{}, x_, {lo_.data(), m_}, {hi_.data(), m_}, set.lower, set.upper});
    if (status != Status::kOptimal) return status;
    double moved = 0, far = 0;
    for (std::size_t j = 0; j < n_; ++j) {
      moved = std::max(moved, std::abs(level_qp_.x()[j] - x_[j]));
      far = std::max(far, std::abs(level_qp_.x()[j]));
      x_[j] = level_qp_.x()[j];
    }
    if (moved <= 4 * kEpsilon * far) break;
  }
  for (std::size_t i = 0; i < m_; ++i) {
    if (level_of(i) != level) continue;
    const RowValue v = evaluate(a_.data() + i * n_, x_);
    const double bound = std::min(std::abs(set.lo[i]), std::abs(set.hi[i]));
    const double rounding = 32 * kEpsilon * (v.size + bound);
    if (v.plain > set.hi[i] + rounding || v.plain < set.lo[i] - rounding) {
      lo_[i] = v.plain - rounding;
      hi_[i] = v.plain + rounding;
    } else {
      lo_[i] = std::min(set.lo[i], v.plain);
      hi_[i] = std::max(set.hi[i], v.plain);
    }
  }
  return Status::kOptimal;
}

Status PolytopeProjection::least_slack(std::span<const double> y, const Polytope& set, std::span<const int> priority, std::span<double> x,
                                       std::span<double> slack) noexcept {
  if (slack.size() != m_ || (!priority.empty() && priority.size() != m_)) return Status::kBadInput;
  for (std::size_t i = 0; i < m_; ++i) {
    if (!(set.lo[i] <= set.hi[i])) return Status::kBadInput;
  }
  Status status = nearest(y, set, x);
  if (status == Status::kInfeasible && qp_.inverted() == QuadraticProgram::kNone) {
    std::fill(lo_.begin(), lo_.end(), -kNoBound);
    std::fill(hi_.begin(), hi_.end(), kNoBound);
    const auto level_of = [&](std::size_t i) { return priority.empty() ? 0 : priority[i]; };
    int level = 0;
    for (bool first = true;; first = false) {
      std::size_t next = m_;  // a row of the next level
      for (std::size_t i = 0; i < m_; ++i) {
        if ((first || level_of(i) > level) && (next == m_ || level_of(i) < level_of(next))) next = i;
      }
      if (next == m_) break;
      level = level_of(next);
      status = settle_level(y, level, priority, set);
      if (status != Status::kOptimal) return status;
    }
    status = qp_.solve({{}, y, {lo_.data(), m_}, {hi_.data(), m_}, set.lower, set.upper});
    if (status != Status::kOptimal) return status;
    std::copy(qp_.x().begin(), qp_.x().end(), x.begin());
    distance_ = distance_to(y, x);
    unchanged_ = false;
  }
  if (status != Status::kOptimal) return status;
  for (std::size_t i = 0; i < m_; ++i) {
    const double v = evaluate(a_.data() + i * n_, x).plain;
    slack[i] = v > set.hi[i] ? v - set.hi[i] : (v < set.lo[i] ? v - set.lo[i] : 0);
  }
  return Status::kOptimal;
}

}  // namespace kizzasi::solve
