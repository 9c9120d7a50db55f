#include "kizzasi/logic/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "kizzasi/logic/binder.h"
#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/clauses.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/logic/units.h"

namespace kizzasi::logic {
namespace {

std::optional<Policy> policy_of(std::string_view word) {
  if (word == "project") return Policy::kProject;
  if (word == "reject") return Policy::kReject;
  if (word == "hold") return Policy::kHold;
  if (word == "warn") return Policy::kWarn;
  return {};
}

// Where two linear forms agree up to a factor over the channels that move: that factor, else nothing.
std::optional<double> factor_between(const std::vector<Member>& direction, const std::vector<Member>& other) {
  if (direction.size() != other.size()) return {};
  double factor = 0;
  const auto part = [](const Member& m, int i) { return i == 0 ? m.plain : i == 1 ? m.measured : m.commanded; };
  for (std::size_t j = 0; j < direction.size(); ++j) {
    if (direction[j].channel != other[j].channel) return {};
    for (int i = 0; i < 3; ++i) {
      const double mine = part(direction[j], i), theirs = part(other[j], i);
      if (mine == 0 && theirs == 0) continue;
      if (mine == 0 || theirs == 0) return {};
      const double ratio = theirs / mine;
      if (factor == 0) factor = ratio;
      if (!(std::abs(ratio - factor) <= 1e-12 * std::abs(factor))) return {};
    }
  }
  return factor == 0 ? std::optional<double>{} : factor;
}

class Compiler {
 public:
  // `joint`: (constraints) 1 where it is known to need more than bounds and sums along one direction.
  Compiler(const Schema& schema, EmittedGrid grid, std::vector<std::uint8_t>& joint) : grid_(grid), joint_(joint) { out_.schema = schema; }

  Result<Compiled> run(std::span<const ConstraintText> constraints, std::span<const double> scale) {
    if (!settings(scale)) return tl::unexpected(*error_);
    for (const ConstraintText& text : constraints) {
      if (auto done = add(text); !done) return tl::unexpected(done.error());
    }
    if (!sort_atoms() || !spread() || !order_boxes() || !order_groups() || !meets() || !groups_meet())
      return tl::unexpected(error_ ? *error_ : Error{});
    if (!joint_constraints_.empty()) {
      auto joint = Joint::build(out_.schema, out_.grid, std::move(joint_constraints_), out_.squared_scale);
      if (!joint) return tl::unexpected(joint.error());
      out_.joint = *std::move(joint);
      for (const JointClause& clause : out_.joint->clauses()) {
        CompiledConstraint& constraint = out_.constraints[out_.joint->constraints()[clause.constraint].index];
        for (const std::uint32_t channel : clause.channels) {
          if (std::find(constraint.channels.begin(), constraint.channels.end(), channel) == constraint.channels.end()) {
            constraint.channels.push_back(channel);
          }
        }
      }
    }
    return std::move(out_);
  }
  // True where more constraints were found to need to be enforced together: compile again.
  bool spreads() const { return spreads_; }

 private:
  bool settings(std::span<const double> scale) {
    if (grid_.decimals < -1 || grid_.decimals > Grid::kMostDecimals) {
      return bad({Fault::kBadUse, fmt::format("{} decimals", grid_.decimals), "", "0 to 22, or -1 for all digits", ""});
    }
    out_.grid = Grid(grid_.decimals);
    const std::size_t channels = out_.schema.size();
    if (!scale.empty() && scale.size() != channels) {
      return bad({Fault::kBadUse, fmt::format("{} scales for {} channels", scale.size(), channels), "", "one for each channel", ""});
    }
    out_.squared_scale.assign(channels, 1);
    for (std::size_t i = 0; i < scale.size(); ++i) {
      if (!(scale[i] >= 1e-100 && scale[i] <= 1e100)) {
        return bad({Fault::kBadUse, fmt::format("the scale of '{}' is {}", out_.schema.channels[i].name, scale[i]), "",
                    "a number between 1e-100 and 1e100", ""});
      }
      out_.squared_scale[i] = scale[i] * scale[i];
    }
    out_.moves.assign(channels, 0);
    for (const std::size_t channel : out_.schema.with_role(Role::kTarget)) out_.moves[channel] = 1;
    out_.hard.resize(channels);
    out_.soft.resize(channels);
    out_.group_of.assign(channels, -1);
    return true;
  }

