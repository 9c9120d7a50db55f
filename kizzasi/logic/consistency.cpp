#include "kizzasi/logic/consistency.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "kizzasi/logic/region.h"

namespace kizzasi {
namespace {

using namespace logic;

constexpr int kDigits = 6;  // of a change

std::vector<std::uint8_t> hard_ones(std::span<const ConstraintText> constraints) {
  std::vector<std::uint8_t> asked;
  for (const ConstraintText& c : constraints) asked.push_back(c.soft ? 0 : 1);
  return asked;
}

// The new value of a limit: as few digits as tell the change, on the side that leaves room.
double rounded(const Limit& limit, double change) {
  if (!(std::abs(change) > 1e-9 * std::max(limit.unit, std::abs(limit.value)))) return limit.value;
  const int decimals = std::clamp(kDigits - 1 - static_cast<int>(std::floor(std::log10(std::abs(change)))), 0, 300);
  const double step = std::pow(10.0, -decimals), in_steps = (limit.value + change) / step;
  constexpr double kSame = 0.05;  // of a step
  const double near = std::round(in_steps);
  double steps = near;
  if (std::abs(in_steps - near) > kSame && !limit.two_ways) steps = limit.loosens > 0 ? std::ceil(in_steps) : std::floor(in_steps);
  const std::string text = fmt::format("{:.{}f}", steps * step, decimals);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value == 0 ? 0 : value;
}

// Puts `values` (by place of the number) into a formula; a sign that stands in front of a number goes into it.
void replace_numbers(Formula& f, const std::map<std::size_t, double>& values) {
  for (Formula& operand : f.operands) {
    Formula* number = operand.op == Op::kNumber                                            ? &operand
                      : operand.op == Op::kNegate && operand.operands[0].op == Op::kNumber ? &operand.operands[0]
                                                                                           : nullptr;
    const auto found = number == nullptr ? values.end() : values.find(number->offset);
    if (found == values.end()) {
      replace_numbers(operand, values);
      continue;
    }
    Formula plain = *number;
    plain.number = std::abs(found->second);
    if (found->second < 0) {
      Formula negative;
      negative.op = Op::kNegate;
      negative.offset = plain.offset;
      negative.operands = {plain};
      plain = negative;
    }
    operand = plain;
  }
}

std::vector<Repair> written(const Region& region, std::span<const double> change, bool exactly) {
  std::map<std::size_t, std::map<std::size_t, double>> by_constraint;
  for (std::size_t k = 0; k < region.limits().size(); ++k) {
    const Limit& limit = region.limits()[k];
    const double value = exactly && change[k] != 0 ? limit.value + change[k] : rounded(limit, change[k]);
    if (value != limit.value) by_constraint[limit.constraint][limit.offset] = value;
  }
  std::vector<Repair> repairs;
  for (const auto& [constraint, values] : by_constraint) {
    Formula formula = region.formulas()[constraint];
    replace_numbers(formula, values);
    repairs.push_back({constraint, print(formula)});
  }
  return repairs;
}

// Does the set hold with these texts in place?
Result<bool> mends(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const Repair> repairs) {
  std::vector<ConstraintText> mended(constraints.begin(), constraints.end());
  for (const Repair& repair : repairs) mended[repair.constraint].that = repair.that;
  const auto region = Region::build(schema, mended, {});
  if (!region) return fail(region.error());
  return region->find(hard_ones(constraints)).found == Region::Found::kPoint;
}

}  // namespace

Result<Consistency> check_consistency(const Schema& schema, std::span<const ConstraintText> constraints, std::span<const double> scale) {
  const auto region = Region::build(schema, constraints, scale);
  if (!region) return fail(region.error());
  Consistency out;
  out.frames = region->frames();
  for (const NotWritten& n : region->not_written()) {
    if (!constraints[n.constraint].soft) out.unjudged.push_back({n.constraint, n.why});
  }
  const auto all = hard_ones(constraints);
  auto asked = all;
  Region::Answer answer = region->find(asked);
  if (answer.found == Region::Found::kUndecided) return out;
  if (answer.found == Region::Found::kPoint) {
    out.verdict = Consistency::Verdict::kHolds;
    out.example = std::move(answer.x);
    return out;
  }
  out.verdict = Consistency::Verdict::kConflict;
  for (std::size_t i = asked.size(); i-- > 0;) {  // the last first: what was there before stays
    if (asked[i] == 0) continue;
    asked[i] = 0;
    if (region->find(asked).found != Region::Found::kNothing) asked[i] = 1;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i] != 0) out.conflict.push_back(i);
  }
  const Region::Answer repair = region->repair(all);
  if (repair.found != Region::Found::kPoint) return out;
  for (const bool exactly : {false, true}) {
    std::vector<Repair> texts = written(*region, repair.change, exactly);
    const auto fine = mends(schema, constraints, texts);
    if (!fine) return fail(fine.error());
    if (!*fine) continue;
    out.repairs = std::move(texts);
    out.cost = repair.cost;
    break;
  }
  return out;
}

}  // namespace kizzasi
