#include "kizzasi/logic/predicate.h"

#include <algorithm>

namespace kizzasi::logic {

double read(const Reading& reading, const Moment& moment) noexcept {
  if (reading.tense == Tense::kNow) return moment.now(reading.channel);
  const double before = moment.past.value(reading.channel, reading.from);
  if (reading.tense == Tense::kPrevious) return before;
  const double now = moment.now(reading.channel);
  const double elapsed = moment.elapsed(reading.channel, reading.from);
  // In no time nothing may move: no change is rate 0, any other is beyond every limit.
  if (elapsed == 0 && now == before) return 0;
  return (now - before) / elapsed;
}

double Program::evaluate(const Moment& moment) const noexcept {
  double stack[kDeepest];
  int top = -1;
  for (const Step& step : steps) {
    switch (step.code) {
      case Code::kConstant:
        stack[++top] = step.constant;
        break;
      case Code::kRead:
        stack[++top] = read(step.reading, moment);
        break;
      case Code::kNegate:
        stack[top] = -stack[top];
        break;
      case Code::kAbs:
        stack[top] = std::abs(stack[top]);
        break;
      case Code::kAdd:
        --top;
        stack[top] += stack[top + 1];
        break;
      case Code::kSubtract:
        --top;
        stack[top] -= stack[top + 1];
        break;
      case Code::kMultiply:
        --top;
        stack[top] *= stack[top + 1];
        break;
      case Code::kDivide:
        --top;
        stack[top] /= stack[top + 1];
        break;
    }
  }
  return top == 0 ? stack[0] : std::numeric_limits<double>::quiet_NaN();
}

void Linear::add(const Linear& other, double factor) {
  constant += factor * other.constant;
  for (const Term& term : other.terms) {
    const auto same = std::find_if(terms.begin(), terms.end(), [&](const Term& mine) { return mine.reading == term.reading; });
    if (same != terms.end()) {
      same->coefficient += factor * term.coefficient;
    } else {
      terms.push_back({term.reading, factor * term.coefficient});
    }
  }
}

double Linear::slope(std::size_t channel, const Moment& moment) const noexcept {
  double slope = 0;
  for (const Term& term : terms) {
    if (term.reading.channel != channel || term.reading.tense == Tense::kPrevious) continue;
    slope += term.reading.tense == Tense::kNow ? term.coefficient : term.coefficient / moment.elapsed(channel, term.reading.from);
  }
  return slope;
}

double Linear::rest(const std::uint8_t* free, const Moment& moment) const noexcept {
  double rest = constant;
  for (const Term& term : terms) {
    if (term.coefficient == 0) continue;
    const Reading& reading = term.reading;
    const bool moves = reading.tense != Tense::kPrevious && free != nullptr && free[reading.channel] != 0;
    if (!moves) {
      rest += term.coefficient * read(reading, moment);
    } else if (reading.tense == Tense::kRate) {
      rest -= term.coefficient / moment.elapsed(reading.channel, reading.from) * moment.past.value(reading.channel, reading.from);
    }
  }
  return rest;
}

double Linear::magnitude(const Moment& moment) const noexcept {
  double sum = std::abs(constant);
  for (const Term& term : terms) sum += std::abs(term.coefficient * read(term.reading, moment));
  return sum;
}

bool Atom::known(const Moment& moment) const noexcept {
  return std::none_of(readings.begin(), readings.end(), [&](const Reading& reading) {
    if (reading.tense != Tense::kPrevious && std::isnan(moment.now(reading.channel))) return true;
    return reading.tense != Tense::kNow && std::isnan(moment.past.value(reading.channel, reading.from));
  });
}

Truth Atom::holds(const Moment& moment) const noexcept {
  if (!known(moment)) return Truth::kUnknown;
  const double a = left.evaluate(moment), b = right.evaluate(moment);
  bool holds = false;
  switch (comparison) {
    case Comparison::kLess:
      holds = a < b;
      break;
    case Comparison::kEqual:
      holds = std::isfinite(a - b) && std::abs(a - b) <= kEqualityEps * halves.front().difference.magnitude(moment);
      break;
    default:
      holds = a <= b;
  }
  return holds ? Truth::kTrue : Truth::kFalse;
}

bool Atom::half_holds(std::size_t half, bool from_above, const Moment& moment) const noexcept {
  const Half& part = halves[half];
  const double a = part.left.evaluate(moment), b = part.right.evaluate(moment);
  if (comparison == Comparison::kLess) return a < b;
  if (comparison == Comparison::kLessEqual) return a <= b;
  const double tolerance = kEqualityEps * part.difference.magnitude(moment);
  return from_above ? a - b <= tolerance : b - a <= tolerance;
}

double Atom::excess(const Moment& moment) const noexcept {
  if (holds(moment) != Truth::kFalse) return 0;
  const double gap = left.evaluate(moment) - right.evaluate(moment);
  if (std::isnan(gap)) return std::numeric_limits<double>::infinity();
  return comparison == Comparison::kEqual ? std::abs(gap) : gap;
}

}  // namespace kizzasi::logic
