#include <cstdio>
// The dual active-set method: x is always the best point under the rows of the working set, and broken rows enter it one by one.
#include "kizzasi/solve/quadratic_program.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr std::uint8_t kInWorkingSet = 16;
constexpr std::uint8_t kMet = 32;         // depends on the working set and is met as well as rounding allows, as long as no row leaves
constexpr double kEqualitiesFirst = 1e8;  // how much heavier a broken equality counts: it never leaves again

double side_sign(std::uint8_t code) { return (code & kAtHigh) != 0 ? -1 : 1; }

}  // namespace

// a . x of one row, in its scale.
double QuadraticProgram::value(std::size_t row) const noexcept { return row < m_ ? dot(row_of(row), x_.data(), n_) : x_[row - m_]; }

// By how much a row of the working set, or one about to enter, is not met: > 0 where broken.
double QuadraticProgram::missing(const Active& a) const noexcept {
  const double bound = bound_of(a);
  const double short_of = a.sign * (bound - value(a.row));
  return a.dimension == kNone ? short_of : short_of - x_[a.dimension];
}

// What rounding alone may make of a row's value.
double QuadraticProgram::rounding(std::size_t row, double bound) const noexcept {
  if (row >= m_) return 4 * kEpsilon * std::abs(bound);
  double sum = std::abs(bound);
  const double* a = row_of(row);
  for (std::size_t j = 0; j < n_; ++j) sum += std::abs(a[j] * x_[j]);
  return 8 * kEpsilon * sum;
}

void QuadraticProgram::add_normal(const Active& a, double factor, double* v) const noexcept {
  const double f = a.sign * factor;
  if (a.row >= m_) {
    v[a.row - m_] += f;
  } else {
    add_scaled(v, f, row_of(a.row), n_);
  }
  if (a.dimension != kNone) v[a.dimension] += factor;
}

// d = J'n.
void QuadraticProgram::rotated_normal(const Active& a, double* d) noexcept {
  const std::size_t dims = factor_.dims();
  if (a.row >= m_) {
    const double* row = factor_.row(a.row - m_);
    for (std::size_t k = 0; k < dims; ++k) d[k] = a.sign * row[k];
    return;
  }
  std::fill_n(normal_.data(), dims, 0.0);
  add_normal(a, 1, normal_.data());
  factor_.rotate(normal_.data(), d);
}

std::size_t QuadraticProgram::dimension_of(std::size_t row) noexcept {
  if (slack_dimension_[row] == kNone) {
    slack_dimension_[row] = factor_.open_dimension(1 / std::sqrt(2 * l2_[row]));
    x_[slack_dimension_[row]] = 0;
    built_ = false;
  }
  return slack_dimension_[row];
}

// A row held at its bound, from the multiplier 0.
QuadraticProgram::Active QuadraticProgram::held(std::size_t row, double sign) const noexcept {
  const double price = row < m_ ? l1_[row] : kNoBound;
  return {row, sign, 0, is_equality(row) ? -price : 0, price, kNone, sign < 0};
}

// A soft row that pays for its slack, from the multiplier at which the quadratic price begins.
QuadraticProgram::Active QuadraticProgram::opened(std::size_t row, double sign) noexcept {
  const double price = l1_[row];
  return {row, sign, price, price == 0 && is_equality(row) ? -kNoBound : price, kNoBound, dimension_of(row), sign < 0};
}

// What a warm start may still say about a row of this problem.
std::uint8_t QuadraticProgram::wanted(std::size_t row, std::uint8_t code) const noexcept {
  if (code == kInactive) return kInactive;
  const bool soft = row < m_ && std::isfinite(l1_[row]);
  const bool opens = soft && l2_[row] > 0 && ((code & kOpen) != 0 || l1_[row] == 0);
  const bool saturates = soft && !opens && l1_[row] > 0 && (code & kSaturated) != 0;
  if (is_equality(row)) {
    if (!opens && !saturates) return kEquality;
    return static_cast<std::uint8_t>(((code & kEquality) == kAtLow ? kAtLow : kAtHigh) | (opens ? kOpen : kSaturated));
  }
  const auto side = static_cast<std::uint8_t>(code & kEquality);
  if ((side != kAtLow || !std::isfinite(low_of(row))) && (side != kAtHigh || !std::isfinite(high_of(row)))) return kInactive;
  return static_cast<std::uint8_t>(side | (opens ? kOpen : 0) | (saturates ? kSaturated : 0));
}

