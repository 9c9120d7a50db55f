#include "kizzasi/logic/binder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/logic/units.h"

namespace kizzasi::logic {
namespace {

constexpr const char* kLinear = "bounds, rates, and linear equalities and inequalities over channels";

// What an expression is over the real numbers: linear, plus at most one absolute value of something linear.
struct Shape {
  Linear linear;
  std::optional<Linear> inside;  // of | |
  double factor = 0;             // what | | is multiplied by
  std::string unit;              // empty: fits any; "*/s": anything per second
  std::size_t offset = 0;        // of | |, for messages

  bool constant() const { return linear.terms.empty() && !inside; }
};

// How | | is read while a program is made: as it stands, or as one of its two signs.
enum class Sign { kAbsolute, kPlus, kMinus };

class Binder {
 public:
  Binder(const Schema& schema, const Source& source) : schema_(schema), source_(source) {}

  Result<BoundConstraint> run(const Formula& formula) {
    BoundConstraint bound;
    bound.formula = formula;
    if (!conjunction(in_common_units(formula, schema_), bound.atoms)) return tl::unexpected(*error_);
    return bound;
  }
  bool beyond() const { return beyond_; }

 private:
  // --- Conditions ---------------------------------------------------------------------------------------------------------------------

  bool conjunction(const Formula& f, std::vector<Atom>& atoms) {
    switch (f.op) {
      case Op::kAnd:
        return conjunction(f.operands[0], atoms) && conjunction(f.operands[1], atoms);
      case Op::kAlways:  // enforcement holds at every frame anyway
        if (!f.interval.given) return conjunction(f.operands[0], atoms);
        return temporal(f);
      case Op::kCompare:
      case Op::kWithin:
      case Op::kIn:
        return each_channel(f, atoms);
      case Op::kOr:
      case Op::kXor:
      case Op::kImplies:
      case Op::kIff:
        return refuse(f, fmt::format("a choice between conditions ('{}')", word(f.op)), "Join with and what must hold at once.");
      case Op::kNot:
        return refuse(f, "'not'", "Write the opposite comparison: x <= 5 for not x > 5.");
      case Op::kRise:
      case Op::kFall:
      case Op::kHysteresis:
        return refuse(f, fmt::format("{}(...)", word(f.op)), "");
      case Op::kProposition:
        return bad(f.offset, fmt::format("'{}' is a number, not a condition", print(f)), "a comparison, such as x <= 3", "");
      case Op::kTrue:
      case Op::kFalse:
        return bad(f.offset, fmt::format("'{}' says nothing of a channel", word(f.op)), "a comparison, such as x <= 3", "");
      default:
        return temporal(f);
    }
  }

  bool temporal(const Formula& f) {
    if (f.interval.given) {
      if (auto samples = sample_interval(f.interval, schema_.step_ns, source_); !samples) {
        error_ = samples.error();
        return false;
      }
    }
    return refuse(f, fmt::format("the temporal operator '{}'{}", word(f.op), f.interval.given ? " with an interval" : ""), "");
  }

  // `* >= 0` says it of each channel; inside sum(*) and mean(*) it is the list of them.
  bool each_channel(const Formula& f, std::vector<Atom>& atoms) {
    if (!speaks_of_each(f)) return comparison(f, atoms);
    const std::vector<std::size_t> targets = schema_.with_role(Role::kTarget);
    if (targets.empty()) return bad(f.offset, "* stands for every predicted channel, and there is none", "a channel that is predicted", "");
    for (const std::size_t channel : targets) {
      every_ = channel;
      if (!comparison(f, atoms)) return false;
    }
    every_.reset();
    return true;
  }

  static bool speaks_of_each(const Formula& f) {
    if (f.op == Op::kEveryChannel) return true;
    const bool list = f.op == Op::kCall && (f.text == "sum" || f.text == "mean");
    return std::any_of(f.operands.begin(), f.operands.end(),
                       [&](const Formula& operand) { return !(list && operand.op == Op::kEveryChannel) && speaks_of_each(operand); });
  }

