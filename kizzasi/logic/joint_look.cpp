// One frame as it stands: what holds of it, and what each literal asks of the values now.
#include <algorithm>
#include <cmath>

#include "kizzasi/logic/joint.h"

namespace kizzasi::logic {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEps = 2.220446049250313e-16;

}  // namespace

Joint::Look::Look(const Joint& joint, std::span<const std::byte> state, const Past& past, std::int64_t time_ns) noexcept
    : j_(joint), w_(joint.take()), state_(state), past_(past) {
  j_.present_.recall(j_.numbers(state), past, time_ns, w_.recalled);
}

Joint::Look::~Look() { w_.busy.store(false, std::memory_order_release); }

// --- Truth -------------------------------------------------------------------------------------------------------------------------------

Truth Joint::Look::truth(std::uint32_t index, std::span<const double> frame) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  if (literal.kind == Literal::Kind::kKnown) return j_.known(literal, state_);
  if (literal.ahead > 0 || literal.ahead_of >= 0) return Truth::kTrue;  // nothing is broken yet
  j_.present_.evaluate(literal.order, w_.recalled, frame, w_.values);
  const Verdict verdict = j_.relation(literal, w_.values);
  return verdict > 0 ? Truth::kTrue : verdict < 0 ? Truth::kFalse : Truth::kUnknown;
}

// left - right, of what `truth` or `evaluate` left.
double Joint::Look::gap(std::uint32_t literal) noexcept {
  return w_.values[j_.literals_[literal].left] - w_.values[j_.literals_[literal].right];
}

double Joint::Look::size(std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  return j_.present_.magnitude(literal.left, w_.values) + j_.present_.magnitude(literal.right, w_.values);
}

Truth Joint::Look::judge(std::size_t i, std::span<const double> frame, double& excess) noexcept {
  Truth all = Truth::kTrue;
  excess = 0;
  for (const std::uint32_t c : j_.clauses_of_[i]) {
    Truth clause = Truth::kFalse;
    double nearest = kInfinity;
    Open open;
    if (j_.clauses_[c].promise >= 0) {
      open = j_.open(j_.promises_[static_cast<std::size_t>(j_.clauses_[c].promise)], state_);
      if (!open.any) continue;
    }
    for (std::size_t b = 0; b < j_.clauses_[c].branches.size(); ++b) {
      const auto& branch = j_.clauses_[c].branches[b];
      if (j_.clauses_[c].promise >= 0 &&
          !j_.is_live(open, j_.promises_[static_cast<std::size_t>(j_.clauses_[c].promise)], j_.clauses_[c].deeds[b])) {
        continue;
      }
      Truth part = Truth::kTrue;
      double worst = 0;
      for (const std::uint32_t literal : branch) {
        const Truth one = truth(literal, frame);
        if (one == Truth::kFalse) {
          const double by = j_.literals_[literal].kind == Literal::Kind::kKnown ? kInfinity : gap(literal);
          worst = std::isnan(by) ? kInfinity : std::max(worst, std::abs(by));
        }
        if (one == Truth::kFalse || (one == Truth::kUnknown && part == Truth::kTrue)) part = one;
      }
      if (part == Truth::kFalse) nearest = std::min(nearest, worst);
      if (part == Truth::kTrue || (part == Truth::kUnknown && clause == Truth::kFalse)) clause = part;
      if (clause == Truth::kTrue) break;
    }
    if (clause == Truth::kFalse) {
      all = Truth::kFalse;
      excess = std::max(excess, nearest);
    } else if (clause == Truth::kUnknown && all == Truth::kTrue) {
      all = Truth::kUnknown;
    }
  }
  return all;
}

// --- What each literal is at this moment -------------------------------------------------------------------------------------------------

// As `relation`, and inside by what others may round otherwise.
bool Joint::Look::literal_holds(std::uint32_t index, bool with_margin) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  if (frames_ahead(index) == 0) return holds_now(index, with_margin);
  if (w_.standing[index] != kEnds) return true;
  const double x = w_.frame[literal.variables.front()];
  return x >= w_.low[index] && x <= w_.high[index];
}

bool Joint::Look::holds_now(std::uint32_t index, bool with_margin) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  j_.present_.evaluate(literal.order, w_.recalled, w_.frame, w_.values);
  if (j_.relation(literal, w_.values) <= 0) return false;
  return !with_margin || literal.rounding == 0 || literal.relation == NodeKind::kEqual ||
         gap(index) <= -literal.rounding * kEps * size(index);
}

std::int64_t Joint::Look::frames_ahead(std::uint32_t index) const noexcept {
  const JointLiteral& literal = j_.literals_[index];
  return literal.ahead_of >= 0 ? w_.left[static_cast<std::size_t>(literal.ahead_of)] : literal.ahead;
}

