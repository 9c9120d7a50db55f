#include "kizzasi/logic/bends.h"

#include <fmt/format.h>

#include <algorithm>

#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi::logic {

Formula joined(Op op, Formula a, Formula b, std::size_t offset) {
  Formula f;
  f.op = op;
  f.offset = offset;
  f.operands = {std::move(a), std::move(b)};
  return f;
}

Formula negative(Formula a) {
  Formula f;
  f.op = Op::kNegate;
  f.offset = a.offset;
  f.operands = {std::move(a)};
  return f;
}

Formula plain_number(double number, std::string unit, std::size_t offset) {
  Formula f;
  f.offset = offset;
  f.number = number;
  f.text = std::move(unit);
  return f;
}

Formula call_of(std::string name, std::vector<Formula> operands, std::size_t offset) {
  Formula f;
  f.op = Op::kCall;
  f.text = std::move(name);
  f.offset = offset;
  f.operands = std::move(operands);
  return f;
}

Formula compare(Formula a, Comparison sign, Formula b, std::size_t offset) {
  Formula f = joined(Op::kCompare, std::move(a), std::move(b), offset);
  f.comparisons = {sign};
  return f;
}

std::optional<double> constant_of(const Formula& f) {
  if (f.op == Op::kNumber) return f.number;
  if (f.operands.empty() || f.op == Op::kCall) return {};
  const auto a = constant_of(f.operands[0]);
  if (!a || f.op == Op::kNegate) return a ? std::optional<double>(-*a) : std::nullopt;
  const auto b = constant_of(f.operands[1]);
  if (!b) return {};
  switch (f.op) {
    case Op::kAdd:
      return *a + *b;
    case Op::kSubtract:
      return *a - *b;
    case Op::kMultiply:
      return *a * *b;
    case Op::kDivide:
      return *a / *b;
    default:
      return {};
  }
}

Result<Bends::Bend> Bends::find(Formula& comparison) const {
  Bend bend;
  for (const std::size_t side : {0U, 1U}) {
    bend.pull = side == 0 ? 1 : -1;
    auto found = find_in(comparison.operands[side], bend.pull);
    if (!found) return fail(found.error());
    bend.formula = *found;
    if (bend.formula != nullptr) break;
  }
  return bend;
}

Result<Formula*> Bends::find_in(Formula& f, double& pull) const {
  if (!moves(f)) return nullptr;
  switch (f.op) {
    case Op::kNegate: {
      pull = -pull;
      auto found = find_in(f.operands[0], pull);
      if (found && *found == nullptr) pull = -pull;
      return found;
    }
    case Op::kAdd:
    case Op::kSubtract: {
      if (auto found = find_in(f.operands[0], pull); !found || *found != nullptr) return found;
      const double before = pull;
      if (f.op == Op::kSubtract) pull = -pull;
      auto found = find_in(f.operands[1], pull);
      if (found && *found == nullptr) pull = before;
      return found;
    }
    case Op::kMultiply:
    case Op::kDivide:
      for (const std::size_t i : {0U, 1U}) {
        if (f.op == Op::kDivide && i == 1) continue;
        Formula& other = f.operands[1 - i];
        auto found = find_in(f.operands[i], pull);
        if (!found) return found;
        if (*found == nullptr) continue;
        const auto factor = constant_of(other);
        if (!factor || *factor == 0) {
          return fail({Fault::kBadInput, fmt::format("the sign of what multiplies '{}' is not known when compiling", print(**found)),
                       source_.place(f.offset), "a number other than 0", ""});
        }
        if (*factor < 0) pull = -pull;
        return found;
      }
      return nullptr;
    case Op::kCall:
      if (f.text == "abs" || f.text == "min" || f.text == "max" || f.text == "norm1" || f.text == "norminf") return &f;
      if (f.text == "sum" || (f.text == "mean" && !window_samples(f))) {
        for (Formula& operand : f.operands) {
          if (auto found = find_in(operand, pull); !found || *found != nullptr) return found;
        }
      }
      return nullptr;
    default:
      return nullptr;
  }
}

std::vector<Formula> Bends::alternatives(const Formula& bent) const {
  if (bent.text == "abs") return {bent.operands[0], negative(bent.operands[0])};
  if (const auto samples = window_samples(bent)) {  // of the window: what is now, and what was before
    if (*samples == 1) return {bent.operands[0]};
    Formula before = bent;
    before.operands[1] = plain_number(static_cast<double>(*samples - 1), "samples", bent.offset);
    return {bent.operands[0], call_of("prev", {std::move(before), plain_number(1, "", bent.offset)}, bent.offset)};
  }
  return listed(bent, schema_);
}

Formula Bends::spelled_out(const Formula& f) const {
  std::vector<Formula> sizes;
  for (const Formula& part : listed(f, schema_)) sizes.push_back(call_of("abs", {part}, part.offset));
  if (f.text == "norminf" && sizes.size() > 1) return call_of("max", std::move(sizes), f.offset);
  Formula sum = sizes.front();
  for (std::size_t i = 1; i < sizes.size(); ++i) sum = joined(Op::kAdd, std::move(sum), sizes[i], f.offset);
  return sum;
}

// Of f(x, window); nothing where the last argument is no time.
std::optional<std::int64_t> Bends::window_samples(const Formula& f) const {
  if (f.operands.size() != 2 || f.operands[1].op != Op::kNumber) return {};
  const Formula& span = f.operands[1];
  if (!nanoseconds(span.text) && span.text != "samples") return {};
  Interval whole;
  whole.given = true;
  whole.low = whole.high = span.number;
  whole.low_unit = whole.high_unit = span.text;
  whole.offset = span.offset;
  const auto samples = sample_interval(whole, schema_.step_ns, source_);
  return samples ? std::optional<std::int64_t>(samples->high) : std::nullopt;
}

// True where the value now depends on a predicted channel now.
bool Bends::moves(const Formula& f) const {
  if (f.op == Op::kEveryChannel) return true;
  if (f.op == Op::kChannel) {
    const auto channel = channel_named(f.text, schema_, source_, f.offset);
    return channel && schema_.channels[*channel].role == Role::kTarget;
  }
  if (f.op == Op::kCall && f.text == "prev" && !(f.operands.size() == 2 && f.operands[1].number == 0)) return false;
  return std::any_of(f.operands.begin(), f.operands.end(), [&](const Formula& operand) { return moves(operand); });
}

}  // namespace kizzasi::logic