  bool comparison(const Formula& f, std::vector<Atom>& atoms) {
    if (f.op == Op::kIn) {
      return atom(f.operands[1], Comparison::kLessEqual, f.operands[0], f.offset, atoms) &&
             atom(f.operands[0], Comparison::kLessEqual, f.operands[2], f.offset, atoms);
    }
    if (f.op == Op::kWithin) {  // |a - b| <= tol, as the user would test it
      Formula gap;
      gap.op = Op::kSubtract;
      gap.offset = f.offset;
      gap.operands = {f.operands[0], f.operands[1]};
      Formula size;
      size.op = Op::kCall;
      size.text = "abs";
      size.offset = f.offset;
      size.operands = {std::move(gap)};
      return atom(size, Comparison::kLessEqual, f.operands[2], f.offset, atoms);
    }
    for (std::size_t i = 0; i < f.comparisons.size(); ++i) {
      const Formula &left = f.operands[i], &right = f.operands[i + 1];
      const Comparison sign = f.comparisons[i];
      const bool turned = sign == Comparison::kGreater || sign == Comparison::kGreaterEqual;
      const Comparison straight = sign == Comparison::kGreater        ? Comparison::kLess
                                  : sign == Comparison::kGreaterEqual ? Comparison::kLessEqual
                                                                      : sign;
      if (!atom(turned ? right : left, straight, turned ? left : right, f.offset, atoms)) return false;
    }
    return true;
  }

  // left <= right, left < right or left == right.
  bool atom(const Formula& left, Comparison sign, const Formula& right, std::size_t offset, std::vector<Atom>& atoms) {
    auto a = shape(left), b = a ? shape(right) : std::optional<Shape>{};
    if (!a || !b) return false;
    if (!same_unit(*a, *b, left, right)) return false;
    if (a->constant() && b->constant()) {
      return bad(offset, fmt::format("no channel stands in '{} {} {}'", print(left), to_string(sign), print(right)),
                 "a channel on one side", "");
    }
    auto difference = added(*a, *b, -1, offset);
    if (!difference) return false;
    Atom made;
    made.offset = offset;
    made.comparison = sign;
    if (!program(left, Sign::kAbsolute, made.left) || !program(right, Sign::kAbsolute, made.right)) return false;
    if (!difference->inside) {
      made.halves.push_back({made.left, made.right, difference->linear});
    } else {
      if (sign == Comparison::kEqual)
        return refuse_at(difference->offset, "an equality with an absolute value", "Write two constraints, or a range.");
      if (difference->factor < 0) {
        return refuse_at(difference->offset, "an absolute value that must be large", "It leaves two separate ranges; choose one of them.");
      }
      for (const Sign half : {Sign::kPlus, Sign::kMinus}) {
        Half part;
        if (!program(left, half, part.left) || !program(right, half, part.right)) return false;
        part.difference = difference->linear;
        part.difference.add(*difference->inside, half == Sign::kPlus ? difference->factor : -difference->factor);
        made.halves.push_back(std::move(part));
      }
    }
    gather_readings(made);
    const bool empty = std::all_of(made.halves.begin(), made.halves.end(), [](const Half& half) {
      return std::all_of(half.difference.terms.begin(), half.difference.terms.end(),
                         [](const Term& term) { return term.coefficient == 0 || term.reading.tense == Tense::kPrevious; });
    });
    if (empty) {
      return bad(offset, fmt::format("no present value is left in '{} {} {}'", print(left), to_string(sign), print(right)),
                 "a condition on a value of now", "");
    }
    atoms.push_back(std::move(made));
    return true;
  }

  static void gather_readings(Atom& atom) {
    std::vector<std::uint32_t> present;
    for (const Program* program : {&atom.left, &atom.right}) {
      for (const Program::Step& step : program->steps) {
        if (step.code != Program::Code::kRead) continue;
        if (step.reading.tense != Tense::kPrevious) {
          if (std::find(present.begin(), present.end(), step.reading.channel) != present.end()) atom.repeats = true;
          present.push_back(step.reading.channel);
        }
        if (std::find(atom.readings.begin(), atom.readings.end(), step.reading) == atom.readings.end())
          atom.readings.push_back(step.reading);
      }
    }
  }

