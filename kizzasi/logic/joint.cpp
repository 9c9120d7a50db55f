#include "kizzasi/logic/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "kizzasi/logic/monitor/numbers.h"

namespace kizzasi::logic {
namespace {

constexpr std::size_t kMostCombinations = 4096;  // of branches in one group
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// What an expression is in the channels that move now.
enum class Curve : std::uint8_t { kStill, kAffine, kSquares, kQuadratic, kConvex, kConcave, kOther };

bool is_window(NodeKind kind) { return kind >= NodeKind::kWindowMean && kind <= NodeKind::kWindowIntegral; }

}  // namespace

class JointBuilder {
 public:
  JointBuilder(const Schema& schema, const Grid& grid, std::vector<JointConstraint> constraints, std::span<const double> squared_scale)
      : graph_builder_(schema) {
    j_.reset(new Joint);
    j_->schema_ = schema;
    j_->grid_ = grid;
    j_->constraints_ = std::move(constraints);
    j_->squared_scale_.assign(squared_scale.begin(), squared_scale.end());
  }

  Result<std::unique_ptr<Joint>> run() {
    j_->clauses_of_.resize(j_->constraints_.size());
    for (std::uint32_t i = 0; i < j_->constraints_.size(); ++i) {
      for (const Choice& choice : j_->constraints_[i].clauses) {
        if (!add_clause(i, choice)) return tl::unexpected(*error_);
      }
    }
    NodeGraph graph = graph_builder_.take();
    j_->present_ = Present(graph);
    for (std::size_t i = 0; i < j_->literals_.size(); ++i) {
      if (!understand(j_->literals_[i], graph, i)) return tl::unexpected(*error_);
    }
    for (JointClause& clause : j_->clauses_) {
      if (!gather(clause)) return tl::unexpected(*error_);
    }
    if (!group()) return tl::unexpected(*error_);
    lay_out(graph);
    make_pool();
    if (!meets()) return tl::unexpected(*error_);
    return std::move(j_);
  }

 private:
  Source source_of(std::uint32_t constraint) const {
    const ConstraintText& text = j_->constraints_[constraint].text;
    return {text.that, text.where, text.line, text.column};
  }

  bool add_clause(std::uint32_t constraint, const Choice& choice) {
    JointClause clause;
    clause.constraint = constraint;
    clause.enforced = j_->constraints_[constraint].enforced;
    for (const Branch& branch : choice) {
      std::vector<std::uint32_t>& into = clause.branches.emplace_back();
      for (const Literal& literal : branch) {
        if (clause.branches.size() == 1 && into.empty()) clause.offset = literal.offset;
        const auto root = graph_builder_.add(literal.formula, source_of(constraint));
        if (!root) {
          error_ = root.error();
          return false;
        }
        JointLiteral made;
        made.kind = literal.kind;
        made.apart = literal.apart;
        made.weak = literal.weak;
        made.negated = literal.negated;
        made.node = *root;  // of the list of roots, until the graph is there
        into.push_back(static_cast<std::uint32_t>(j_->literals_.size()));
        j_->literals_.push_back(std::move(made));
        place_.push_back({constraint, literal.offset});
        j_->constraint_of_literal_.push_back(constraint);
      }
    }
    j_->clauses_of_[constraint].push_back(static_cast<std::uint32_t>(j_->clauses_.size()));
    j_->clauses_.push_back(std::move(clause));
    return true;
  }

  // --- What a literal is -----------------------------------------------------------------------------------------------------------------

  bool moves_channel(const NodeGraph& graph, std::uint32_t channel) const { return graph.schema.channels[channel].role == Role::kTarget; }

