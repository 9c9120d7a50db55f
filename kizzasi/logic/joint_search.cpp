// The nearest point of a group: branches by depth first with the distance as bound, each a quadratic program, each answer made exact.
#include <algorithm>
#include <cmath>

#include "kizzasi/logic/joint.h"

namespace kizzasi::logic {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEps = 2.220446049250313e-16;
constexpr int kMostTurns = 160;      // of one program, until its answer is exact
constexpr double kNear = 1e-12;      // of its size: what a curved condition misses by rounding and the last planes, not in earnest
constexpr double kNearSoft = 1e-10;  // of its size: by how much a soft curve's slack may be less than what it is broken by
constexpr double kHeavy = 1e10;      // how much dearer a broken condition is than distance where it cannot hold
constexpr double kSizes[] = {1e18, 1e12, 1e8, 1e4,
                             1e2,  8,    1,   0};  // values beyond so many units are taken as that, where digits would not suffice

}  // namespace

void Joint::Look::put(const JointGroup& group, std::span<const double> x) noexcept {
  for (std::size_t k = 0; k < group.channels.size(); ++k) w_.frame[group.channels[k]] = x[k];
}

bool Joint::Look::clause_holds(std::uint32_t c) noexcept {
  const JointClause& clause = j_.clauses_[c];
  for (std::size_t b = 0; b < clause.branches.size(); ++b) {
    if (w_.live[j_.first_branch_[c] + b] == 0) continue;
    const bool all = std::all_of(clause.branches[b].begin(), clause.branches[b].end(), [&](std::uint32_t literal) {
      const std::int8_t standing = w_.standing[literal];
      return standing == kTrue || standing == kUnknown || literal_holds(literal, false);
    });
    if (all) return true;
  }
  return false;
}

// --- Search ------------------------------------------------------------------------------------------------------------------------------

bool Joint::Look::search(const JointGroup& group) noexcept {
  w_.found = false;
  w_.best_cost = kInfinity;
  for (const std::uint32_t c : group.clauses) {
    std::int32_t only = -2;
    for (std::size_t b = 0; b < j_.clauses_[c].branches.size(); ++b) {
      if (w_.live[j_.first_branch_[c] + b] != 0) only = only == -2 ? static_cast<std::int32_t>(b) : -1;
    }
    w_.chosen[c] = only;
  }
  descend(group);
  return w_.found;
}

void Joint::Look::descend(const JointGroup& group) noexcept {
  double cost = 0;
  if (!solve(group, cost) || (w_.found && cost >= w_.best_cost)) return;
  put(group, w_.x);
  for (const std::uint32_t c : group.clauses) {
    if (w_.kept[c] == 0 || w_.chosen[c] != -1 || clause_holds(c)) continue;
    for (std::size_t b = 0; b < j_.clauses_[c].branches.size(); ++b) {
      if (w_.live[j_.first_branch_[c] + b] == 0) continue;
      w_.chosen[c] = static_cast<std::int32_t>(b);
      descend(group);
    }
    w_.chosen[c] = -1;
    return;
  }
  w_.found = true;
  w_.best_cost = cost;
  std::copy(w_.x.begin(), w_.x.end(), w_.best.begin());
}

// The nearest point of the branches that are chosen, exact on the grid.
bool Joint::Look::solve(const JointGroup& group, double& cost) noexcept {
  w_.active.clear();
  for (const std::uint32_t c : group.clauses) {
    if (w_.kept[c] == 0 || w_.chosen[c] < 0) continue;
    for (const std::uint32_t literal : j_.clauses_[c].branches[static_cast<std::size_t>(w_.chosen[c])]) {
      if (w_.standing[literal] >= kRow) w_.active.push_back(literal);
      w_.margins[literal] = w_.shifts[literal] = 0;
    }
  }
  const std::size_t n = group.channels.size();
  for (int turn = 0; turn < kMostTurns; ++turn) {
    if (!approach(group)) return false;
    for (std::size_t k = 0; k < n; ++k) {
      w_.x[k] = std::clamp(j_.grid_.nearest(std::clamp(w_.x[k], w_.lower[k], w_.upper[k])), w_.lower[k], w_.upper[k]);
    }
    put(group, w_.x);
    if (!polish(group)) continue;
    cost = 0;
    for (std::size_t k = 0; k < n; ++k) cost += w_.weight[k] * (w_.x[k] - w_.y[k]) * (w_.x[k] - w_.y[k]);
    if (soft_) {
      for (const std::uint32_t c : group.clauses) {
        const ConstraintText& text = j_.constraints_[j_.clauses_[c].constraint].text;
        if (!text.soft || w_.kept[c] == 0 || w_.chosen[c] < 0) continue;
        for (const std::uint32_t literal : j_.clauses_[c].branches[static_cast<std::size_t>(w_.chosen[c])]) {
          if (w_.standing[literal] < kRow || literal_holds(literal, false)) continue;
          cost += text.weight * gap(literal) * gap(literal);
        }
      }
    }
    return true;
  }
  return false;
}

