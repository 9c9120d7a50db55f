#include "kizzasi/solve/banded_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/solve/dense.h"

namespace kizzasi::solve {
namespace {

constexpr std::size_t kMostIterations = 100, kMostRefinements = 8, kPatience = 6, kMostRounds = 12, kMostTurns = 60;
constexpr double kOptimalTo = 1e-9, kEnough = 1e-11, kPolished = 1e-10, kDigits = 4e-15;
constexpr double kNoSmaller = 1e-6;
constexpr double kShort = 0.995;        // of the way to the nearest edge
constexpr double kPoor = 0.3;           // a step that reaches no further is not corrected
constexpr double kStiff = 1e5;          // of a side while it is polished: each turn leaves about its inverse of the error
constexpr double kRegularised = 1e-12;  // of the largest entries: what keeps pivots away from 0, taken back by refinement

enum class Turn : std::uint8_t { kPredict, kCorrect, kCentre };

Error bad(std::string what, std::string expected) { return {Fault::kBadInput, std::move(what), "banded program", std::move(expected), ""}; }

double largest(std::span<const double> x) { return solve::largest(x.data(), x.size()); }

}  // namespace

Result<BandedProgram> BandedProgram::prepare(BandedProblem problem) {
  BandedProgram c;
  c.p_ = std::move(problem);
  BandedProblem& p = c.p_;
  const std::size_t n = p.variables;
  if (n == 0) return fail(bad("there are no variables", "at least 1"));
  if (p.equality.size() != p.rows.size())
    return fail(bad(fmt::format("{} marks for {} rows", p.equality.size(), p.rows.size()), "one for each row"));
  for (const BandedProblem::Entry& e : p.hessian) {
    if (e.i >= n || e.j > e.i || !std::isfinite(e.value))
      return fail(bad(fmt::format("the curvature has {} at ({}, {})", e.value, e.i, e.j), "finite numbers in the lower triangle"));
  }
  std::vector<std::vector<std::uint32_t>> ends_at(n);  // equalities, by their last variable
  c.scale_.resize(p.rows.size(), 1);
  for (std::uint32_t r = 0; r < p.rows.size(); ++r) {
    SparseRow& row = p.rows[r];
    if (row.index.empty() || row.index.size() != row.value.size())
      return fail(
          bad(fmt::format("row {} has {} indices and {} values", r, row.index.size(), row.value.size()), "as many of both, at least 1"));
    double most = 0;
    std::uint32_t last = 0;
    for (std::size_t k = 0; k < row.index.size(); ++k) {
      if (row.index[k] >= n || !std::isfinite(row.value[k]))
        return fail(bad(fmt::format("row {} has {} for variable {}", r, row.value[k], row.index[k]),
                        fmt::format("finite numbers, variables below {}", n)));
      most = std::max(most, std::abs(row.value[k]));
      last = std::max(last, row.index[k]);
    }
    if (most > 0) c.scale_[r] = std::scalbn(1.0, -std::ilogb(most));
    for (double& v : row.value) v *= c.scale_[r];
    if (p.equality[r] != 0) {
      ends_at[last].push_back(r);
      c.equalities_.push_back(r);
    }
  }
  c.place_.resize(n);
  c.row_place_.assign(p.rows.size(), 0);
  std::uint32_t place = 0;
  for (std::size_t v = 0; v < n; ++v) {
    c.place_[v] = place++;
    for (const std::uint32_t r : ends_at[v]) c.row_place_[r] = place++;
  }
  std::size_t bandwidth = 0;
  for (const BandedProblem::Entry& e : p.hessian) bandwidth = std::max<std::size_t>(bandwidth, c.place_[e.i] - c.place_[e.j]);
  for (std::size_t r = 0; r < p.rows.size(); ++r) {
    const auto [first, last] = std::minmax_element(p.rows[r].index.begin(), p.rows[r].index.end());
    const std::uint32_t end = p.equality[r] != 0 ? c.row_place_[r] : c.place_[*last];
    bandwidth = std::max<std::size_t>(bandwidth, end - c.place_[*first]);
  }
  c.factor_.prepare(place, bandwidth);
  c.system_.resize(place);
  for (auto* v : {&c.g_, &c.x_, &c.dx_, &c.rd_, &c.hx_, &c.best_x_, &c.kept_x_, &c.right_, &c.dual_}) v->assign(n, 0);
  for (auto* v : {&c.equal_bound_, &c.y_, &c.dy_, &c.re_, &c.best_y_, &c.kept_y_, &c.left_}) v->assign(c.equalities_.size(), 0);
  const std::size_t most_sides = 2 * (p.rows.size() - c.equalities_.size());
  c.sides_.reserve(most_sides);
  for (auto* v : {&c.bound_, &c.s_, &c.z_, &c.ds_, &c.dz_, &c.rp_, &c.rc_, &c.weight_, &c.best_s_, &c.best_z_, &c.kept_s_, &c.kept_z_})
    v->assign(most_sides, 0);
  c.multipliers_.assign(p.rows.size(), 0);
  return c;
}

double BandedProgram::value(std::uint32_t row, std::span<const double> x) const noexcept {
  const SparseRow& r = p_.rows[row];
  double sum = 0;
  for (std::size_t k = 0; k < r.index.size(); ++k) sum += r.value[k] * x[r.index[k]];
  return sum;
}

void BandedProgram::add_row(std::uint32_t row, double factor, std::span<double> y) const noexcept {
  const SparseRow& r = p_.rows[row];
  for (std::size_t k = 0; k < r.index.size(); ++k) y[r.index[k]] += factor * r.value[k];
}

void BandedProgram::times_hessian(std::span<const double> x, std::span<double> y) const noexcept {
  std::fill(y.begin(), y.end(), 0.0);
  for (const BandedProblem::Entry& e : p_.hessian) {
    y[e.i] += e.value * x[e.j];
    if (e.i != e.j) y[e.j] += e.value * x[e.i];
  }
}

// With weight_ (sides): H + sum weight a a', equalities beside it, a little regularised.
bool BandedProgram::factor_system() noexcept {
  factor_.clear();
  double most = 0;
  for (const BandedProblem::Entry& e : p_.hessian) {
    factor_.add(place_[e.i], place_[e.j], e.value);
    most = std::max(most, std::abs(e.value));
  }
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const SparseRow& r = p_.rows[sides_[i].row];
    for (std::size_t k = 0; k < r.index.size(); ++k) {
      for (std::size_t l = 0; l <= k; ++l) factor_.add(place_[r.index[k]], place_[r.index[l]], weight_[i] * r.value[k] * r.value[l]);
    }
  }
  if (most == 0) most = 1;
  for (std::size_t v = 0; v < p_.variables; ++v) factor_.add(place_[v], place_[v], kRegularised * most);
  for (const std::uint32_t e : equalities_) {
    const SparseRow& r = p_.rows[e];
    for (std::size_t k = 0; k < r.index.size(); ++k) factor_.add(row_place_[e], place_[r.index[k]], r.value[k]);
    factor_.add(row_place_[e], row_place_[e], -kRegularised / most);
  }
  return factor_.factor();
}