  Curve curve_of(const NodeGraph& graph, std::uint32_t index) const {
    const Node& node = graph.nodes[index];
    const auto a = [&] { return curve_of(graph, node.a); };
    const auto b = [&] { return curve_of(graph, node.b); };
    const auto flipped = [](Curve c) {
      return c == Curve::kConvex ? Curve::kConcave : c == Curve::kConcave ? Curve::kConvex : c == Curve::kSquares ? Curve::kQuadratic : c;
    };
    const auto added = [](Curve one, Curve other) {
      if (one == Curve::kStill) return other;
      if (other == Curve::kStill) return one;
      const Curve least = std::min(one, other), most = std::max(one, other);
      if (most == Curve::kAffine || least == most) return most;
      if (least == Curve::kAffine) return most == Curve::kSquares ? Curve::kQuadratic : most;
      if (least == Curve::kSquares && most == Curve::kQuadratic) return Curve::kQuadratic;
      if (least == Curve::kSquares && most == Curve::kConvex) return Curve::kConvex;
      return Curve::kOther;
    };
    switch (node.kind) {
      case NodeKind::kConstant:
      case NodeKind::kHour:
      case NodeKind::kWeekday:
        return Curve::kStill;
      case NodeKind::kChannel:
        return moves_channel(graph, node.a) ? Curve::kAffine : Curve::kStill;
      case NodeKind::kNegate:
        return flipped(a());
      case NodeKind::kAdd:
        return added(a(), b());
      case NodeKind::kSubtract:
        return added(a(), flipped(b()));
      case NodeKind::kMultiply: {
        const Curve one = a(), other = b();
        if (one == Curve::kStill || other == Curve::kStill) {
          const Curve moving = one == Curve::kStill ? other : one;
          const Node& factor = graph.nodes[one == Curve::kStill ? node.a : node.b];
          if (moving <= Curve::kAffine || moving == Curve::kQuadratic || moving == Curve::kSquares) {
            const bool square = moving == Curve::kSquares || moving == Curve::kQuadratic;
            if (square && factor.kind != NodeKind::kConstant) return Curve::kOther;
            return moving == Curve::kSquares && factor.number < 0 ? Curve::kQuadratic : moving;
          }
          if (factor.kind != NodeKind::kConstant) return Curve::kOther;
          return factor.number < 0 ? flipped(moving) : moving;
        }
        if (one == Curve::kAffine && other == Curve::kAffine && !scaled_by_given(graph, node.a) && !scaled_by_given(graph, node.b)) {
          return node.a == node.b ? Curve::kSquares : Curve::kQuadratic;
        }
        return Curve::kOther;
      }
      case NodeKind::kDivide: {
        const Curve one = a();
        if (b() != Curve::kStill) return Curve::kOther;
        if (one <= Curve::kAffine) return one;
        const Node& divisor = graph.nodes[node.b];
        if (divisor.kind != NodeKind::kConstant) return Curve::kOther;
        if (one == Curve::kSquares || one == Curve::kQuadratic) return divisor.number < 0 ? Curve::kQuadratic : one;
        return divisor.number < 0 ? flipped(one) : one;
      }
      case NodeKind::kRoot:  // of a sum of squares: a norm
        return a() == Curve::kStill ? Curve::kStill : a() == Curve::kSquares ? Curve::kConvex : Curve::kOther;
      case NodeKind::kAbs:
      case NodeKind::kLesser:
      case NodeKind::kGreater: {
        const Curve one = a(), other = node.kind == NodeKind::kAbs ? Curve::kStill : b();
        return one == Curve::kStill && other == Curve::kStill ? Curve::kStill : Curve::kOther;
      }
      case NodeKind::kPrevious:
        return node.low == 0 ? a() : Curve::kStill;
      case NodeKind::kWindowVariance:
        return a() == Curve::kStill ? Curve::kStill : a() == Curve::kAffine ? Curve::kConvex : Curve::kOther;
      case NodeKind::kWindowLeast:
      case NodeKind::kWindowMost:
        return a() == Curve::kStill ? Curve::kStill : Curve::kOther;
      default:  // rate, mean, integral, trend
        return a() <= Curve::kAffine ? a() : Curve::kOther;
    }
  }