// Builds the working set that wanted_ names, equalities first. Rows that depend on earlier ones are left out.
void QuadraticProgram::build() noexcept {
  std::copy(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(m_ + n_), built_from_.begin());
  for (std::size_t row = 0; row < m_ + n_; ++row) set_state(row, kInactive);
  std::fill_n(slack_dimension_.begin(), m_, kNone);
  working_.clear();
  if (diagonal_) {
    factor_.reset_diagonal(j0_.data(), n_);
  } else {
    factor_.reset(j0_.data(), n_);
  }
  for (const bool equalities : {true, false}) {
    for (std::size_t row = 0; row < m_ + n_; ++row) {
      const std::uint8_t code = wanted_[row];
      if (code == kInactive || (code == kEquality) != equalities) continue;
      if ((code & kSaturated) != 0) {
        set_state(row, code);
        continue;
      }
      const double sign = side_sign(code);
      const Active a = (code & kOpen) != 0 ? opened(row, sign) : held(row, sign);
      if (factor_.active() == factor_.dims()) continue;
      rotated_normal(a, d_.data());
      const std::size_t q = factor_.active(), dims = factor_.dims();
      const double free2 = dot(d_.data() + q, d_.data() + q, dims - q), all2 = dot(d_.data(), d_.data(), q) + free2;
      if (!(free2 > dependence_ * dependence_ * all2)) continue;
      factor_.free_step(d_.data(), z_.data());
      factor_.add(d_.data(), z_.data(), free2);
      working_.push_back(a);
      set_state(row, kInWorkingSet);
    }
  }
  built_ = true;
}

// Begins at the best point under the working set of the warm start, after what has the wrong sign has left it. False: `centre` obeys
// everything, and is the answer.
bool QuadraticProgram::start(std::span<const std::uint8_t> warm) noexcept {
  const std::size_t all = m_ + n_;
  bool same = built_, any = false;
  for (std::size_t row = 0; row < all; ++row) {
    wanted_[row] = warm.empty() ? std::uint8_t{kInactive} : wanted(row, warm[row]);
    same = same && wanted_[row] == built_from_[row];
    any = any || wanted_[row] != kInactive;
  }
  if (centred_) {
    std::copy_n(centre_.data(), n_, x_.data());
    if (any) {  // it may be that nothing has to move at all
      for (std::size_t row = 0; row < all; ++row) set_state(row, kInactive);
      Active broken;
      double gap = 0;
      if (!pick(broken, gap)) {
        working_.clear();
        built_ = false;
        return false;
      }
      same = same && built_;  // a soft row that opened has touched the factor
    }
  } else {
    std::fill_n(x_.data(), n_, 0.0);
  }
  met_ = false;
  if (same) {
    for (std::size_t row = 0; row < all; ++row) set_state(row, (wanted_[row] & kSaturated) != 0 ? wanted_[row] : std::uint8_t{kInactive});
    for (const Active& a : working_) set_state(a.row, kInWorkingSet);
  } else {
    build();
  }
  std::fill(x_.begin() + static_cast<std::ptrdiff_t>(n_), x_.end(), 0.0);
  for (Active& a : working_) {
    const Active fresh = a.dimension != kNone ? opened(a.row, a.sign) : held(a.row, a.sign);
    a.u = fresh.u;
    a.low = fresh.low;
    a.up = fresh.up;
  }
  if (centred_ && !any) return true;
  const std::size_t dims = factor_.dims();
  std::fill_n(rx_.data(), dims, 0.0);
  if (!centred_) {
    for (std::size_t j = 0; j < n_; ++j) rx_[j] = -g_[j];
  }
  add_multipliers();
  correct();
  if (!working_.empty()) keep_ranges();
  return true;
}