// dx_, dy_ := the solution of the system without what regularises it.
void BandedProgram::solve_system(std::span<const double> dual, std::span<const double> equal) noexcept {
  std::fill(dx_.begin(), dx_.end(), 0.0);
  std::fill(dy_.begin(), dy_.end(), 0.0);
  std::copy(dual.begin(), dual.end(), right_.begin());
  std::copy(equal.begin(), equal.end(), left_.begin());
  double before = kNoBound, wanted = 0;
  for (std::size_t turn = 0; turn <= kMostRefinements; ++turn) {
    const double missing = std::max(largest(right_), largest(left_));
    if (turn == 0) wanted = kDigits * missing;
    if (missing <= wanted || !(missing < 0.5 * before)) break;
    before = missing;
    for (std::size_t v = 0; v < p_.variables; ++v) system_[place_[v]] = right_[v];
    for (std::size_t k = 0; k < equalities_.size(); ++k) system_[row_place_[equalities_[k]]] = left_[k];
    factor_.solve(system_);
    for (std::size_t v = 0; v < p_.variables; ++v) dx_[v] += system_[place_[v]];
    for (std::size_t k = 0; k < equalities_.size(); ++k) dy_[k] += system_[row_place_[equalities_[k]]];
    times_hessian(dx_, hx_);
    for (std::size_t v = 0; v < p_.variables; ++v) right_[v] = dual[v] - hx_[v];
    for (std::size_t i = 0; i < sides_.size(); ++i) add_row(sides_[i].row, -weight_[i] * value(sides_[i].row, dx_), right_);
    for (std::size_t k = 0; k < equalities_.size(); ++k) {
      add_row(equalities_[k], -dy_[k], right_);
      left_[k] = equal[k] - value(equalities_[k], dx_);
    }
  }
}