  // True where the slope of an affine expression is no number of the text: squares of it have no curvature that is known now.
  bool scaled_by_given(const NodeGraph& graph, std::uint32_t index) const {
    const Node& node = graph.nodes[index];
    switch (node.kind) {
      case NodeKind::kNegate:
        return scaled_by_given(graph, node.a);
      case NodeKind::kAdd:
      case NodeKind::kSubtract:
        return scaled_by_given(graph, node.a) || scaled_by_given(graph, node.b);
      case NodeKind::kMultiply:
      case NodeKind::kDivide: {
        const bool still_a = curve_of(graph, node.a) == Curve::kStill, still_b = curve_of(graph, node.b) == Curve::kStill;
        if (still_a && still_b) return false;
        const std::uint32_t factor = still_a ? node.a : node.b, moving = still_a ? node.b : node.a;
        return graph.nodes[factor].kind != NodeKind::kConstant || scaled_by_given(graph, moving);
      }
      default:
        return node.kind == NodeKind::kRate || is_window(node.kind);
    }
  }

  bool understand(JointLiteral& literal, const NodeGraph& graph, std::size_t index) {
    literal.node = graph.roots[literal.node];
    if (literal.kind == Literal::Kind::kKnown) {
      literal.looks_elsewhere = true;
      return true;
    }
    const Node& node = graph.nodes[literal.node];
    literal.left = node.a;
    literal.right = node.b;
    literal.relation = node.kind;
    literal.order = j_->present_.order_of(literal.node);
    for (const std::uint32_t i : literal.order) {
      const Node& number = graph.nodes[i];
      if (number.kind == NodeKind::kChannel && !moves_channel(graph, number.a)) literal.looks_elsewhere = true;
      if (number.kind == NodeKind::kRate || number.kind == NodeKind::kPrevious || is_window(number.kind) ||
          number.kind == NodeKind::kHour || number.kind == NodeKind::kWeekday) {
        literal.looks_elsewhere = true;
      }
      if (is_window(number.kind) && number.kind != NodeKind::kWindowLeast && number.kind != NodeKind::kWindowMost) {
        literal.rounding = std::max(literal.rounding, 4 * static_cast<double>(number.low));
      }
    }
    std::vector<bool> used(graph.nodes.size(), false);
    reach_now(graph, literal.left, used);
    reach_now(graph, literal.right, used);
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      if (!used[i]) continue;
      const NodeKind kind = graph.nodes[i].kind;
      literal.looks_at_now = literal.looks_at_now || kind == NodeKind::kChannel || kind == NodeKind::kHour || kind == NodeKind::kWeekday;
      if (kind == NodeKind::kChannel && moves_channel(graph, graph.nodes[i].a)) {
        literal.variables.push_back(graph.nodes[i].a);
      }
    }
    if (literal.variables.empty()) return true;
    const auto [constraint, offset] = place_[index];
    if (literal.relation == NodeKind::kEqual && literal.variables.size() > 1 && !j_->grid_.all_doubles()) {
      return bad(constraint, offset, fmt::format("an equality cannot be kept in text with {} decimals", j_->grid_.decimals()),
                 "== b +- tol, or text with all digits", "");
    }
    return curvature_fits(literal, graph, constraint, offset);
  }

  static void reach_now(const NodeGraph& graph, std::uint32_t index, std::vector<bool>& used) {
    const Node& node = graph.nodes[index];
    if (used[index]) return;
    used[index] = true;
    if (node.kind == NodeKind::kPrevious && node.low > 0) return;
    if (node.kind == NodeKind::kConstant || node.kind == NodeKind::kChannel || node.kind == NodeKind::kHour ||
        node.kind == NodeKind::kWeekday)
      return;
    reach_now(graph, node.a, used);
    const bool two = node.kind == NodeKind::kAdd || node.kind == NodeKind::kSubtract || node.kind == NodeKind::kMultiply ||
                     node.kind == NodeKind::kDivide || node.kind == NodeKind::kLesser || node.kind == NodeKind::kGreater;
    if (two) reach_now(graph, node.b, used);
  }