  Result<void> add(const ConstraintText& text) {
    const Source source = source_of(text);
    const auto policy = policy_of(text.otherwise);
    if (!policy) {
      return fail({Fault::kBadInput, fmt::format("else is '{}'", text.otherwise), source.place(0), "project, reject, hold or warn", ""});
    }
    if (text.soft && *policy != Policy::kProject) {
      return fail({Fault::kBadInput, fmt::format("a soft constraint has else = '{}'", text.otherwise), source.place(0),
                   "soft = true only with else = project", "A soft constraint is never refused: it costs."});
    }
    if (!(text.weight > 0) || std::isinf(text.weight)) {
      return fail({Fault::kBadInput, fmt::format("the weight is {}", text.weight), source.place(0), "a number above 0", ""});
    }
    auto formula = parse_formula(source);
    if (!formula) return tl::unexpected(formula.error());
    std::uint8_t& joint = joint_[out_.constraints.size()];
    BoundConstraint bound;
    std::vector<Choice> clauses;
    if (joint == 0) {
      bool beyond = false;
      auto simple = bind(*formula, out_.schema, source, &beyond);
      if (!simple && !beyond) return tl::unexpected(simple.error());
      if (simple) bound = *std::move(simple);
      if (beyond) joint = 1;
    }
    if (joint != 0) {
      auto made = clauses_of(*formula, out_.schema, source);
      if (!made) return tl::unexpected(made.error());
      clauses = *std::move(made);
    }
    CompiledConstraint constraint;
    constraint.text = text;
    if (constraint.text.name.empty()) constraint.text.name = text.that;
    constraint.read_as = bracketed(in_common_units(*formula, out_.schema));
    constraint.policy = *policy;
    constraint.first_atom = static_cast<std::uint32_t>(out_.atoms.size());
    constraint.atoms = static_cast<std::uint32_t>(bound.atoms.size());
    for (Atom& atom : bound.atoms) {
      atom.constraint = static_cast<std::uint32_t>(out_.constraints.size());
      out_.atoms.push_back(std::move(atom));
    }
    if (joint != 0) {
      constraint.joint = static_cast<std::int64_t>(joint_constraints_.size());
      joint_constraints_.push_back(
          {static_cast<std::uint32_t>(out_.constraints.size()), constraint.text, constraint.enforced(), std::move(clauses)});
    }
    out_.constraints.push_back(std::move(constraint));
    return {};
  }

  // --- Forms ----------------------------------------------------------------------------------------------------------------------------

  bool sort_atoms() {
    out_.box_of.assign(out_.atoms.size(), -1);
    for (std::uint32_t i = 0; i < out_.atoms.size(); ++i) {
      const Atom& atom = out_.atoms[i];
      CompiledConstraint& constraint = out_.constraints[atom.constraint];
      std::vector<std::uint32_t> moving;
      bool fixed = true;
      for (const Reading& reading : atom.readings) {
        const bool moves = reading.tense != Tense::kPrevious && out_.moves[reading.channel] != 0;
        fixed = fixed && moves && reading.tense == Tense::kNow;
        if (moves && std::find(moving.begin(), moving.end(), reading.channel) == moving.end()) moving.push_back(reading.channel);
      }
      for (const std::uint32_t channel : moving) {
        if (std::find(constraint.channels.begin(), constraint.channels.end(), channel) == constraint.channels.end()) {
          constraint.channels.push_back(channel);
        }
      }
      out_.forms.push_back(moving.empty() ? Form::kGiven : moving.size() > 1 ? Form::kRow : fixed ? Form::kBox : Form::kRate);
      if (moving.empty()) continue;
      const bool done = moving.size() == 1 ? add_box(i, moving.front(), fixed) : add_row(i, moving);
      if (!done) return false;
    }
    return true;
  }

