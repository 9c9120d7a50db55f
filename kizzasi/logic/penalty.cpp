#include "kizzasi/logic/penalty.h"

#include <cmath>
#include <limits>
#include <vector>

#include "kizzasi/logic/binder.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {

using namespace logic;

struct ConstraintPenalty::Conditions {
  struct Condition {
    Linear difference;
    bool equal = false;
    double weight = 1;
  };
  std::vector<Condition> list;
  PenaltyForm form = PenaltyForm::kSquared;
  bool timed = true;
};

namespace {

// What one term adds to the difference, and how it moves with the value now and before.
struct Slope {
  double amount = 0, now = 0, before = 0;
};

Slope slope_of(const Term& term, std::span<const double> value, std::span<const double> before, double seconds) {
  const std::size_t c = term.reading.channel;
  if (term.reading.tense == Tense::kNow) return {term.coefficient * value[c], term.coefficient, 0};
  if (before.empty()) return {std::numeric_limits<double>::quiet_NaN(), 0, 0};
  if (term.reading.tense == Tense::kPrevious) return {term.coefficient * before[c], 0, term.coefficient};
  const double per_second = term.coefficient / seconds;
  return {per_second * (value[c] - before[c]), per_second, -per_second};
}

}  // namespace

ConstraintPenalty::ConstraintPenalty(std::unique_ptr<Conditions> conditions) : conditions_(std::move(conditions)) {}
ConstraintPenalty::ConstraintPenalty(ConstraintPenalty&&) noexcept = default;
ConstraintPenalty& ConstraintPenalty::operator=(ConstraintPenalty&&) noexcept = default;
ConstraintPenalty::~ConstraintPenalty() = default;

Result<ConstraintPenalty> ConstraintPenalty::compile(const Schema& schema, std::span<const ConstraintText> constraints, PenaltyForm form) {
  auto conditions = std::make_unique<Conditions>();
  conditions->form = form;
  conditions->timed = schema.step_ns != 0;
  for (const ConstraintText& text : constraints) {
    const Source source{text.that, text.where, text.line, text.column};
    const auto formula = parse_formula(source);
    if (!formula) return fail(formula.error());
    const auto bound = bind(*formula, schema, source);
    if (!bound) return fail(bound.error());
    if (text.otherwise == "warn") continue;
    for (const Atom& atom : bound->atoms) {
      for (const Half& half : atom.halves)
        conditions->list.push_back({half.difference, atom.comparison == Comparison::kEqual, text.weight});
    }
  }
  return ConstraintPenalty(std::move(conditions));
}

double ConstraintPenalty::value(std::span<const double> value, std::span<const double> before, double seconds, double scale,
                                std::span<double> gradient, std::span<double> before_gradient) const noexcept {
  const double elapsed = conditions_->timed ? seconds : 1;
  double total = 0;
  for (const Conditions::Condition& condition : conditions_->list) {
    double g = condition.difference.constant;
    for (const Term& term : condition.difference.terms) g += slope_of(term, value, before, elapsed).amount;
    if (!(condition.equal ? g != 0 : g > 0) || std::isnan(g)) continue;
    const double size = std::abs(g);
    const bool squared = conditions_->form == PenaltyForm::kSquared;
    total += condition.weight * (squared ? size * size : size);
    const double slope = scale * condition.weight * (squared ? 2 * g : std::copysign(1.0, g));
    for (const Term& term : condition.difference.terms) {
      const Slope part = slope_of(term, value, before, elapsed);
      if (!gradient.empty()) gradient[term.reading.channel] += slope * part.now;
      if (!before_gradient.empty()) before_gradient[term.reading.channel] += slope * part.before;
    }
  }
  return scale * total;
}

}  // namespace kizzasi