  bool curvature_fits(JointLiteral& literal, const NodeGraph& graph, std::uint32_t constraint, std::size_t offset) {
    const Curve left = curve_of(graph, literal.left), right = curve_of(graph, literal.right);
    const auto is_flat = [](Curve c) { return c <= Curve::kAffine; };
    if (is_flat(left) && is_flat(right)) return true;
    const bool soft = j_->constraints_[constraint].text.soft;
    if (soft) {
      return bad(constraint, offset, "a soft norm or quadratic form is not enforced by this version", "soft = false, or linear conditions",
                 "");
    }
    const auto bends_up = [](Curve c) { return c == Curve::kSquares || c == Curve::kQuadratic || c <= Curve::kAffine; };
    bool convex = literal.relation != NodeKind::kEqual && !literal.apart;
    if (bends_up(left) && bends_up(right)) {
      convex = convex && is_semidefinite(literal, graph);
    } else {
      convex =
          convex && (is_flat(left) || left == Curve::kConvex || left == Curve::kSquares) && (is_flat(right) || right == Curve::kConcave);
    }
    if (!convex) {
      return bad(constraint, offset, "its set of allowed values is not convex, and this version does not enforce it",
                 "linear conditions, norms and positive semidefinite quadratic forms that must be small, and choices between such", "");
    }
    literal.convex = true;
    return true;
  }

  // The curvature of left - right, a quadratic form: constant, so that differences of slopes give it.
  bool is_semidefinite(const JointLiteral& literal, const NodeGraph& graph) const {
    const std::size_t n = literal.variables.size(), channels = graph.schema.size();
    std::vector<double> recalled(graph.nodes.size() * Present::kRecalled, 1.0), values(graph.nodes.size(), 0),
        adjoint(graph.nodes.size(), 0), frame(channels, 0), h(n * n), base(channels, 0);
    const auto slopes_at = [&] {
      std::vector<double> slopes(channels, 0);
      j_->present_.evaluate(literal.order, recalled, frame, values);
      j_->present_.add_slopes(literal.left, 1, literal.order, recalled, values, adjoint, slopes);
      j_->present_.add_slopes(literal.right, -1, literal.order, recalled, values, adjoint, slopes);
      return slopes;
    };
    base = slopes_at();
    for (std::size_t i = 0; i < n; ++i) {
      frame[literal.variables[i]] = 1;
      const std::vector<double> moved = slopes_at();
      frame[literal.variables[i]] = 0;
      for (std::size_t k = 0; k < n; ++k) h[i * n + k] = moved[literal.variables[k]] - base[literal.variables[k]];
    }
    double top = 0;
    for (std::size_t i = 0; i < n; ++i) top = std::max(top, std::abs(h[i * n + i]));
    for (std::size_t i = 0; i < n; ++i) h[i * n + i] += 1e-12 * top;
    for (std::size_t k = 0; k < n; ++k) {  // Cholesky's factor exists
      double pivot = h[k * n + k];
      for (std::size_t i = 0; i < k; ++i) pivot -= h[k * n + i] * h[k * n + i];
      if (!(pivot >= 0)) return false;
      const double root = std::sqrt(pivot);
      h[k * n + k] = root;
      for (std::size_t r = k + 1; r < n; ++r) {
        double sum = h[r * n + k];
        for (std::size_t i = 0; i < k; ++i) sum -= h[r * n + i] * h[k * n + i];
        if (root == 0 && std::abs(sum) > 1e-9 * top) return false;
        h[r * n + k] = root == 0 ? 0 : sum / root;
      }
    }
    return true;
  }

  bool gather(JointClause& clause) {
    bool speaks = false, elsewhere = false, coupled = clause.branches.size() > 1;
    for (const auto& branch : clause.branches) {
      for (const std::uint32_t index : branch) {
        const JointLiteral& literal = j_->literals_[index];
        speaks = speaks || literal.looks_at_now;
        elsewhere = elsewhere || literal.looks_elsewhere;
        coupled = coupled || literal.variables.size() > 1;
        for (const std::uint32_t channel : literal.variables) {
          if (std::find(clause.channels.begin(), clause.channels.end(), channel) == clause.channels.end())
            clause.channels.push_back(channel);
        }
      }
    }
    clause.form = coupled ? 2 : elsewhere ? 1 : 0;
    const bool always = std::any_of(clause.branches.begin(), clause.branches.end(), [](const auto& branch) { return branch.empty(); });
    const std::string& that = j_->constraints_[clause.constraint].text.that;
    if (clause.branches.empty())
      return bad(clause.constraint, 0, fmt::format("'{}' can never hold", that), "a condition that can hold", "");
    if (always)
      return bad(clause.constraint, clause.offset, fmt::format("'{}' holds whatever comes", that), "a condition that can be broken", "");
    if (!speaks) {
      return bad(clause.constraint, clause.offset, fmt::format("no present value is left in '{}'", that), "a condition on a value of now",
                 "");
    }
    return true;
  }