  // --- Expressions over the real numbers ----------------------------------------------------------------------------------------------

  std::optional<Shape> shape(const Formula& f) {
    switch (f.op) {
      case Op::kNumber: {
        Shape s;
        s.linear.constant = f.number;
        s.unit = f.text;
        return s;
      }
      case Op::kChannel:
      case Op::kEveryChannel: {
        const auto channel = channel_of(f);
        if (!channel) return {};
        return reading({static_cast<std::uint32_t>(*channel), Tense::kNow, From::kMeasured}, schema_.channels[*channel].unit);
      }
      case Op::kNegate: {
        auto s = shape(f.operands[0]);
        if (!s) return {};
        return scaled(*std::move(s), -1);
      }
      case Op::kAdd:
      case Op::kSubtract: {
        auto a = shape(f.operands[0]), b = a ? shape(f.operands[1]) : std::optional<Shape>{};
        if (!a || !b || !same_unit(*a, *b, f.operands[0], f.operands[1])) return {};
        return added(*a, *b, f.op == Op::kAdd ? 1 : -1, f.offset);
      }
      case Op::kMultiply:
        return product(f);
      case Op::kDivide:
        return quotient(f);
      case Op::kCall:
        return call(f);
      case Op::kUser:
        return not_linear(f, "a function of the caller's own");
      default:
        (void)bad(f.offset, fmt::format("'{}' is true or false, not a number", print(f)), "a number", "");
        return {};
    }
  }

  static Shape reading(Reading what, std::string unit) {
    Shape s;
    s.linear.terms.push_back({what, 1});
    s.unit = std::move(unit);
    return s;
  }

  static Shape scaled(Shape s, double factor) {
    Linear linear;
    linear.add(s.linear, factor);
    s.linear = std::move(linear);
    s.factor *= factor;
    return s;
  }

  std::optional<Shape> added(const Shape& a, const Shape& b, double factor, std::size_t offset) {
    Shape sum = a;
    sum.linear.add(b.linear, factor);
    if (sum.unit.empty()) sum.unit = b.unit;
    if (b.inside) {
      if (a.inside) {
        (void)refuse_at(offset, "a sum of absolute values", "");
        return {};
      }
      sum.inside = b.inside;
      sum.factor = factor * b.factor;
      sum.offset = b.offset;
    }
    return sum;
  }

  std::optional<Shape> product(const Formula& f) {
    auto a = shape(f.operands[0]), b = a ? shape(f.operands[1]) : std::optional<Shape>{};
    if (!a || !b) return {};
    if (!a->constant() && !b->constant()) return not_linear(f, "a product of channels");
    const bool first = a->constant();
    const double factor = first ? a->linear.constant : b->linear.constant;
    const std::string unit = a->unit.empty() ? b->unit : b->unit.empty() ? a->unit : "";  // a product of units fits any
    Shape s = scaled(first ? *std::move(b) : *std::move(a), factor);
    s.unit = unit;
    return s;
  }

  std::optional<Shape> quotient(const Formula& f) {
    auto a = shape(f.operands[0]), b = a ? shape(f.operands[1]) : std::optional<Shape>{};
    if (!a || !b) return {};
    if (!b->constant()) return not_linear(f, "a division by a channel");
    if (b->linear.constant == 0) {
      (void)bad(f.operands[1].offset, "a division by zero", "a number other than 0", "");
      return {};
    }
    const std::string unit = b->unit.empty() ? a->unit : "";
    const double divisor = b->linear.constant;
    Shape s = *std::move(a);
    for (Term& term : s.linear.terms) term.coefficient /= divisor;
    s.linear.constant /= divisor;
    s.factor /= divisor;
    s.unit = unit;
    return s;
  }

  std::optional<Shape> call(const Formula& f) {
    if (f.text == "abs") return absolute(f);
    if (f.text == "rate") return rate(f);
    if (f.text == "prev") return previous(f);
    const bool window = f.operands.size() == 2 && f.operands[1].op == Op::kNumber &&
                        (nanoseconds(f.operands[1].text).has_value() || f.operands[1].text == "samples");
    if (f.text == "sum" || (f.text == "mean" && !window)) return total(f);
    (void)refuse(f, fmt::format("{}(...)", f.text), f.text == "max" || f.text == "min" ? "Bound each of its channels." : "");
    return {};
  }