// Rows whose multiplier is out of its range leave, the worst first.
void QuadraticProgram::keep_ranges() noexcept {
  for (;;) {
    double worst = 0;
    std::size_t k = kNone;
    for (std::size_t i = 0; i < working_.size(); ++i) {
      const Active& a = working_[i];
      const double out = std::max(a.low - a.u, a.u - a.up);
      if (out > worst) worst = out, k = i;
    }
    if (k == kNone) return;
    leave(k, working_[k].u < working_[k].low ? working_[k].low : working_[k].up);
    residuals();
    correct();
  }
}

void QuadraticProgram::set_state(std::size_t row, std::uint8_t state) noexcept {
  state_[row] = state;
  weight_[row] = state != kInactive ? 0 : (is_equality(row) ? kEqualitiesFirst : 1);
}

// How a row that is broken would enter the working set, and by how much it is broken; not at all, 0.
double QuadraticProgram::broken_by(std::size_t row, double at, Active& candidate) noexcept {
  const double low = low_of(row), high = high_of(row);
  if (state_[row] == kInactive) {
    const double below = low - at, above = at - high;
    candidate = held(row, below > above ? 1 : -1);
    return std::max(below, above);
  }
  if ((state_[row] & kSaturated) == 0) return 0;
  // Its linear price is spent. Still broken at a quadratic price: it has to pay that; met again: it takes back what it paid.
  const double sign = side_sign(state_[row]), price = l1_[row];
  const double short_of = sign * ((sign > 0 ? low : high) - at);
  if (short_of > 0) {
    candidate = {row, sign, price, price, kNoBound, kNone, sign < 0};
    return l2_[row] > 0 ? short_of : 0;
  }
  candidate = {row, -sign, -price, -price, low == high ? price : 0, kNone, sign < 0};
  return -short_of;
}

// The row that is broken most, if any is by more than rounding.
bool QuadraticProgram::pick(Active& candidate, double& gap) noexcept {
  double worst = 0;
  std::size_t row = kNone;
  if (m_ > 0) {
    std::fill_n(values_.data(), stride_, 0.0);
    add_combination(values_.data(), x_.data(), columns_.data(), n_, stride_, stride_);
    for (std::size_t i = 0; i < m_; ++i) {
      const double broken = std::max(lo_[i] - values_[i], values_[i] - hi_[i]) * weight_[i];
      if (broken > worst) worst = broken, row = i;
    }
  }
  for (std::size_t j = 0; j < n_ && boxed_; ++j) {
    const double broken = std::max(lower_[j] - x_[j], x_[j] - upper_[j]) * weight_[m_ + j];
    if (broken > worst) worst = broken, row = m_ + j;
  }
  const auto at = [&](std::size_t r) { return r < m_ ? values_[r] : x_[r - m_]; };
  const auto rounds = [&](const Active& a, double by) { return by <= rounding(a.row, bound_of(a)); };
  if (row != kNone) gap = broken_by(row, at(row), candidate);
  if (soft_ || (row != kNone && rounds(candidate, gap))) {  // the worst is nothing: every row has to be looked at
    worst = 0;
    row = kNone;
    for (std::size_t r = 0; r < m_ + n_; ++r) {
      Active a;
      const double by = broken_by(r, at(r), a);
      const double broken = by * (state_[r] == kInactive ? weight_[r] : 1);
      if (!(broken > worst) || rounds(a, by)) continue;
      worst = broken;
      gap = by;
      candidate = a;
      row = r;
    }
  }
  if (row == kNone) return false;
  const bool pays = row < m_ && l2_[row] > 0 && std::isfinite(l1_[row]);
  if (pays && candidate.u == l1_[row]) candidate = opened(row, candidate.sign);
  return true;
}