  // --- Groups ----------------------------------------------------------------------------------------------------------------------------

  bool group() {
    const std::size_t channels = j_->schema_.size();
    std::vector<std::size_t> parent(channels);
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&](std::size_t c) {
      while (parent[c] != c) c = parent[c];
      return c;
    };
    j_->group_of_.assign(channels, -1);
    j_->variable_of_.assign(channels, -1);
    std::vector<bool> used(channels, false);
    for (const JointClause& clause : j_->clauses_) {
      if (!clause.enforced) continue;
      for (const std::uint32_t channel : clause.channels) {
        used[channel] = true;
        parent[root(channel)] = root(clause.channels.front());
      }
    }
    std::vector<std::int64_t> number(channels, -1);
    for (std::size_t channel = 0; channel < channels; ++channel) {
      if (!used[channel]) continue;
      std::int64_t& at = number[root(channel)];
      if (at < 0) {
        at = static_cast<std::int64_t>(j_->groups_.size());
        j_->groups_.emplace_back();
        j_->groups_.back().number = j_->groups_.size() - 1;
      }
      JointGroup& group = j_->groups_[static_cast<std::size_t>(at)];
      j_->group_of_[channel] = at;
      j_->variable_of_[channel] = static_cast<std::int64_t>(group.channels.size());
      group.channels.push_back(static_cast<std::uint32_t>(channel));
    }
    for (std::uint32_t i = 0; i < j_->clauses_.size(); ++i) {
      const JointClause& clause = j_->clauses_[i];
      if (!clause.enforced || clause.channels.empty()) continue;
      JointGroup& group = j_->groups_[static_cast<std::size_t>(j_->group_of_[clause.channels.front()])];
      group.clauses.push_back(i);
      std::size_t most = 0;
      bool convex = false;
      for (const auto& branch : clause.branches) {
        most = std::max(most, branch.size());
        for (const std::uint32_t literal : branch) convex = convex || j_->literals_[literal].convex;
      }
      group.rows += most;
      group.curved = group.curved || convex;
      group.branches *= clause.branches.size();
      if (group.branches > kMostCombinations) {
        return bad(clause.constraint, clause.offset,
                   fmt::format("with it there are more than {} combinations of branches over channels that are coupled", kMostCombinations),
                   "fewer choices over the same channels", "");
      }
    }
    for (JointGroup& group : j_->groups_) {
      j_->widest_ = std::max(j_->widest_, group.channels.size());
      std::stable_sort(group.clauses.begin(), group.clauses.end(), [&](std::uint32_t a, std::uint32_t b) {
        const JointClause &one = j_->clauses_[a], &other = j_->clauses_[b];
        const std::int64_t first = j_->constraints_[one.constraint].text.priority,
                           second = j_->constraints_[other.constraint].text.priority;
        return first != second ? first < second : one.form < other.form;
      });
    }
    return true;
  }

  void lay_out(const NodeGraph& graph) {
    std::vector<Stage<Verdict>::Reader> readers;
    for (const JointLiteral& literal : j_->literals_) {
      if (literal.kind == Literal::Kind::kKnown) readers.push_back({literal.node, 0});
    }
    for (std::uint32_t i = 0; i < graph.nodes.size(); ++i) {
      const NodeKind kind = graph.nodes[i].kind;
      if (!is_condition(kind)) j_->all_numbers_.push_back(i);
      if (kind == NodeKind::kLess || kind == NodeKind::kLessEqual || kind == NodeKind::kEqual) j_->comparisons_.push_back(i);
    }
    if (!readers.empty()) j_->stage_.emplace(graph, readers);
    const std::size_t counters = j_->stage_ ? j_->stage_->state_counters() : 0, verdicts = j_->stage_ ? j_->stage_->state_values() : 0;
    j_->counters_at_ = sizeof(std::int64_t);  // the number of frames stands first
    j_->numbers_at_ = j_->counters_at_ + counters * sizeof(std::int64_t);
    j_->verdicts_at_ = j_->numbers_at_ + j_->present_.state_doubles() * sizeof(double);
    j_->state_bytes_ = (j_->verdicts_at_ + verdicts * sizeof(Verdict) + 7) / 8 * 8;
  }

  void make_pool() {
    const std::size_t nodes = j_->present_.graph().nodes.size(), channels = j_->schema_.size(), literals = j_->literals_.size(),
                      n = j_->widest_;
    std::size_t branches = 0, rows = 0;
    for (const JointClause& clause : j_->clauses_) {
      j_->first_branch_.push_back(branches);
      branches += clause.branches.size();
    }
    std::size_t cuts = 0;
    for (const JointGroup& group : j_->groups_) {
      if (group.curved) cuts = kMostCuts;
      rows = std::max(rows, group.rows + (group.curved ? kMostCuts : 0));
    }
    const std::size_t size = std::max<std::size_t>(4, 2 * std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < size; ++i) {
      auto w = std::make_unique<JointWorkspace>();
      w->programs.resize(j_->groups_.size());
      for (const JointGroup& group : j_->groups_) {
        const std::size_t most = group.rows + (group.curved ? kMostCuts : 0);
        w->programs[group.number].prepare(group.channels.size(), most, group.rows);
      }
      w->recalled.assign(nodes * Present::kRecalled, 0);
      for (auto* v : {&w->values, &w->adjoint, &w->seen_values, &w->sent_values}) v->assign(nodes, 0);
      for (auto* v : {&w->slopes, &w->frame, &w->sent}) v->assign(channels, 0);
      w->atoms.assign(nodes, 0);
      w->standing.assign(literals, 0);
      w->still.assign(literals, 0);
      w->rows.assign(literals * n, 0);
      for (auto* v : {&w->constants, &w->margins, &w->shifts, &w->low, &w->high, &w->relaxed}) v->assign(literals, 0);
      w->live.assign(branches, 0);
      w->chosen.assign(j_->clauses_.size(), 0);
      w->kept.assign(j_->clauses_.size(), 1);
      w->wanted.assign(j_->clauses_.size(), 1);
      w->active.reserve(literals);
      w->a.assign(rows * n, 0);
      for (auto* v : {&w->lo, &w->hi, &w->l1, &w->l2}) v->assign(rows, 0);
      for (auto* v : {&w->lower, &w->upper, &w->y, &w->weight, &w->x, &w->best}) v->assign(std::max<std::size_t>(n, 1), 0);
      w->cuts.assign(cuts * n, 0);
      w->cut_ends.assign(cuts, 0);
      w->cut_literal.assign(cuts, 0);
      w->row_literal.assign(rows, 0);
      j_->pool_.push_back(std::move(w));
    }
  }

  // Constraints that no values obey, whatever the past and what is given, are a mistake of the file.
  bool meets() {
    const std::vector<double> nothing(j_->schema_.size(), kNaN);
    std::vector<std::byte> state(j_->state_bytes_);
    j_->reset(state);
    for (const JointGroup& group : j_->groups_) {
      Joint::Look look(*j_, state, Past{}, 0);
      const auto stuck = look.conflict(group, nothing);
      if (!stuck) continue;
      const JointClause& clause = j_->clauses_[*stuck];
      const std::string grid = j_->grid_.all_doubles() ? "" : fmt::format(" with {} decimals", j_->grid_.decimals());
      return bad(clause.constraint, clause.offset,
                 fmt::format("no values{} obey '{}' and the constraints before it over the same channels", grid,
                             j_->constraints_[clause.constraint].text.name),
                 "constraints that can hold together", "");
    }
    return true;
  }

  bool bad(std::uint32_t constraint, std::size_t offset, std::string what, std::string expected, std::string hint) {
    if (!error_)
      error_ = Error{Fault::kBadInput, std::move(what), source_of(constraint).place(offset), std::move(expected), std::move(hint)};
    return false;
  }

  std::unique_ptr<Joint> j_;
  GraphBuilder graph_builder_;
  std::vector<std::pair<std::uint32_t, std::size_t>> place_;  // (literals) constraint and offset
  std::optional<Error> error_;
};