  // What shares a channel with constraints that are enforced together is enforced together with them.
  bool spread() {
    std::vector<std::uint8_t> taken(out_.schema.size(), 0);
    for (const JointConstraint& constraint : joint_constraints_) {
      if (!constraint.enforced) continue;
      for (const std::size_t channel : channels_of(constraint.clauses)) taken[channel] = 1;
    }
    for (std::size_t i = 0; i < out_.constraints.size(); ++i) {
      const CompiledConstraint& constraint = out_.constraints[i];
      if (joint_[i] != 0 || !constraint.enforced()) continue;
      if (std::any_of(constraint.channels.begin(), constraint.channels.end(), [&](std::uint32_t c) { return taken[c] != 0; })) join(i);
    }
    return !spreads_;
  }

  // The predicted channels that clauses name, also those of the past.
  std::vector<std::size_t> channels_of(const std::vector<Choice>& clauses) const {
    std::vector<std::size_t> channels;
    const auto visit = [&](const auto& self, const Formula& f) -> void {
      if (f.op == Op::kEveryChannel) {
        for (const std::size_t channel : out_.schema.with_role(Role::kTarget)) channels.push_back(channel);
      }
      if (f.op == Op::kChannel || f.op == Op::kProposition) {
        const auto channel = channel_named(f.text, out_.schema, {}, 0);
        if (channel && out_.moves[*channel] != 0) channels.push_back(*channel);
      }
      for (const Formula& operand : f.operands) self(self, operand);
    };
    const auto visit_all = [&](const auto& self, const Choice& choice) -> void {
      for (const Branch& branch : choice) {
        for (const Literal& literal : branch) {
          if (literal.promise) {
            self(self, literal.promise->goal);
            self(self, literal.promise->stay);
          } else {
            visit(visit, literal.formula);
          }
        }
      }
    };
    for (const Choice& choice : clauses) visit_all(visit_all, choice);
    return channels;
  }

  void join(std::size_t constraint) {
    joint_[constraint] = 1;
    spreads_ = true;
  }

  bool add_box(std::uint32_t index, std::uint32_t channel, bool fixed) {
    const Atom& atom = out_.atoms[index];
    Box box{index, channel, fixed, 0, 0};
    if (fixed) {
      Moment moment;
      moment.timed = out_.timed();
      const Range range = range_of(atom, channel, out_.moves.data(), moment, out_.grid);
      if (range.empty()) return no_value(atom, channel);
      box.low = range.low;
      box.high = range.high;
    } else if (atom.comparison == Comparison::kEqual && !out_.grid.all_doubles()) {
      return needs_all_digits(atom);
    }
    out_.box_of[index] = static_cast<std::int64_t>(out_.boxes.size());
    out_.boxes.push_back(box);
    return true;
  }

  bool no_value(const Atom& atom, std::uint32_t channel) {
    const std::string& name = out_.schema.channels[channel].name;
    if (out_.grid.all_doubles()) return bad_at(atom, fmt::format("no value of '{}' obeys it", name), "a condition that can hold", "");
    return bad_at(atom, fmt::format("no number with {} decimals obeys it as a value of '{}'", out_.grid.decimals(), name),
                  "room for at least one such number", "Print more decimals, or allow a tolerance: == b +- tol.");
  }

  bool needs_all_digits(const Atom& atom) {
    return bad_at(atom, fmt::format("an equality cannot be kept in text with {} decimals", out_.grid.decimals()),
                  "== b +- tol, or text with all digits", "");
  }

  std::vector<Member> direction_of(const Half& half, const std::vector<std::uint32_t>& moving) const {
    std::vector<Member> direction;
    for (const std::uint32_t channel : moving) direction.push_back({channel, 0, 0, 0});
    std::sort(direction.begin(), direction.end(), [](const Member& a, const Member& b) { return a.channel < b.channel; });
    for (const Term& term : half.difference.terms) {
      if (term.reading.tense == Tense::kPrevious) continue;
      const auto member =
          std::find_if(direction.begin(), direction.end(), [&](const Member& m) { return m.channel == term.reading.channel; });
      if (member == direction.end()) continue;
      double& part = term.reading.tense == Tense::kNow      ? member->plain
                     : term.reading.from == From::kMeasured ? member->measured
                                                            : member->commanded;
      part += term.coefficient;
    }
    return direction;
  }