// One program: bounds, planes, and the planes that stand for curves so far. Leaves x, lower and upper.
bool Joint::Look::approach(const JointGroup& group) noexcept {
  const std::size_t n = group.unknowns(), channels = group.channels.size();
  std::fill_n(w_.lower.begin(), channels, -kInfinity);
  std::fill_n(w_.upper.begin(), n, kInfinity);
  for (std::size_t k = channels; k < n; ++k) {
    w_.y[k] = w_.lower[k] = 0;
    w_.weight[k] = j_.constraints_[j_.constraint_of_literal_[group.slacks[k - channels]]].text.weight;
  }
  std::size_t m = 0;
  bool any_soft = false;
  for (const std::uint32_t index : w_.active) {
    const JointLiteral& literal = j_.literals_[index];
    const ConstraintText& text = j_.constraints_[j_.constraint_of_literal_[index]].text;
    const double* row = w_.rows.data() + index * j_.widest_;
    const std::int8_t standing = w_.standing[index];
    if (standing == kCurve) continue;
    if (standing == kFrozen) {
      for (const std::uint32_t i : literal.order) {
        const Node& node = j_.present_.graph().nodes[i];
        const Node& operand = j_.present_.graph().nodes[node.a];
        if (node.kind != NodeKind::kRate || operand.kind != NodeKind::kChannel || j_.variable_of_[operand.a] < 0) continue;
        const auto k = static_cast<std::size_t>(j_.variable_of_[operand.a]);
        w_.lower[k] = std::max(w_.lower[k], w_.recalled[i * Present::kRecalled]);
        w_.upper[k] = std::min(w_.upper[k], w_.recalled[i * Present::kRecalled]);
      }
      continue;
    }
    if (standing == kEnds && !text.soft) {
      std::size_t k = 0;
      while (row[k] == 0) ++k;
      const double inside = w_.margins[index] / std::abs(row[k]);
      const double high = inside == 0 ? w_.high[index] : j_.grid_.floor(w_.high[index] - inside);
      const double low = inside == 0 ? w_.low[index] : j_.grid_.ceil(w_.low[index] + inside);
      w_.lower[k] = std::max(w_.lower[k], low);
      w_.upper[k] = std::min(w_.upper[k], high);
      continue;
    }
    std::copy_n(row, n, w_.a.begin() + static_cast<std::ptrdiff_t>(m * n));
    const double edge = -w_.constants[index];
    if (literal.relation == NodeKind::kEqual || standing == kStill) {
      w_.lo[m] = w_.hi[m] = edge + w_.shifts[index] + (standing == kGiven ? w_.relaxed[index] : 0);
    } else {
      w_.lo[m] = -kInfinity;
      w_.hi[m] = edge - w_.margins[index] + (standing == kGiven ? w_.relaxed[index] : 0);
    }
    const bool soft = text.soft || standing == kPaying;
    any_soft = any_soft || soft;
    w_.l1[m] = soft ? 0 : kInfinity;
    w_.l2[m] = standing == kPaying ? heaviest(group) * kHeavy : soft ? text.weight / 2 : 0;
    ++m;
  }
  for (std::size_t k = 0; k < n; ++k) {
    if (w_.lower[k] > w_.upper[k] || w_.lower[k] == kInfinity || w_.upper[k] == -kInfinity) return false;
  }
  for (std::size_t i = 0; i < w_.cut_count; ++i) {
    const std::uint32_t index = w_.cut_literal[i];
    if (std::find(w_.active.begin(), w_.active.end(), index) == w_.active.end()) continue;
    std::copy_n(w_.cuts.begin() + static_cast<std::ptrdiff_t>(i * j_.widest_), n, w_.a.begin() + static_cast<std::ptrdiff_t>(m * n));
    w_.lo[m] = -kInfinity;
    w_.hi[m] = w_.cut_ends[i] - w_.margins[index];
    w_.l1[m] = kInfinity;
    w_.l2[m] = 0;
    ++m;
  }
  if (m == 0) {
    for (std::size_t k = 0; k < n; ++k) w_.x[k] = std::clamp(w_.y[k], w_.lower[k], w_.upper[k]);
    return true;
  }
  solve::QuadraticProgram& qp = w_.programs[group.number];
  if (qp.set_diagonal(std::span(w_.weight).subspan(0, n)) != solve::Curvature::kPositive) return false;
  if (!qp.set_rows(std::span(w_.a).subspan(0, m * n), m)) return false;
  if (any_soft && !qp.set_softness(std::span(w_.l1).subspan(0, m), std::span(w_.l2).subspan(0, m))) return false;
  solve::LinearTerms terms;
  terms.centre = std::span(w_.y).subspan(0, n);
  terms.lo = std::span(w_.lo).subspan(0, m);
  terms.hi = std::span(w_.hi).subspan(0, m);
  terms.lower = std::span(w_.lower).subspan(0, n);
  terms.upper = std::span(w_.upper).subspan(0, n);
  if (qp.solve(terms) != solve::Status::kOptimal) return false;
  std::copy_n(qp.x().begin(), n, w_.x.begin());
  return true;
}