Result<std::unique_ptr<Joint>> Joint::build(const Schema& schema, const Grid& grid, std::vector<JointConstraint> constraints,
                                            std::span<const double> squared_scale) {
  return JointBuilder(schema, grid, std::move(constraints), squared_scale).run();
}

// --- State -------------------------------------------------------------------------------------------------------------------------------

JointWorkspace& Joint::take() const noexcept {
  for (;;) {
    for (const auto& w : pool_) {
      bool free = false;
      if (w->busy.compare_exchange_strong(free, true, std::memory_order_acquire)) return *w;
    }
    std::this_thread::yield();
  }
}

void Joint::reset(std::span<std::byte> state) const noexcept {
  std::fill(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(state_bytes_), std::byte{0});
}

std::span<const double> Joint::numbers(std::span<const std::byte> state) const noexcept {
  return {reinterpret_cast<const double*>(state.data() + numbers_at_), present_.state_doubles()};
}

Truth Joint::known(const JointLiteral& literal, std::span<const std::byte> state) const noexcept {
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  Verdict verdict = literal.weak ? 1 : -1;
  if (frames > 0) {
    verdict = stage_->at(literal.node, frames - 1, {reinterpret_cast<const Verdict*>(state.data() + verdicts_at_), stage_->state_values()});
  }
  if (literal.negated) verdict = static_cast<Verdict>(-verdict);
  return verdict > 0 ? Truth::kTrue : verdict < 0 ? Truth::kFalse : Truth::kUnknown;
}