  std::optional<Shape> absolute(const Formula& f) {
    auto s = shape(f.operands[0]);
    if (!s) return {};
    if (s->inside) {
      (void)refuse(f, "an absolute value inside another", "");
      return {};
    }
    if (s->constant()) {
      s->linear.constant = std::abs(s->linear.constant);
      return s;
    }
    s->inside = std::move(s->linear);
    s->linear = {};
    s->factor = 1;
    s->offset = f.offset;
    return s;
  }

  std::optional<Shape> rate(const Formula& f) {
    const auto channel = channel_argument(f);
    if (!channel) return {};
    const std::string& unit = schema_.channels[*channel].unit;
    const char* per = schema_.step_ns == 0 ? "row" : "s";
    return reading({static_cast<std::uint32_t>(*channel), Tense::kRate, from_of(f)}, fmt::format("{}/{}", unit.empty() ? "*" : unit, per));
  }

  std::optional<Shape> previous(const Formula& f) {
    const auto channel = channel_argument(f);
    if (!channel) return {};
    if (f.operands.size() == 2 && (f.operands[1].op != Op::kNumber || f.operands[1].number != 1 || !f.operands[1].text.empty())) {
      (void)refuse_at(f.operands[1].offset, fmt::format("looking back by {}", print(f.operands[1])),
                      "prev(x, 1) is the value one frame ago.");
      return {};
    }
    return reading({static_cast<std::uint32_t>(*channel), Tense::kPrevious, from_of(f)}, schema_.channels[*channel].unit);
  }

  // a + b + c, from left to right; the mean divides by their number.
  std::optional<Shape> total(const Formula& f) {
    std::optional<Shape> sum;
    for (const Formula& part : listed(f, schema_)) {
      auto next = shape(part);
      if (!next) return {};
      if (!sum) {
        sum = std::move(next);
        continue;
      }
      if (!same_unit(*sum, *next, f.operands.front(), part)) return {};
      sum = added(*sum, *next, 1, f.offset);
      if (!sum) return {};
    }
    if (sum && f.text == "mean") {
      const auto count = static_cast<double>(listed(f, schema_).size());
      for (Term& term : sum->linear.terms) term.coefficient /= count;
      sum->linear.constant /= count;
      sum->factor /= count;
    }
    if (!sum) (void)bad(f.offset, "there is no predicted channel to add", "a channel", "");
    return sum;
  }

  static From from_of(const Formula& f) { return f.from == From::kCommanded ? From::kCommanded : From::kMeasured; }

  std::optional<std::size_t> channel_argument(const Formula& f) {
    const Formula& argument = f.operands[0];
    if (argument.op == Op::kChannel || argument.op == Op::kEveryChannel) return channel_of(argument);
    (void)refuse_at(argument.offset, fmt::format("{} of an expression", f.text), fmt::format("{} takes one channel.", f.text));
    return {};
  }

  std::optional<std::size_t> channel_of(const Formula& f) {
    if (f.op == Op::kEveryChannel) return every_;
    auto channel = channel_named(f.text, schema_, source_, f.offset);
    if (channel) return *channel;
    if (!error_) error_ = std::move(channel.error());
    return {};
  }

  // --- Units --------------------------------------------------------------------------------------------------------------------------

  bool same_unit(const Shape& a, const Shape& b, const Formula& left, const Formula& right) {
    if (units_fit(a.unit, b.unit)) return true;
    return bad(
        right.offset,
        fmt::format("the units differ: '{}' is in {}, '{}' is in {}", print(left), unit_named(a.unit), print(right), unit_named(b.unit)),
        fmt::format("both in {}", unit_named(a.constant() ? b.unit : a.unit)), "Only units that measure the same are converted.");
  }

  // --- Programs: the same expression, to be evaluated as it is written ----------------------------------------------------------------