void BandedProgram::residuals() noexcept {
  times_hessian(x_, rd_);
  for (std::size_t v = 0; v < rd_.size(); ++v) rd_[v] += g_[v];
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const Side& side = sides_[i];
    add_row(side.row, side.sign * z_[i], rd_);
    rp_[i] = side.sign * value(side.row, x_) + s_[i] - bound_[i];
  }
  for (std::size_t k = 0; k < equalities_.size(); ++k) {
    add_row(equalities_[k], y_[k], rd_);
    re_[k] = value(equalities_[k], x_) - equal_bound_[k];
  }
}

// Farkas: multipliers that add the rows up to 0 < 0, for every x whose sizes sum to less than 1 / kNoSmaller of the bounds'.
bool BandedProgram::certified() noexcept {
  std::fill(hx_.begin(), hx_.end(), 0.0);
  double sum = 0, most = 0;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    add_row(sides_[i].row, sides_[i].sign * z_[i], hx_);
    sum += bound_[i] * z_[i];
    most = std::max(most, z_[i]);
  }
  for (std::size_t k = 0; k < equalities_.size(); ++k) {
    add_row(equalities_[k], y_[k], hx_);
    sum += equal_bound_[k] * y_[k];
    most = std::max(most, std::abs(y_[k]));
  }
  return most > 0 && sum < -1e-9 * most * b_size_ && largest(hx_) * b_size_ <= -kNoSmaller * sum;
}

double BandedProgram::stiffness() const noexcept {
  double most = 1;
  for (const BandedProblem::Entry& e : p_.hessian) most = std::max(most, std::abs(e.value));
  return kStiff * most;
}

// The last digits: the sides that the best step leans on become equalities, met by the method of multipliers; sides that then pull are let
// go, broken ones are taken in, and so on (Hintermueller, Ito and Kunisch 2002). Kept where the conditions of an optimum hold better.
bool BandedProgram::polish(double& merit) noexcept {
  const double stiff = stiffness();
  x_ = best_x_;
  y_ = best_y_;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    const bool active = best_z_[i] > best_s_[i];
    weight_[i] = active ? stiff : 0;
    z_[i] = active ? best_z_[i] : 0;
    s_[i] = 0;
  }
  bool good = false;
  double best = std::max(merit, kPolished);
  for (std::size_t round = 0; round < kMostRounds; ++round) {
    if (!factor_system()) return good;
    double least = kNoBound;
    std::size_t idle = 0;
    for (std::size_t turn = 0; turn < kMostTurns; ++turn) {
      residuals();
      double off = largest(rd_) / g_size_;
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        if (weight_[i] == 0) continue;
        if (std::abs(rp_[i]) <= kDigits * b_size_) rp_[i] = 0;  // rounding; times the weight it would blur the multipliers
        off = std::max(off, std::abs(rp_[i]) / b_size_);
      }
      idle = off < 0.9 * least ? 0 : idle + 1;
      least = std::min(least, off);
      if (off <= kDigits || idle > 3) break;
      for (std::size_t v = 0; v < rd_.size(); ++v) dual_[v] = -rd_[v];
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        if (weight_[i] > 0) add_row(sides_[i].row, -weight_[i] * sides_[i].sign * rp_[i], dual_);
      }
      for (double& v : re_) v = -v;
      solve_system(dual_, re_);
      for (std::size_t v = 0; v < x_.size(); ++v) x_[v] += dx_[v];
      for (std::size_t k = 0; k < y_.size(); ++k) y_[k] += dy_[k];
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        if (weight_[i] > 0) z_[i] += weight_[i] * (rp_[i] + sides_[i].sign * value(sides_[i].row, dx_));
      }
    }
    residuals();
    double worst = std::max(largest(rd_) / g_size_, largest(re_) / b_size_);
    for (std::size_t i = 0; i < sides_.size(); ++i)
      worst = std::max({worst, -z_[i] / g_size_, (weight_[i] > 0 ? std::abs(rp_[i]) : rp_[i]) / b_size_});
    if (!std::isfinite(worst)) return good;
    // No product of slack and multiplier is left, so this says more about x than the same number does before.
    if (worst < best) {
      best = worst;
      good = true;
      merit = std::min(worst, merit);
      best_x_ = x_;
      best_y_ = y_;
      for (std::size_t i = 0; i < sides_.size(); ++i) {
        best_s_[i] = weight_[i] > 0 ? 0 : std::max(0.0, -rp_[i]);
        best_z_[i] = std::max(0.0, z_[i]);
      }
    }
    bool changed = false;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const bool active = weight_[i] > 0 ? z_[i] > -kDigits * g_size_ : rp_[i] > kDigits * b_size_;
      changed = changed || active != (weight_[i] > 0);
      weight_[i] = active ? stiff : 0;
      if (!active) z_[i] = 0;
    }
    if (!changed) break;
  }
  return good;
}