  bool add_row(std::uint32_t index, const std::vector<std::uint32_t>& moving) {
    const Atom& atom = out_.atoms[index];
    const CompiledConstraint& constraint = out_.constraint_of(index);
    if (atom.comparison == Comparison::kEqual && !out_.grid.all_doubles()) return needs_all_digits(atom);
    if (!constraint.enforced()) return true;
    const std::vector<Member> direction = direction_of(atom.halves.front(), moving);
    Group* group = nullptr;
    for (const Member& member : direction) {
      const std::int64_t in = out_.group_of[member.channel];
      if (in >= 0) group = &out_.groups[static_cast<std::size_t>(in)];
      if (group != nullptr) break;
    }
    if (group == nullptr) {
      for (const Member& member : direction) out_.group_of[member.channel] = static_cast<std::int64_t>(out_.groups.size());
      out_.groups.push_back({direction, {}, {}, {}});
      group = &out_.groups.back();
      if (constraint.text.soft) group->weight = constraint.text.weight;
    } else if (constraint.text.soft || group->weight) {
      return join_with(atom, *group);
    }
    Row row{index, {}};
    for (const Half& half : atom.halves) {
      const auto factor = factor_between(group->members, direction_of(half, moving));
      if (!factor) return join_with(atom, *group);
      row.factors.push_back(*factor);
    }
    group->rows.push_back(std::move(row));
    return true;
  }

  // Another direction over the same channels, or a soft sum beside a hard one: a program solves them together.
  bool join_with(const Atom& atom, const Group& group) {
    join(atom.constraint);
    for (const Row& row : group.rows) join(out_.atoms[row.atom].constraint);
    return false;
  }

  // --- Order: lower priority numbers first; among equals bounds, then rates, then coupled conditions; then as written -------------------

  std::tuple<std::int64_t, int, std::uint32_t> rank(std::uint32_t atom) const {
    return {out_.constraint_of(atom).text.priority, static_cast<int>(out_.forms[atom]), atom};
  }

  bool order_boxes() {
    for (std::uint32_t i = 0; i < out_.boxes.size(); ++i) {
      const Box& box = out_.boxes[i];
      const CompiledConstraint& constraint = out_.constraint_of(box.atom);
      if (!constraint.enforced()) continue;
      if (constraint.text.soft && out_.group_of[box.channel] >= 0) {
        join(out_.atoms[box.atom].constraint);
        return false;
      }
      (constraint.text.soft ? out_.soft : out_.hard)[box.channel].push_back(i);
    }
    for (auto& list : out_.hard) {
      std::sort(list.begin(), list.end(),
                [&](std::uint32_t a, std::uint32_t b) { return rank(out_.boxes[a].atom) < rank(out_.boxes[b].atom); });
    }
    return true;
  }

  bool order_groups() {
    for (Group& group : out_.groups) {
      for (std::uint32_t j = 0; j < group.members.size(); ++j) {
        for (const std::uint32_t box : out_.hard[group.members[j].channel]) group.order.push_back({false, box, j});
      }
      for (std::uint32_t r = 0; r < group.rows.size(); ++r) group.order.push_back({true, r, 0});
      const auto atom_of = [&](const Group::Step& step) { return step.row ? group.rows[step.index].atom : out_.boxes[step.index].atom; };
      std::sort(group.order.begin(), group.order.end(),
                [&](const Group::Step& a, const Group::Step& b) { return rank(atom_of(a)) < rank(atom_of(b)); });
    }
    return true;
  }

  // --- Bounds that leave nothing are a mistake of the file, and found here --------------------------------------------------------------

  bool meets() {
    for (std::size_t channel = 0; channel < out_.schema.size(); ++channel) {
      const Box *low = nullptr, *high = nullptr;
      for (const std::uint32_t index : out_.hard[channel]) {
        const Box& box = out_.boxes[index];
        if (!box.fixed) continue;
        if (low == nullptr || box.low > low->low) low = &box;
        if (high == nullptr || box.high < high->high) high = &box;
      }
      if (low == nullptr || low->low <= high->high) continue;
      const Atom& later = out_.atoms[std::max(low->atom, high->atom)];
      const std::string& name = out_.schema.channels[channel].name;
      const std::string &one = out_.constraint_of(low->atom).text.name, &other = out_.constraint_of(high->atom).text.name;
      const std::string grid = out_.grid.all_doubles() ? "" : fmt::format(" with {} decimals", out_.grid.decimals());
      if (out_.atoms[low->atom].constraint == out_.atoms[high->atom].constraint) {
        return bad_at(later, fmt::format("no value of '{}'{} obeys it", name, grid), "a lower bound that is not above the upper one", "");
      }
      return bad_at(later, fmt::format("no value of '{}'{} obeys both '{}' and '{}'", name, grid, one, other), "bounds that leave room",
                    "");
    }
    return true;
  }