// A row leaves the working set with its multiplier fixed at the end of its range that it has met.
void QuadraticProgram::leave(std::size_t k, double at) noexcept {
  const Active a = working_[k];
  set_state(a.row, kInactive);
  if (at != 0) {
    const bool at_low = (at > 0) == (a.sign > 0);  // which bound the multiplier pushes from
    set_state(a.row, static_cast<std::uint8_t>((at_low ? kAtLow : kAtHigh) | kSaturated));
  }
  for (std::size_t row = 0; row < m_ + n_ && met_; ++row) {
    if (state_[row] == kMet) set_state(row, kInactive);
  }
  met_ = false;
  if (a.dimension != kNone) x_[a.dimension] = 0;
  factor_.drop(k);
  working_.erase(working_.begin() + static_cast<std::ptrdiff_t>(k));
  built_ = false;
}

// Moves x and the multipliers until the row is met, its price is spent, or nothing can be done.
Status QuadraticProgram::enter(Active p, double gap) noexcept {
  built_ = false;
  set_state(p.row, kInactive);
  for (bool refined = false;; ++iterations_) {
    const std::size_t q = factor_.active(), dims = factor_.dims();
    rotated_normal(p, d_.data());
    const double free2 = dot(d_.data() + q, d_.data() + q, dims - q), all2 = free2 + dot(d_.data(), d_.data(), q);
    const bool dependent = !(free2 > dependence_ * dependence_ * all2);
    std::copy_n(d_.data(), q, r_.data());
    factor_.solve_upper(r_.data());

    if (dependent) {
      double noise = rounding(p.row, bound_of(p));
      for (std::size_t j = 0; j < q; ++j) {
        const Active& a = working_[j];
        noise += std::abs(r_[j]) * rounding(a.row, bound_of(a));
      }
      if (gap <= noise) {
        for (std::size_t j = 0; j < q; ++j) working_[j].u += p.u * r_[j];
        set_state(p.row, kMet);
        met_ = true;
        return Status::kOptimal;
      }
    }

    double t = p.up - p.u;
    std::size_t blocking = kNone;
    for (std::size_t j = 0; j < q; ++j) {
      const Active& a = working_[j];
      const double room = r_[j] > 0 ? (a.u - a.low) / r_[j] : (r_[j] < 0 ? (a.u - a.up) / r_[j] : kNoBound);
      if (room < t) t = room, blocking = j;
    }
    const bool full = !dependent && gap <= t * free2;
    if (full) t = gap / free2;
    if (dependent && t == kNoBound) {
      if (refined) return certify(p) ? Status::kInfeasible : Status::kIterationLimit;
      refined = true;  // many steps may have let x drift from the rows that it should meet
      residuals();
      add_normal(p, p.u, rx_.data());
      correct();
      gap = missing(p);
      continue;
    }
    t = std::max(t, 0.0);
    if (!dependent) {
      factor_.free_step(d_.data(), z_.data());
      add_scaled(x_.data(), t, z_.data(), dims);
      gap -= t * free2;
    }
    for (std::size_t j = 0; j < q; ++j) working_[j].u -= t * r_[j];
    p.u += t;
    if (full) {
      factor_.add(d_.data(), z_.data(), free2);
      working_.push_back(p);
      set_state(p.row, kInWorkingSet);
      return Status::kOptimal;
    }
    if (blocking == kNone) {  // its price is spent, or it has taken all of it back
      if (p.up != 0) set_state(p.row, static_cast<std::uint8_t>((p.sign > 0 ? kAtLow : kAtHigh) | kSaturated));
      return Status::kOptimal;
    }
    const Active& b = working_[blocking];
    leave(blocking, r_[blocking] > 0 ? b.low : b.up);
    if (iterations_ > 64 + 32 * (n_ + m_)) return Status::kIterationLimit;
  }
}