  bool program(const Formula& f, Sign sign, Program& out) {
    if (!emit(f, sign, out.steps)) return false;
    int height = 0, highest = 0;
    for (const Program::Step& step : out.steps) {
      using Code = Program::Code;
      if (step.code == Code::kConstant || step.code == Code::kRead) highest = std::max(highest, ++height);
      if (step.code == Code::kAdd || step.code == Code::kSubtract || step.code == Code::kMultiply || step.code == Code::kDivide) --height;
    }
    return highest <= Program::kDeepest || bad(f.offset, "the expression is nested too deeply", "at most 60 levels", "");
  }

  bool emit(const Formula& f, Sign sign, std::vector<Program::Step>& steps) {
    using Code = Program::Code;
    const auto operands = [&](Code code) {
      for (const Formula& operand : f.operands) {
        if (!emit(operand, sign, steps)) return false;
      }
      steps.push_back({code, {}, 0});
      return true;
    };
    switch (f.op) {
      case Op::kNumber:
        steps.push_back({Code::kConstant, {}, f.number});
        return true;
      case Op::kChannel:
      case Op::kEveryChannel:
        return emit_reading(f, Tense::kNow, From::kMeasured, steps);
      case Op::kNegate:
        return operands(Code::kNegate);
      case Op::kAdd:
        return operands(Code::kAdd);
      case Op::kSubtract:
        return operands(Code::kSubtract);
      case Op::kMultiply:
        return operands(Code::kMultiply);
      case Op::kDivide:
        return operands(Code::kDivide);
      default:
        break;
    }
    if (f.text == "rate") return emit_reading(f.operands[0], Tense::kRate, from_of(f), steps);
    if (f.text == "prev") return emit_reading(f.operands[0], Tense::kPrevious, from_of(f), steps);
    if (f.text == "abs") {
      const auto begin = static_cast<std::ptrdiff_t>(steps.size());
      if (!emit(f.operands[0], sign, steps)) return false;
      const bool constant =
          std::none_of(steps.begin() + begin, steps.end(), [](const Program::Step& step) { return step.code == Code::kRead; });
      if (sign == Sign::kAbsolute || constant) steps.push_back({Code::kAbs, {}, 0});
      if (sign == Sign::kMinus && !constant) steps.push_back({Code::kNegate, {}, 0});
      return true;
    }
    const std::vector<Formula> parts = listed(f, schema_);  // sum, mean
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!emit(parts[i], sign, steps)) return false;
      if (i > 0) steps.push_back({Code::kAdd, {}, 0});
    }
    if (f.text == "mean") {
      steps.push_back({Code::kConstant, {}, static_cast<double>(parts.size())});
      steps.push_back({Code::kDivide, {}, 0});
    }
    return true;
  }

  bool emit_reading(const Formula& f, Tense tense, From from, std::vector<Program::Step>& steps) {
    const auto channel = channel_of(f);
    if (channel) steps.push_back({Program::Code::kRead, {static_cast<std::uint32_t>(*channel), tense, from}, 0});
    return channel.has_value();
  }

  // --- Errors -------------------------------------------------------------------------------------------------------------------------

  std::optional<Shape> not_linear(const Formula& f, const char* what) {
    (void)refuse(f, fmt::format("{} ('{}')", what, print(f)), "Multiply and divide by numbers only.");
    return {};
  }

  bool refuse(const Formula& f, const std::string& what, std::string hint) { return refuse_at(f.offset, what, std::move(hint)); }
  bool refuse_at(std::size_t offset, const std::string& what, std::string hint) {
    if (!error_) beyond_ = true;
    return bad(offset, fmt::format("{} cannot stand here", what), kLinear, std::move(hint));
  }
  bool bad(std::size_t offset, std::string what, std::string expected, std::string hint) {
    if (!error_) error_ = Error{Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)};
    return false;
  }

  const Schema& schema_;
  const Source& source_;
  std::optional<std::size_t> every_;
  std::optional<Error> error_;
  bool beyond_ = false;
};

}  // namespace

Result<BoundConstraint> bind(const Formula& formula, const Schema& schema, const Source& source, bool* beyond) {
  Binder binder(schema, source);
  auto bound = binder.run(formula);
  if (beyond != nullptr) *beyond = binder.beyond();
  return bound;
}

}  // namespace kizzasi::logic