Status BandedProgram::publish(double merit) noexcept {
  if (!(merit <= kOptimalTo)) return Status::kIterationLimit;
  x_.swap(best_x_);
  y_.swap(best_y_);
  s_.swap(best_s_);
  z_.swap(best_z_);
  std::fill(multipliers_.begin(), multipliers_.end(), 0.0);
  for (std::size_t i = 0; i < sides_.size(); ++i) multipliers_[sides_[i].row] += sides_[i].sign * z_[i] * scale_[sides_[i].row];
  for (std::size_t k = 0; k < equalities_.size(); ++k) multipliers_[equalities_[k]] = y_[k] * scale_[equalities_[k]];
  return Status::kOptimal;
}

Status BandedProgram::solve(std::span<const double> g, std::span<const double> lo, std::span<const double> hi) noexcept {
  iterations_ = 0;
  const std::size_t rows = p_.rows.size();
  if (g.size() != p_.variables || lo.size() != rows || hi.size() != rows) return Status::kBadInput;
  for (const double v : g) {
    if (!std::isfinite(v)) return Status::kBadInput;
  }
  std::copy(g.begin(), g.end(), g_.begin());
  sides_.clear();
  std::size_t equal = 0, m = 0;
  b_size_ = 1;
  for (std::uint32_t r = 0; r < rows; ++r) {
    if (std::isnan(lo[r]) || std::isnan(hi[r])) return Status::kBadInput;
    if (p_.equality[r] != 0) {
      if (!std::isfinite(lo[r]) || lo[r] != hi[r]) return Status::kBadInput;
      equal_bound_[equal++] = scale_[r] * lo[r];
      b_size_ = std::max(b_size_, std::abs(scale_[r] * lo[r]));
      continue;
    }
    if (lo[r] > hi[r] || lo[r] == kNoBound || hi[r] == -kNoBound) return Status::kInfeasible;
    for (const double sign : {1.0, -1.0}) {
      const double bound = sign > 0 ? hi[r] : -lo[r];
      if (bound == kNoBound) continue;
      sides_.push_back({r, sign});
      bound_[m++] = scale_[r] * bound;
      b_size_ = std::max(b_size_, std::abs(scale_[r] * bound));
    }
  }
  g_size_ = std::max(1.0, largest(g_));

  // The start: rows as springs (as in CVXOPT), then slack and multipliers made positive.
  for (std::size_t i = 0; i < m; ++i) weight_[i] = 1;
  if (!factor_system()) return Status::kBadInput;
  for (std::size_t v = 0; v < g_.size(); ++v) rd_[v] = -g_[v];
  for (std::size_t i = 0; i < m; ++i) add_row(sides_[i].row, sides_[i].sign * bound_[i], rd_);
  solve_system(rd_, equal_bound_);
  std::copy(dx_.begin(), dx_.end(), x_.begin());
  std::copy(dy_.begin(), dy_.end(), y_.begin());
  double least = kNoBound, most = -kNoBound;
  for (std::size_t i = 0; i < m; ++i) {
    s_[i] = bound_[i] - sides_[i].sign * value(sides_[i].row, x_);
    least = std::min(least, s_[i]);
    most = std::max(most, s_[i]);
  }
  for (std::size_t i = 0; i < m; ++i) {
    z_[i] = -s_[i] + (most > -1e-8 ? 1 + most : 0);
    s_[i] += least < 1e-8 ? 1 - least : 0;
  }

  double best = kNoBound;
  double enough = kEnough;
  bool polished = false;
  std::size_t worse = 0;
  for (; iterations_ < kMostIterations; ++iterations_) {
    residuals();
    double gap = 0;
    for (std::size_t i = 0; i < m; ++i) gap += s_[i] * z_[i];
    times_hessian(x_, hx_);
    const double objective = 0.5 * dot(hx_.data(), x_.data(), x_.size()) + dot(g_.data(), x_.data(), x_.size());
    const double merit = std::max(
        {largest(rd_) / g_size_, solve::largest(rp_.data(), m) / b_size_, largest(re_) / b_size_, gap / (1 + std::abs(objective))});
    if (!std::isfinite(merit)) break;
    if (merit < best) {
      worse = merit < 0.9 * best ? 0 : worse + 1;
      best = merit;
      best_x_ = x_;
      best_y_ = y_;
      best_s_ = s_;
      best_z_ = z_;
    } else {
      ++worse;
    }
    if (best <= enough || (best <= kOptimalTo && worse >= kPatience)) {
      const bool last = best > enough || enough < kDigits;
      x_.swap(kept_x_);
      y_.swap(kept_y_);
      s_.swap(kept_s_);
      z_.swap(kept_z_);
      polished = polish(best) || last;
      if (polished) break;
      x_.swap(kept_x_);
      y_.swap(kept_y_);
      s_.swap(kept_s_);
      z_.swap(kept_z_);
      residuals();
      enough *= 1e-2;
    }
    if (certified()) return Status::kInfeasible;
    for (std::size_t i = 0; i < m; ++i) weight_[i] = z_[i] / s_[i];
    if (!factor_system()) break;

    const double mu = m == 0 ? 0 : gap / static_cast<double>(m);
    for (std::size_t i = 0; i < m; ++i) rc_[i] = s_[i] * z_[i];
    for (auto& v : re_) v = -v;
    double reach = 1;
    for (const Turn turn : {Turn::kPredict, Turn::kCorrect, Turn::kCentre}) {
      for (std::size_t v = 0; v < rd_.size(); ++v) dual_[v] = -rd_[v];
      for (std::size_t i = 0; i < m; ++i) add_row(sides_[i].row, -sides_[i].sign * (-rc_[i] / s_[i] + weight_[i] * rp_[i]), dual_);
      solve_system(dual_, re_);
      reach = m == 0 ? 1 / kShort : 1;
      for (std::size_t i = 0; i < m; ++i) {
        ds_[i] = -rp_[i] - sides_[i].sign * value(sides_[i].row, dx_);
        dz_[i] = (-rc_[i] - z_[i] * ds_[i]) / s_[i];
        if (ds_[i] < 0) reach = std::min(reach, -s_[i] / ds_[i]);
        if (dz_[i] < 0) reach = std::min(reach, -z_[i] / dz_[i]);
      }
      if (m == 0 || turn == Turn::kCentre || (turn == Turn::kCorrect && reach > kPoor)) break;
      if (turn == Turn::kCorrect) {  // the correction of second order can lead in circles: back towards the middle without it
        for (std::size_t i = 0; i < m; ++i) rc_[i] = s_[i] * z_[i] - 0.5 * mu;
        continue;
      }
      double after = 0;
      for (std::size_t i = 0; i < m; ++i) after += (s_[i] + reach * ds_[i]) * (z_[i] + reach * dz_[i]);
      const double share = after / gap, centred = share * share * share * mu;
      for (std::size_t i = 0; i < m; ++i) rc_[i] += ds_[i] * dz_[i] - centred;
    }
    const double step = std::min(1.0, kShort * reach);
    for (std::size_t v = 0; v < x_.size(); ++v) x_[v] += step * dx_[v];
    for (std::size_t k = 0; k < y_.size(); ++k) y_[k] += step * dy_[k];
    for (std::size_t i = 0; i < m; ++i) {
      s_[i] += step * ds_[i];
      z_[i] += step * dz_[i];
    }
  }
  if (!polished && std::isfinite(best)) polish(best);
  return publish(best);
}

