#include "kizzasi/logic/channel_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "kizzasi/base/suggest.h"

namespace kizzasi::logic {

Result<std::size_t> channel_named(std::string_view name, const Schema& schema, const Source& source, std::size_t offset) {
  if (const auto named = schema.index_of(name)) return *named;
  std::size_t position = 0;
  const char* end = name.data() + name.size();
  const bool by_position = name.size() > 1 && name[0] == 'c' && std::from_chars(name.data() + 1, end, position).ptr == end;
  if (by_position && position >= 1 && position <= schema.size()) return position - 1;
  const std::vector<std::string> names = schema.names();
  std::string list;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) list.append(i == 0 ? "" : ", ").append(names[i]);
  if (names.size() > kShown) list.append(fmt::format(" and {} more", names.size() - kShown));
  if (by_position) {
    return fail({Fault::kBadInput, fmt::format("there is no channel {}: there are {}", position, names.size()), source.place(offset),
                 fmt::format("c1 to c{}", names.size()), ""});
  }
  return fail({Fault::kBadInput, fmt::format("there is no channel '{}'", name), source.place(offset), fmt::format("one of {}", list),
               did_you_mean(name, names)});
}

std::vector<Formula> listed(const Formula& call, const Schema& schema) {
  std::vector<Formula> parts;
  for (const Formula& operand : call.operands) {
    if (operand.op != Op::kEveryChannel) {
      parts.push_back(operand);
      continue;
    }
    for (const std::size_t channel : schema.with_role(Role::kTarget)) {
      Formula part = operand;
      part.op = Op::kChannel;
      part.text = schema.channels[channel].name;
      parts.push_back(std::move(part));
    }
  }
  return parts;
}

bool speaks_of_each(const Formula& formula) {
  if (formula.op == Op::kEveryChannel) return true;
  const bool list =
      formula.op == Op::kCall && formula.text != "abs" && formula.text != "rate" && formula.text != "prev" && formula.text != "accel";
  return std::any_of(formula.operands.begin(), formula.operands.end(),
                     [&](const Formula& operand) { return !(list && operand.op == Op::kEveryChannel) && speaks_of_each(operand); });
}

bool units_fit(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a == b) return true;
  const auto per = [](const std::string& unit) { return unit.substr(std::min(unit.rfind('/'), unit.size())); };
  return (a.starts_with("*/") || b.starts_with("*/")) && per(a) == per(b);
}

std::string unit_named(const std::string& unit) {
  if (unit.starts_with("*/")) return "its channel's unit per " + unit.substr(2);
  return unit;
}

}  // namespace kizzasi::logic
