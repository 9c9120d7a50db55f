#include "kizzasi/logic/joint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <thread>

#include "kizzasi/logic/curvature.h"

namespace kizzasi::logic {
namespace {

constexpr std::size_t kMostCombinations = 4096;  // of branches in one group
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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
      clause.enforced = clause.enforced && j_->constraints_[clause.constraint].enforced;
      if (!gather(clause)) return tl::unexpected(*error_);
    }
    find_rates(graph);
    for (std::size_t i = 0; i < j_->literals_.size(); ++i) {
      if (!can_aim(j_->literals_[i], i)) return tl::unexpected(*error_);
    }
    if (!group()) return tl::unexpected(*error_);
    lay_out(graph);
    make_pool();
    if (!meets()) return tl::unexpected(*error_);
    return std::move(j_);
  }

 private:
  Source source_of(std::uint32_t constraint) const { return logic::source_of(j_->constraints_[constraint].text); }

  // A branch with what it takes on.
  struct Way {
    std::vector<std::uint32_t> literals, takes;
  };
  using Ways = std::vector<Way>;

  bool add_clause(std::uint32_t constraint, const Choice& choice) {
    JointClause clause;
    clause.constraint = constraint;
    clause.enforced = j_->constraints_[constraint].enforced;
    clause.offset = choice.empty() || choice.front().empty() ? 0 : choice.front().front().offset;
    add_ways(clause, ways_of(choice, constraint), Deed::kNothing);
    put(std::move(clause));
    return !error_;
  }

  static void add_ways(JointClause& clause, const Ways& ways, Deed deed) {
    for (const Way& way : ways) {
      clause.branches.push_back(way.literals);
      clause.takes.push_back(way.takes);
      clause.deeds.push_back(deed);
    }
  }

  std::uint32_t put(JointClause clause) {
    if (clause.branches.size() > kMostBranches) {
      (void)bad(clause.constraint, clause.offset, fmt::format("it leaves more than {} branches to choose from", kMostBranches),
                "fewer choices in one constraint", "");
    }
    j_->clauses_of_[clause.constraint].push_back(static_cast<std::uint32_t>(j_->clauses_.size()));
    j_->clauses_.push_back(std::move(clause));
    return static_cast<std::uint32_t>(j_->clauses_.size() - 1);
  }

  std::uint32_t literal_of(const Literal& literal, std::uint32_t constraint, std::int64_t ahead = 0, std::int64_t ahead_of = -1) {
    JointLiteral made;
    made.kind = literal.kind;
    made.apart = literal.apart;
    made.weak = literal.weak;
    made.negated = literal.negated;
    made.ahead = ahead;
    made.ahead_of = ahead_of;
    const auto root = graph_builder_.add(literal.formula, source_of(constraint));
    if (root) made.node = *root;  // of the list of roots, until the graph is there
    if (!root && !error_) error_ = root.error();
    j_->literals_.push_back(std::move(made));
    place_.push_back({constraint, literal.offset});
    j_->constraint_of_literal_.push_back(constraint);
    return static_cast<std::uint32_t>(j_->literals_.size() - 1);
  }

  static Ways joined(const Ways& a, const Ways& b) {
    Ways out;
    for (const Way& one : a) {
      for (const Way& other : b) {
        if (out.size() > kMostBranches) return out;
        out.push_back(one);
        out.back().literals.insert(out.back().literals.end(), other.literals.begin(), other.literals.end());
        out.back().takes.insert(out.back().takes.end(), other.takes.begin(), other.takes.end());
      }
    }
    return out;
  }

  // The ways to make a choice true at this frame: promises are met at once, or taken on while they stay within reach.
  Ways ways_of(const Choice& choice, std::uint32_t constraint) {
    Ways all;
    for (const Branch& branch : choice) {
      Ways ways(1);
      for (const Literal& literal : branch) {
        if (literal.kind != Literal::Kind::kPromise) {
          const std::uint32_t index = literal_of(literal, constraint);
          for (Way& way : ways) way.literals.push_back(index);
          continue;
        }
        const Promise& p = *literal.promise;
        const std::uint32_t id = promise_of(literal, constraint);
        Ways own;
        const auto add = [&](Ways more, bool takes) {
          for (Way& way : more) {
            if (takes) way.takes.push_back(id);
            own.push_back(std::move(way));
          }
        };
        const bool reach = p.kind == Promise::Kind::kReach;
        if (p.low == 0) add(ways_of(p.goal, constraint), !reach && p.high > 0);
        if (!reach && p.frees_at_once) add(ways_of(p.stay, constraint), false);
        if (reach && p.high > 0) add(joined(ways_of(p.stay, constraint), ahead_of(p.goal, constraint, p.high, -1)), true);
        if (!reach && p.low > 0) add(ahead_of(p.goal, constraint, p.low, -1), true);
        ways = joined(ways, own);
      }
      all.insert(all.end(), ways.begin(), ways.end());
      if (all.size() > kMostBranches) break;
    }
    return all;
  }

  // What must be within reach so many frames ahead.
  Ways ahead_of(const Choice& goal, std::uint32_t constraint, std::int64_t ahead, std::int64_t promise) {
    Ways all;
    for (const Branch& branch : goal) {
      Way& way = all.emplace_back();
      for (const Literal& literal : branch) {
        if (literal.kind == Literal::Kind::kCompare) way.literals.push_back(literal_of(literal, constraint, ahead, promise));
      }
    }
    return all;
  }

  std::uint32_t promise_of(const Literal& literal, std::uint32_t constraint) {
    const auto there =
        std::find_if(known_promises_.begin(), known_promises_.end(), [&](const auto& known) { return known.first == literal.promise; });
    if (there != known_promises_.end()) return there->second;
    const Promise& p = *literal.promise;
    const auto id = static_cast<std::uint32_t>(j_->promises_.size());
    known_promises_.emplace_back(literal.promise, id);
    const ConstraintText& text = j_->constraints_[constraint].text;
    if (text.soft) {
      (void)bad(constraint, literal.offset, "a soft condition about the future is not enforced by this version", "soft = false", "");
    }
    JointPromise made;
    made.kind = p.kind;
    made.low = p.low;
    made.high = p.high;
    made.frees_at_once = p.frees_at_once;
    made.ring = (p.high == kEndless ? p.low : p.high) + 1;
    j_->promises_.push_back(made);
    JointClause clause;
    clause.promise = id;
    clause.constraint = constraint;
    clause.enforced = j_->constraints_[constraint].enforced;
    clause.offset = literal.offset;
    const bool reach = p.kind == Promise::Kind::kReach;
    add_ways(clause, ways_of(p.goal, constraint), Deed::kMeets);
    if (reach && p.high > 0) {
      add_ways(clause, joined(ways_of(p.stay, constraint), ahead_of(p.goal, constraint, 0, id)), Deed::kStaysNear);
    }
    if (!reach && p.low > 0) add_ways(clause, ahead_of(p.goal, constraint, 0, id), Deed::kStaysNear);
    if (!reach) {
      const Ways free = ways_of(p.stay, constraint);
      for (const Way& way : free) {
        j_->promises_[id].free.push_back(way.literals);
        if (!way.takes.empty()) {
          (void)bad(constraint, literal.offset, "what sets a condition free may not look ahead itself", "a condition on the present", "");
        }
      }
      if (p.frees_at_once) add_ways(clause, free, Deed::kFrees);
    }
    j_->promises_[id].clause = put(std::move(clause));
    return id;
  }

  // --- What a literal is -----------------------------------------------------------------------------------------------------------------

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
    const std::vector<bool> used = nodes_of_now(graph, {literal.left, literal.right});
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

  bool curvature_fits(JointLiteral& literal, const NodeGraph& graph, std::uint32_t constraint, std::size_t offset) {
    const Curve left = curve_of(graph, literal.left), right = curve_of(graph, literal.right);
    const auto is_flat = [](Curve c) { return c <= Curve::kAffine; };
    if (is_flat(left) && is_flat(right)) return true;
    if (!j_->constraints_[constraint].enforced) return true;  // judged only: any set will do
    const auto bends_up = [](Curve c) { return c == Curve::kSquares || c == Curve::kQuadratic || c <= Curve::kAffine; };
    bool convex = literal.relation != NodeKind::kEqual && !literal.apart;
    if (bends_up(left) && bends_up(right)) {
      convex = convex && is_semidefinite(literal, graph);
    } else {
      convex =
          convex && (is_flat(left) || left == Curve::kConvex || left == Curve::kSquares) && (is_flat(right) || right == Curve::kConcave);
    }
    if (!convex && j_->constraints_[constraint].text.otherwise != "project") {
      // Judged as the prediction stands, and again when all has moved; nothing is moved for its sake.
      j_->constraints_[constraint].enforced = false;
      return true;
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
    return is_positive_semidefinite(h, n);
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

  // --- How far a channel can move in one frame
  // --------------------------------------------------------------------------------------------

  // From hard bounds on rate(x) and x - prev(x, 1) alone. NaN: what looks back bounds it in another way.
  void find_rates(const NodeGraph& graph) {
    const std::size_t channels = j_->schema_.size(), nodes = graph.nodes.size();
    constexpr double kAnywhere = std::numeric_limits<double>::infinity();
    j_->rise_.assign(channels, kAnywhere);
    j_->fall_.assign(channels, kAnywhere);
    if (j_->promises_.empty()) return;
    std::vector<double> recalled(nodes * Present::kRecalled), values(nodes), adjoint(nodes), frame(channels), slopes(channels);
    const double step = j_->schema_.step_ns > 0 ? static_cast<double>(j_->schema_.step_ns) / 1e9 : 1;
    for (const JointClause& clause : j_->clauses_) {
      if (!clause.enforced || clause.promise >= 0 || j_->constraints_[clause.constraint].text.soft) continue;
      for (const auto& branch : clause.branches) {
        for (const std::uint32_t index : branch) {
          const JointLiteral& literal = j_->literals_[index];
          const bool looks_back = std::any_of(literal.order.begin(), literal.order.end(), [&](std::uint32_t i) {
            const NodeKind kind = graph.nodes[i].kind;
            return kind == NodeKind::kRate || kind == NodeKind::kPrevious || is_window(kind);
          });
          if (!looks_back || literal.variables.empty()) continue;
          const std::uint32_t channel = literal.variables.front();
          const bool simple = literal.variables.size() == 1 && clause.branches.size() == 1 && !literal.convex &&
                              std::all_of(literal.order.begin(), literal.order.end(), [&](std::uint32_t i) {
                                const Node& node = graph.nodes[i];
                                if (node.kind == NodeKind::kChannel) return node.a == channel;
                                const bool back = node.kind == NodeKind::kRate || (node.kind == NodeKind::kPrevious && node.low == 1);
                                if (back) return graph.nodes[node.a].kind == NodeKind::kChannel;
                                return node.kind != NodeKind::kPrevious && !is_window(node.kind) && node.kind != NodeKind::kHour &&
                                       node.kind != NodeKind::kWeekday;
                              });
          double at[2] = {0, 0}, slope = 0;
          for (const int before : {0, 1}) {
            for (std::size_t i = 0; i < nodes; ++i) {
              recalled[i * Present::kRecalled] = before;
              recalled[i * Present::kRecalled + 1] = step;
            }
            std::fill(frame.begin(), frame.end(), 0.0);
            std::fill(slopes.begin(), slopes.end(), 0.0);
            j_->present_.evaluate(literal.order, recalled, frame, values);
            j_->present_.add_slopes(literal.left, 1, literal.order, recalled, values, adjoint, slopes);
            j_->present_.add_slopes(literal.right, -1, literal.order, recalled, values, adjoint, slopes);
            at[before] = values[literal.left] - values[literal.right];
            slope = slopes[channel];
          }
          const bool of_change =
              simple && literal.relation != NodeKind::kEqual && std::abs(at[1] - at[0] + slope) <= 1e-9 * std::abs(slope);
          if (!of_change || slope == 0) {
            for (const std::uint32_t other : literal.variables) j_->rise_[other] = j_->fall_[other] = kNaN;
            continue;
          }
          double& most = slope > 0 ? j_->rise_[channel] : j_->fall_[channel];
          const double by = std::max(0.0, -at[0] / std::abs(slope));
          if (by >= most || std::isnan(most)) continue;
          // On decimals a difference may round past the bound: one step less is safe.
          most = j_->grid_.all_doubles() ? by : std::max(0.0, j_->grid_.below(j_->grid_.floor(by)));
        }
      }
    }
  }

  bool can_aim(const JointLiteral& literal, std::size_t index) {
    if (literal.ahead == 0 && literal.ahead_of < 0) return true;
    const auto [constraint, offset] = place_[index];
    if (literal.variables.empty()) {
      return bad(constraint, offset, "nothing that is predicted stands in a condition of the future, so nobody can see to it",
                 "a predicted channel in it", "");
    }
    bool limited = false, unforeseen = false;
    for (const std::uint32_t channel : literal.variables) {
      unforeseen = unforeseen || std::isnan(j_->rise_[channel]) || std::isnan(j_->fall_[channel]);
      limited = limited || std::isfinite(j_->rise_[channel]) || std::isfinite(j_->fall_[channel]);
    }
    if (unforeseen) {
      return bad(constraint, offset,
                 "how far its channel can move until then is not known: more than its rate is bounded by what was before",
                 "bounds on rate(x) alone for what has a deadline", "");
    }
    if (limited && (literal.variables.size() > 1 || literal.convex || literal.looks_elsewhere)) {
      return bad(constraint, offset, "the last moment from which it can still be reached is not known to this version",
                 "conditions on one channel each, against numbers, where the rate of a channel is limited", "");
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
        for (const std::uint32_t literal : branch) {
          convex = convex || j_->literals_[literal].convex;
          if (!j_->literals_[literal].convex || !j_->constraints_[clause.constraint].text.soft) continue;
          // A clause's literals are its own, but for those that a formula repeats.
          if (std::find(group.slacks.begin(), group.slacks.end(), literal) == group.slacks.end()) group.slacks.push_back(literal);
        }
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
      for (std::size_t k = 0; k < group.slacks.size(); ++k) {
        j_->literals_[group.slacks[k]].slack = static_cast<std::int64_t>(group.channels.size() + k);
      }
      j_->widest_ = std::max(j_->widest_, group.unknowns());
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
    std::size_t at = j_->verdicts_at_ + verdicts * sizeof(Verdict);
    for (JointPromise& promise : j_->promises_) {
      promise.at = at;
      at += static_cast<std::size_t>(promise.ring) + 1;
    }
    j_->state_bytes_ = (at + 7) / 8 * 8;
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
        w->programs[group.number].prepare(group.unknowns(), most, group.rows);
      }
      w->recalled.assign(nodes * Present::kRecalled, 0);
      for (auto* v : {&w->values, &w->adjoint, &w->seen_values, &w->sent_values}) v->assign(nodes, 0);
      for (auto* v : {&w->slopes, &w->frame, &w->sent}) v->assign(channels, 0);
      w->standing.assign(literals, 0);
      w->still.assign(literals, 0);
      w->rows.assign(literals * n, 0);
      for (auto* v : {&w->constants, &w->margins, &w->shifts, &w->low, &w->high, &w->relaxed}) v->assign(literals, 0);
      w->live.assign(branches, 0);
      w->chosen.assign(j_->clauses_.size(), 0);
      w->kept.assign(j_->clauses_.size(), 1);
      w->wanted.assign(j_->clauses_.size(), 1);
      w->active.reserve(literals);
      w->left.assign(j_->promises_.size(), 0);
      w->taken.assign(j_->promises_.size(), 0);
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
  std::vector<std::pair<std::shared_ptr<const Promise>, std::uint32_t>> known_promises_;
  std::optional<Error> error_;
};

Result<std::unique_ptr<Joint>> Joint::build(const Schema& schema, const Grid& grid, std::vector<JointConstraint> constraints,
                                            std::span<const double> squared_scale) {
  return JointBuilder(schema, grid, std::move(constraints), squared_scale).run();
}

}  // namespace kizzasi::logic