// With w = dx / d(dx) the adjoint: H w + A' v = dx over the active rows, A w = 0; met by the method of multipliers.
void BandedProgram::gradient(std::span<const double> dx, std::span<double> by_g, std::span<double> by_bound) noexcept {
  const double stiff = stiffness();
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    weight_[i] = z_[i] > s_[i] ? stiff : 0;
    rc_[i] = 0;
  }
  std::fill(by_g.begin(), by_g.end(), 0.0);
  std::fill(by_bound.begin(), by_bound.end(), 0.0);
  if (!factor_system()) return;
  std::fill(re_.begin(), re_.end(), 0.0);
  double off = kNoBound;
  for (std::size_t turn = 0; turn < kMostTurns && off > kDigits * solve::largest(dx_.data(), dx_.size()); ++turn) {
    std::copy(dx.begin(), dx.end(), dual_.begin());
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (weight_[i] > 0) add_row(sides_[i].row, -rc_[i], dual_);
    }
    solve_system(dual_, re_);
    off = 0;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (weight_[i] == 0) continue;
      const double along = value(sides_[i].row, dx_);
      rc_[i] += weight_[i] * along;
      off = std::max(off, std::abs(along));
    }
  }
  for (std::size_t v = 0; v < by_g.size(); ++v) by_g[v] = -dx_[v];
  for (std::size_t i = 0; i < sides_.size(); ++i) by_bound[sides_[i].row] += rc_[i] * scale_[sides_[i].row];
  for (std::size_t k = 0; k < equalities_.size(); ++k) by_bound[equalities_[k]] = dy_[k] * scale_[equalities_[k]];
}

}  // namespace kizzasi::solve