double Joint::Look::heaviest(const JointGroup& group) const noexcept {
  double most = 0;
  for (std::size_t k = 0; k < group.channels.size(); ++k) most = std::max(most, w_.weight[k]);
  return most;
}

// True where x obeys everything that is chosen, as it is written. Else what is broken is asked for with a growing margin.
bool Joint::Look::polish(const JointGroup& group) noexcept {
  bool good = true;
  for (const std::uint32_t index : w_.active) {
    const JointLiteral& literal = j_.literals_[index];
    const std::int8_t standing = w_.standing[index];
    if (standing == kCurve && literal.slack >= 0) {
      if (literal_holds(index, false) || gap(index) <= w_.x[static_cast<std::size_t>(literal.slack)] + kNearSoft * size(index)) continue;
      add_cut(group, index);
      good = false;
      continue;
    }
    if (standing == kPaying || j_.constraints_[j_.constraint_of_literal_[index]].text.soft) continue;
    if (literal_holds(index, true)) continue;
    const double by = gap(index), scale = size(index);
    if (standing == kGiven && (literal.relation == NodeKind::kEqual || by <= w_.relaxed[index] + 1e-9 * scale)) continue;
    if ((literal.relation == NodeKind::kEqual && standing == kRow) || standing == kStill) {
      const double off = difference(index);
      if (repair_equality(group, index)) continue;
      w_.shifts[index] -= off;
      good = false;
      continue;
    }
    good = false;
    if (standing == kCurve) {
      add_cut(group, index);
      if (by > kNear * scale && j_.grid_.all_doubles()) continue;
    }
    double& margin = w_.margins[index];
    margin =
        2 * margin + (by > 0 ? by : 0) + kEps / 2 * scale + literal.rounding * kEps * scale + std::numeric_limits<double>::denorm_min();
    if (!j_.grid_.all_doubles()) margin = std::min(margin, most_rounded(index) + 4 * kEps * scale);
  }
  return good;
}