// With so many frames left, a channel must be no further from its goal than its rate brings it there; a little less, for rounding.
void Joint::Look::widen(std::uint32_t index) noexcept {
  if (w_.standing[index] != kEnds) {
    if (w_.standing[index] > kTrue) w_.standing[index] = kTrue;
    return;
  }
  const std::uint32_t channel = j_.literals_[index].variables.front();
  const double frames = static_cast<double>(frames_ahead(index)) * (1 - 1e-12);
  w_.high[index] = j_.grid_.floor(w_.high[index] + frames * j_.fall_[channel]);
  w_.low[index] = j_.grid_.ceil(w_.low[index] - frames * j_.rise_[channel]);
}

void Joint::Look::see_literal(const JointGroup& group, std::uint32_t index) noexcept {
  see_now(group, index);
  if (frames_ahead(index) > 0) widen(index);
}

void Joint::Look::see_now(const JointGroup& group, std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  w_.margins[index] = w_.shifts[index] = w_.relaxed[index] = 0;
  if (literal.kind == Literal::Kind::kKnown) {
    const Truth known = j_.known(literal, state_);
    w_.standing[index] = known == Truth::kTrue ? kTrue : known == Truth::kFalse ? kFalse : kUnknown;
    return;
  }
  j_.present_.evaluate(literal.order, w_.recalled, w_.frame, w_.values);
  const Verdict verdict = j_.relation(literal, w_.values);
  if (literal.variables.empty()) {
    w_.standing[index] = verdict;
    return;
  }
  bool frozen = false;
  for (const std::uint32_t i : literal.order) {
    const Node& node = j_.present_.graph().nodes[i];
    if (node.kind == NodeKind::kRate && !std::isnan(w_.recalled[i * Present::kRecalled]) && w_.recalled[i * Present::kRecalled + 1] == 0)
      frozen = true;
  }
  if (frozen) {
    hold_still(group, index);
    return;
  }
  if (std::isnan(w_.values[literal.left]) || std::isnan(w_.values[literal.right])) {
    w_.standing[index] = kUnknown;
    return;
  }
  if (literal.convex) {
    w_.standing[index] = kCurve;
    return;
  }
  const std::size_t n = group.channels.size();
  const std::span<double> row = std::span(w_.rows).subspan(index * j_.widest_, n);
  for (const std::uint32_t channel : literal.variables) w_.slopes[channel] = 0;
  j_.present_.add_slopes(literal.left, 1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  j_.present_.add_slopes(literal.right, -1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
  std::fill(row.begin(), row.end(), 0.0);
  std::size_t moving = 0;
  double steepest = 0;
  for (const std::uint32_t channel : literal.variables) {
    const double slope = w_.slopes[channel];
    row[static_cast<std::size_t>(j_.variable_of_[channel])] = slope;
    moving += slope != 0 ? 1 : 0;
    steepest = std::max(steepest, std::abs(slope));
    if (!std::isfinite(slope)) steepest = kInfinity;
  }
  if (!(steepest < kInfinity)) {
    w_.standing[index] = kUnknown;
    return;
  }
  if (moving == 0) {
    w_.standing[index] = verdict;
    return;
  }
  for (const std::uint32_t channel : literal.variables) w_.frame[channel] = 0;
  j_.present_.evaluate(literal.order, w_.recalled, w_.frame, w_.values);
  w_.constants[index] = gap(index);
  for (const std::uint32_t channel : literal.variables) {
    w_.frame[channel] = w_.y[static_cast<std::size_t>(j_.variable_of_[channel])];
  }
  w_.standing[index] = kRow;
  if (moving == 1) find_ends(group, index);
}

// No time has passed since the frame before: what a rate is taken of may not change. A channel keeps its value, an expression its sum.
void Joint::Look::hold_still(const JointGroup& group, std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  w_.standing[index] = kFrozen;
  for (const std::uint32_t i : literal.order) {
    const Node& node = j_.present_.graph().nodes[i];
    const double before = w_.recalled[i * Present::kRecalled];
    if (node.kind != NodeKind::kRate || std::isnan(before) || w_.recalled[i * Present::kRecalled + 1] != 0) continue;
    if (j_.present_.graph().nodes[node.a].kind == NodeKind::kChannel) return;
    for (const std::uint32_t channel : literal.variables) w_.slopes[channel] = 0;
    j_.present_.add_slopes(node.a, 1, literal.order, w_.recalled, w_.values, w_.adjoint, w_.slopes);
    const std::span<double> row = std::span(w_.rows).subspan(index * j_.widest_, group.channels.size());
    std::fill(row.begin(), row.end(), 0.0);
    for (const std::uint32_t channel : literal.variables) {
      row[static_cast<std::size_t>(j_.variable_of_[channel])] = w_.slopes[channel];
      w_.frame[channel] = 0;
    }
    j_.present_.evaluate(literal.order, w_.recalled, w_.frame, w_.values);
    w_.constants[index] = w_.values[node.a] - before;
    for (const std::uint32_t channel : literal.variables) {
      w_.frame[channel] = w_.y[static_cast<std::size_t>(j_.variable_of_[channel])];
    }
    w_.still[index] = i;
    w_.standing[index] = kStill;
    return;
  }
}

// By how much what must be equal differs now.
double Joint::Look::difference(std::uint32_t index) noexcept {
  if (w_.standing[index] != kStill) return gap(index);
  const std::uint32_t rate = w_.still[index];
  return w_.values[j_.present_.graph().nodes[rate].a] - w_.recalled[rate * Present::kRecalled];
}

// The bound that an affine condition sets on one channel: the last number of the grid for which it holds as it is written.
void Joint::Look::find_ends(const JointGroup& group, std::uint32_t index) noexcept {
  const JointLiteral& literal = j_.literals_[index];
  const double* row = w_.rows.data() + index * j_.widest_;
  std::size_t k = 0;
  while (row[k] == 0) ++k;
  const std::uint32_t channel = group.channels[k];
  const double before = w_.frame[channel], guess = -w_.constants[index] / row[k];
  w_.low[index] = -kInfinity;
  w_.high[index] = kInfinity;
  w_.standing[index] = kEnds;
  if (literal.relation == NodeKind::kEqual) {
    const double point = j_.grid_.nearest(guess);
    w_.frame[channel] = point;
    if (holds_now(index, false)) {
      w_.low[index] = w_.high[index] = point;
    } else {
      const double sign = row[k] > 0 ? 1 : -1;
      const auto within = [&](double side) {
        return [&, side](double x) {
          w_.frame[channel] = x;
          j_.present_.evaluate(literal.order, w_.recalled, w_.frame, w_.values);
          return side * gap(index) <= kEqualityEps * size(index);
        };
      };
      w_.high[index] = j_.grid_.floor(largest(guess, within(sign)));
      w_.low[index] = j_.grid_.ceil(smallest(guess, within(-sign)));
    }
  } else {
    const auto obeys = [&](double x) {
      w_.frame[channel] = x;
      return holds_now(index, true);
    };
    if (row[k] > 0) {
      w_.high[index] = j_.grid_.floor(largest(guess, obeys));
    } else {
      w_.low[index] = j_.grid_.ceil(smallest(guess, obeys));
    }
  }
  w_.frame[channel] = before;
}

// All literals of the clauses of a group, and which branches can be taken. What is missing obeys nothing; where every branch needs
// something that is missing, the rest of each is asked for.
void Joint::Look::see(const JointGroup& group, std::span<const double> value, bool soft) noexcept {
  soft_ = soft;
  w_.cut_count = w_.cut_next = 0;
  std::copy(value.begin(), value.end(), w_.frame.begin());
  for (std::size_t k = 0; k < group.channels.size(); ++k) {
    w_.frame[group.channels[k]] = w_.y[k];
    w_.weight[k] = 1 / j_.squared_scale_[group.channels[k]];
  }
  for (const std::uint32_t c : group.clauses) {
    const JointClause& clause = j_.clauses_[c];
    w_.kept[c] = soft || !j_.constraints_[clause.constraint].text.soft;
    bool sure = false;
    Open open;
    if (clause.promise >= 0) {
      open = j_.open(j_.promises_[static_cast<std::size_t>(clause.promise)], state_);
      w_.left[static_cast<std::size_t>(clause.promise)] = open.left;
      if (!open.any) {
        w_.kept[c] = 0;
        std::fill_n(w_.live.begin() + static_cast<std::ptrdiff_t>(j_.first_branch_[c]), clause.branches.size(), std::int8_t{0});
        continue;
      }
    }
    const auto can = [&](std::size_t b) {
      return clause.promise < 0 || j_.is_live(open, j_.promises_[static_cast<std::size_t>(clause.promise)], clause.deeds[b]);
    };
    for (const auto& branch : clause.branches) {
      for (const std::uint32_t literal : branch) see_literal(group, literal);
    }
    for (const bool with_unknown : {false, true}) {
      if (sure) break;
      for (std::size_t b = 0; b < clause.branches.size(); ++b) {
        const bool live = can(b) && std::all_of(clause.branches[b].begin(), clause.branches[b].end(), [&](std::uint32_t literal) {
                            return w_.standing[literal] != kFalse && (with_unknown || w_.standing[literal] != kUnknown);
                          });
        w_.live[j_.first_branch_[c] + b] = live ? 1 : 0;
        sure = sure || live;
      }
    }
    if (!sure) w_.kept[c] = 0;  // the past or what is given breaks it already
  }
}

}  // namespace kizzasi::logic