// rx = N u + saturated - gradient, rb = what the rows of the working set miss. Returns the largest of rx over the largest term in it.
double QuadraticProgram::residuals() noexcept {
  const std::size_t dims = factor_.dims();
  double* v = normal_.data();
  for (std::size_t j = 0; j < n_; ++j) v[j] = centred_ ? x_[j] - centre_[j] : x_[j];
  std::fill_n(rx_.data(), dims, 0.0);
  if (diagonal_) {
    for (std::size_t j = 0; j < n_; ++j) rx_[j] = -h_[j] * v[j];
  } else {
    for (std::size_t i = 0; i < n_; ++i) rx_[i] = -dot(h_.data() + i * n_, v, n_);
  }
  double size = largest(rx_.data(), n_);
  if (!centred_) {
    size = std::max(size, largest(g_.data(), n_));
    for (std::size_t j = 0; j < n_; ++j) rx_[j] -= g_[j];
  }
  add_multipliers();
  return size > 0 ? largest(rx_.data(), dims) / size : 0;
}

// The part of the multipliers in rx, and rb.
void QuadraticProgram::add_multipliers() noexcept {
  for (std::size_t k = 0; k < working_.size(); ++k) {
    const Active& a = working_[k];
    if (a.u != 0) add_normal(a, a.u, rx_.data());
    if (a.dimension != kNone) rx_[a.dimension] -= l1_[a.row] + 2 * l2_[a.row] * x_[a.dimension];
    rb_[k] = missing(a);
  }
  if (soft_) {
    for (std::size_t i = 0; i < m_; ++i) {
      if ((state_[i] & kSaturated) != 0) add_normal({i, side_sign(state_[i]), 0, 0, 0, kNone, false}, l1_[i], rx_.data());
    }
  }
}

// One Newton step on the optimality conditions of the working set, from what `residuals` found.
void QuadraticProgram::correct() noexcept {
  const std::size_t q = factor_.active(), dims = factor_.dims();
  double *y = d_.data(), *u = r_.data();
  factor_.rotate(rx_.data(), y);
  factor_.solve_transposed(rb_.data());
  for (std::size_t k = 0; k < q; ++k) {
    u[k] = rb_[k] - y[k];
    y[k] = rb_[k];
  }
  factor_.solve_upper(u);
  factor_.expand(y, z_.data());
  for (std::size_t i = 0; i < dims; ++i) x_[i] += z_[i];
  for (std::size_t k = 0; k < q; ++k) working_[k].u += u[k];
}

// Takes rounding out of x and the multipliers.
QuadraticProgram::Polish QuadraticProgram::polish() noexcept {
  constexpr int kRounds = 3;
  Polish outcome = Polish::kStill;
  for (int round = 0; round < kRounds; ++round) {
    residual_ = residuals();
    bool missed = false;
    for (std::size_t k = 0; k < working_.size(); ++k) {
      const Active& a = working_[k];
      missed = missed || std::abs(rb_[k]) > 0.5 * rounding(a.row, bound_of(a));
    }
    if (residual_ <= 8 * kEpsilon && !missed) break;
    correct();
    outcome = Polish::kMoved;
  }
  double most = 0;
  for (const Active& a : working_) most = std::max(most, std::abs(a.u));
  for (std::size_t k = working_.size(); k-- > 0;) {
    Active& a = working_[k];
    const double out = std::max(a.low - a.u, a.u - a.up);
    if (out <= 0) continue;
    if (out <= 1e-13 * most) {
      a.u = std::clamp(a.u, a.low, a.up);
    } else {
      leave(k, a.u < a.low ? a.low : a.up);
      outcome = Polish::kChanged;
    }
  }
  return outcome;
}

// From a start to the end.
Status QuadraticProgram::run() noexcept {
  constexpr int kPolishings = 20;
  Polish last = Polish::kChanged;
  for (int round = 0; round < kPolishings; ++round) {
    Active broken;
    double gap = 0;
    bool entered = false;
    while (pick(broken, gap)) {
      const Status status = enter(broken, gap);
      if (status != Status::kOptimal) return status;
      if (++iterations_ > 64 + 32 * (n_ + m_)) return Status::kIterationLimit;
      entered = true;
    }
    if (last == Polish::kMoved && !entered) return Status::kOptimal;
    last = polish();
    if (last == Polish::kStill) return Status::kOptimal;
  }
  return Status::kIterationLimit;
}

}  // namespace kizzasi::solve