  bool groups_meet() {
    for (const Group& group : out_.groups) {
      // The bounds that the file itself sets: of each member, and of the sum.
      double least = 0, most = 0, size = 0, span = 0;
      for (const Member& member : group.members) {
        if (member.measured != 0 || member.commanded != 0) return true;
        Range range;
        for (const std::uint32_t index : out_.hard[member.channel]) {
          const Box& box = out_.boxes[index];
          if (box.fixed) range = {std::max(range.low, box.low), std::min(range.high, box.high)};
        }
        const double a = member.plain;
        if (a == 0) continue;
        least += a * (a > 0 ? range.low : range.high);
        most += a * (a > 0 ? range.high : range.low);
        size += std::abs(a) *
                std::max(std::isfinite(range.low) ? std::abs(range.low) : 0.0, std::isfinite(range.high) ? std::abs(range.high) : 0.0);
        span += std::abs(a);
      }
      Range sum;
      for (const Row& row : group.rows) {
        const Atom& atom = out_.atoms[row.atom];
        const bool fixed = std::all_of(atom.readings.begin(), atom.readings.end(), [&](const Reading& reading) {
          return reading.tense == Tense::kNow && out_.moves[reading.channel] != 0;
        });
        if (!fixed) continue;
        for (std::size_t h = 0; h < atom.halves.size(); ++h) {
          const double edge = -atom.halves[h].difference.constant / row.factors[h];
          const bool equal = atom.comparison == Comparison::kEqual;
          if (equal || row.factors[h] > 0) sum.high = std::min(sum.high, edge);
          if (equal || row.factors[h] < 0) sum.low = std::max(sum.low, edge);
        }
        const double rounding =
            1e-12 * (size + (std::isfinite(sum.low) ? std::abs(sum.low) : 0) + (std::isfinite(sum.high) ? std::abs(sum.high) : 0));
        if (group.weight) continue;
        if (sum.low > sum.high + rounding || least > sum.high + rounding || most < sum.low - rounding) {
          return bad_at(atom, fmt::format("no values within the bounds of its channels obey '{}'", out_.constraint_of(row.atom).text.name),
                        "bounds and sums that can hold together", "");
        }
        if (!out_.grid.all_doubles() && sum.high - sum.low < span / std::pow(10.0, out_.grid.decimals())) {
          return bad_at(atom, fmt::format("text with {} decimals is too coarse for it", out_.grid.decimals()),
                        fmt::format("a width of at least {}", number_text(span / std::pow(10.0, out_.grid.decimals()))),
                        "Print more decimals, or widen it.");
        }
      }
    }
    return true;
  }

  bool bad(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool bad_at(const Atom& atom, std::string what, std::string expected, std::string hint) {
    const Source source = source_of(out_.constraints[atom.constraint].text);
    return bad({Fault::kBadInput, std::move(what), source.place(atom.offset), std::move(expected), std::move(hint)});
  }

  EmittedGrid grid_;
  Compiled out_;
  std::optional<Error> error_;
  std::vector<std::uint8_t>& joint_;
  std::vector<JointConstraint> joint_constraints_;
  bool spreads_ = false;
};

}  // namespace

Result<Compiled> compile(const Schema& schema, std::span<const ConstraintText> constraints, EmittedGrid grid,
                         std::span<const double> scale) {
  std::vector<std::uint8_t> joint(constraints.size(), 0);
  for (;;) {
    Compiler compiler(schema, grid, joint);
    auto compiled = compiler.run(constraints, scale);
    if (compiled || !compiler.spreads()) return compiled;
  }
}

}  // namespace kizzasi::logic