Verdict Joint::relation(const JointLiteral& literal, std::span<const double> values) const noexcept {
  const double a = values[literal.left], b = values[literal.right];
  if (std::isnan(a) || std::isnan(b)) return 0;
  const auto equal = [&] {
    if (a == b) return true;
    const double distance = std::abs(a - b);
    return std::isfinite(distance) &&
           distance <= kEqualityEps * (present_.magnitude(literal.left, values) + present_.magnitude(literal.right, values));
  };
  switch (literal.relation) {
    case NodeKind::kLess:
      return a < b && !(literal.apart && equal()) ? 1 : -1;
    case NodeKind::kLessEqual:
      return a <= b ? 1 : -1;
    default:
      return equal() ? 1 : -1;
  }
}

void Joint::accept(std::span<std::byte> state, const Past& past, std::int64_t time_ns, std::span<const double> measured,
                   std::span<const double> emitted) const noexcept {
  JointWorkspace& w = take();
  const std::size_t channels = schema_.size();
  const bool rollout = std::none_of(measured.begin(), measured.end(), [](double x) { return std::isfinite(x); });
  for (std::size_t c = 0; c < channels; ++c) {
    const double seen = c < measured.size() && std::isfinite(measured[c]) ? measured[c] : kNaN;
    const double sent = c < emitted.size() && std::isfinite(emitted[c]) ? emitted[c] : kNaN;
    w.frame[c] = rollout ? sent : seen;
    w.sent[c] = std::isnan(sent) ? seen : sent;
  }
  const std::span<double> numbers{reinterpret_cast<double*>(state.data() + numbers_at_), present_.state_doubles()};
  present_.recall(numbers, past, time_ns, w.recalled);
  present_.evaluate(all_numbers_, w.recalled, w.frame, w.seen_values);
  present_.evaluate(all_numbers_, w.recalled, w.sent, w.sent_values);
  std::int64_t frames = 0;
  std::memcpy(&frames, state.data(), sizeof frames);
  if (stage_) {
    for (const std::uint32_t i : comparisons_) w.atoms[i] = truth_of(present_.graph(), i, w.sent_values);
    stage_->step(frames, w.atoms, {reinterpret_cast<Verdict*>(state.data() + verdicts_at_), stage_->state_values()},
                 {reinterpret_cast<std::int64_t*>(state.data() + counters_at_), stage_->state_counters()});
  }
  present_.accept(numbers, time_ns, w.seen_values, w.sent_values);
  ++frames;
  std::memcpy(state.data(), &frames, sizeof frames);
  w.busy.store(false, std::memory_order_release);
}

}  // namespace kizzasi::logic