// What rounding to decimals can cost: half a step of each channel, times its slope.
double Joint::Look::most_rounded(std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  for (const std::uint32_t channel : literal.variables) w_.slopes[channel] = 0;
  j_.present_.add_slopes(literal.left, 1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  j_.present_.add_slopes(literal.right, -1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  double most = 0;
  for (const std::uint32_t channel : literal.variables) {
    const double x = w_.x[static_cast<std::size_t>(j_.variable_of_[channel])];
    most += std::abs(w_.slopes[channel]) * (j_.grid_.above(x) - x) / 2;
  }
  return most;
}

// Rounding alone: one channel takes what is missing, if all else then holds.
bool Joint::Look::repair_equality(const JointGroup& group, std::uint32_t index) noexcept {
  const double* row = w_.rows.data() + index * j_.widest_;
  const double by = difference(index);
  for (std::size_t k = 0; k < group.channels.size(); ++k) {
    if (row[k] == 0) continue;
    const double before = w_.x[k], moved = j_.grid_.nearest(before - by / row[k]);
    for (const double x : {moved, j_.grid_.above(moved), j_.grid_.below(moved)}) {
      if (x < w_.lower[k] || x > w_.upper[k]) continue;
      w_.x[k] = w_.frame[group.channels[k]] = x;
      const bool all = std::all_of(w_.active.begin(), w_.active.end(), [&](std::uint32_t other) {
        const std::int8_t standing = w_.standing[other];
        return standing == kPaying || standing == kGiven || j_.constraints_[j_.constraint_of_literal_[other]].text.soft ||
               literal_holds(other, true);
      });
      if (all) return true;
    }
    w_.x[k] = w_.frame[group.channels[k]] = before;
  }
  return false;
}

// The plane that cuts x off and keeps all that obeys: of a convex f, f(x) + slope . (z - x) <= 0.
void Joint::Look::add_cut(const JointGroup& group, std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  for (const std::uint32_t channel : literal.variables) w_.slopes[channel] = 0;
  j_.present_.add_slopes(literal.left, 1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  j_.present_.add_slopes(literal.right, -1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  const std::size_t at = w_.cut_next;
  double* row = w_.cuts.data() + at * j_.widest_;
  std::fill_n(row, group.unknowns(), 0.0);
  if (literal.slack >= 0) row[literal.slack] = -1;
  double end = -gap(index);
  for (const std::uint32_t channel : literal.variables) {
    const auto k = static_cast<std::size_t>(j_.variable_of_[channel]);
    row[k] = w_.slopes[channel];
    end += w_.slopes[channel] * w_.x[k];
  }
  w_.cut_ends[at] = end;
  w_.cut_literal[at] = index;
  w_.cut_next = at + 1 == kMostCuts ? 0 : at + 1;
  w_.cut_count = std::max(w_.cut_count, at + 1);
}

// --- What the guard asks for -------------------------------------------------------------------------------------------------------------

bool Joint::Look::settle(std::span<double> value) noexcept {
  bool all = true;
  for (const JointGroup& group : j_.groups_) {
    const std::size_t n = group.channels.size();
    double largest_unit = 0;
    for (std::size_t k = 0; k < n; ++k) {
      w_.y[k] = value[group.channels[k]];
      largest_unit = std::max(largest_unit, std::abs(w_.y[k]) / std::max(1.0, std::sqrt(j_.squared_scale_[group.channels[k]])));
    }
    bool found = false;
    for (const double most : kSizes) {
      if (most != kSizes[0] && most >= largest_unit) continue;
      for (std::size_t k = 0; k < n; ++k) {
        const double unit = most * std::max(1.0, std::sqrt(j_.squared_scale_[group.channels[k]]));
        w_.y[k] = std::clamp(value[group.channels[k]], -unit, unit);
      }
      see(group, value, true);
      found = search(group);
      if (found) break;
    }
    if (!found) {  // what stood last may obey by itself, to the last bit
      for (std::size_t k = 0; k < n; ++k) {
        const double last = past_.value(group.channels[k], From::kCommanded);
        w_.y[k] = std::isfinite(last) ? last : 0;
      }
      see(group, value, true);
      found = search(group);
    }
    if (!found) {
      for (std::size_t k = 0; k < n; ++k) w_.y[k] = std::clamp(value[group.channels[k]], -kSizes[0], kSizes[0]);
      all = false;
      see(group, value, true);
      found = give_way(group);
    }
    if (!found) continue;
    for (std::size_t k = 0; k < n; ++k) value[group.channels[k]] = w_.best[k];
  }
  return all;
}

// Not all can hold: the clauses in their order, each kept where it can hold with those before it; else as nearly as it can.
bool Joint::Look::give_way(const JointGroup& group) noexcept {
  std::copy(w_.kept.begin(), w_.kept.end(), w_.wanted.begin());
  for (const std::uint32_t c : group.clauses) w_.kept[c] = 0;
  bool any = search(group);
  for (const std::uint32_t c : group.clauses) {
    if (w_.wanted[c] == 0) continue;
    w_.kept[c] = 1;
    if (search(group)) {
      any = true;
      continue;
    }
    const std::vector<std::uint32_t>* branch = nullptr;
    for (std::size_t b = 0; b < j_.clauses_[c].branches.size(); ++b) {
      if (w_.live[j_.first_branch_[c] + b] == 0) continue;
      branch = branch == nullptr ? &j_.clauses_[c].branches[b] : nullptr;
      if (branch == nullptr) break;
    }
    bool plain = branch != nullptr;
    if (plain) {
      for (const std::uint32_t literal : *branch) {
        const std::int8_t standing = w_.standing[literal];
        plain = plain && (standing == kRow || standing == kEnds || standing == kTrue || standing == kUnknown);
      }
    }
    if (plain) {
      for (const std::uint32_t literal : *branch) {
        if (w_.standing[literal] == kRow || w_.standing[literal] == kEnds) w_.standing[literal] = kPaying;
      }
      plain = search(group);
      put(group, w_.best);
      for (const std::uint32_t literal : *branch) {
        if (w_.standing[literal] != kPaying) continue;
        j_.present_.evaluate(j_.literals_[literal].order, w_.recalled, w_.frame, w_.values);
        const double by = gap(literal);
        w_.relaxed[literal] = j_.literals_[literal].relation == NodeKind::kEqual ? by : std::max(by, 0.0);
        w_.standing[literal] = kGiven;
      }
      plain = plain && search(group);
    }
    if (!plain) w_.kept[c] = 0;
    if (!plain) (void)search(group);
  }
  return search(group) || any;
}

std::optional<std::uint32_t> Joint::Look::conflict(const JointGroup& group, std::span<const double> given) noexcept {
  for (std::size_t k = 0; k < group.channels.size(); ++k) w_.y[k] = 0;
  see(group, given, false);
  if (search(group)) return {};
  std::copy(w_.kept.begin(), w_.kept.end(), w_.wanted.begin());
  for (const std::uint32_t c : group.clauses) w_.kept[c] = 0;
  for (const std::uint32_t c : group.clauses) {
    if (w_.wanted[c] == 0) continue;
    w_.kept[c] = 1;
    if (!search(group)) return c;
  }
  return {};
}

void Joint::Look::reach(std::size_t channel, double& low, double& high) noexcept {
  const std::span<const double> around = w_.sent;
  constexpr double kFar = 1e6, kLight = 1e-6;
  const JointGroup& group = j_.groups_[static_cast<std::size_t>(j_.group_of_[channel])];
  const std::size_t n = group.channels.size(), own = static_cast<std::size_t>(j_.variable_of_[channel]);
  low = -kInfinity;
  high = kInfinity;
  double top = std::sqrt(j_.squared_scale_[channel]);
  for (std::size_t k = 0; k < n; ++k) {
    w_.y[k] = around[group.channels[k]];
    top = std::max(top, std::abs(w_.y[k]));
  }
  see(group, around, false);
  for (const std::uint32_t c : group.clauses) {
    for (const auto& branch : j_.clauses_[c].branches) {
      for (const std::uint32_t literal : branch) {
        if (w_.standing[literal] != kEnds) continue;
        for (const double end : {w_.low[literal], w_.high[literal]}) {
          if (std::isfinite(end)) top = std::max(top, std::abs(end));
        }
      }
    }
  }
  const double before = w_.y[own], far = kFar * std::max(top, 1e-3);
  for (const bool up : {false, true}) {
    w_.y[own] = up ? far : -far;
    for (std::size_t k = 0; k < n; ++k) w_.weight[k] = (k == own ? 1 : kLight) / j_.squared_scale_[group.channels[k]];
    if (search(group)) {
      const double end = w_.best[own];
      if (std::abs(end) < far / 2) (up ? high : low) = end;
    } else {
      low = high = j_.grid_.nearest(before);
      return;
    }
  }
}

}  // namespace kizzasi::logic
