#include "kizzasi/logic/named_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "kizzasi/base/suggest.h"
#include "kizzasi/logic/bends.h"

namespace kizzasi::logic {
namespace {

constexpr std::array<std::string_view, 7> kSets{"box", "ball", "l1ball", "linfball", "ellipsoid", "simplex", "polytope"};

class SetWriter {
 public:
  SetWriter(std::string_view name, std::size_t offset, const std::vector<Formula>& values, const std::vector<SetArgument>& arguments,
            const Source& source)
      : name_(name), offset_(offset), values_(values), arguments_(arguments), source_(source) {}

  Result<Formula> run() {
    if (!is_set_name(name_)) {
      const std::vector<std::string> names(kSets.begin(), kSets.end());
      return bad(offset_, fmt::format("there is no set '{}'", name_), fmt::format("one of {}, or [low, high]", fmt::join(names, ", ")),
                 did_you_mean(name_, names));
    }
    if (name_ == "box") return box();
    if (name_ == "ellipsoid") return ellipsoid();
    if (name_ == "simplex") return simplex();
    if (name_ == "polytope") return polytope();
    return ball();
  }

 private:
  Result<Formula> box() {
    if (!shaped({true, true})) return wrong("box([low, ...], [high, ...])");
    std::optional<Formula> all;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      Formula within;
      within.op = Op::kIn;
      within.offset = offset_;
      within.operands = {values_[i], arguments_[0].numbers[i], arguments_[1].numbers[i]};
      add(all, std::move(within));
    }
    return *all;
  }

  Result<Formula> ball() {
    const bool centred = arguments_.size() == 2;
    if (!(centred ? shaped({true, false}) : shaped({false}))) return wrong(fmt::format("{0}(radius) or {0}([centre, ...], radius)", name_));
    const Formula& radius = arguments_.back().numbers.front();
    if (!above_zero(radius)) return bad(radius.offset, fmt::format("the radius is {}", print(radius)), "a number above 0", "");
    const char* norm = name_ == "ball" ? "norm" : name_ == "l1ball" ? "norm1" : "norminf";
    return compare(call_of(norm, from_centre(centred ? &arguments_[0] : nullptr), offset_), Comparison::kLessEqual, radius, offset_);
  }

  Result<Formula> ellipsoid() {
    const bool centred = arguments_.size() == 2;
    if (!(centred ? shaped({true, true}) : shaped({true}))) {
      return wrong("ellipsoid([half axis, ...]) or ellipsoid([centre, ...], [half axis, ...])");
    }
    std::vector<Formula> parts = from_centre(centred ? &arguments_[0] : nullptr);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Formula& axis = arguments_.back().numbers[i];
      if (!above_zero(axis)) return bad(axis.offset, fmt::format("a half axis is {}", print(axis)), "a number above 0", "");
      parts[i] = joined(Op::kDivide, std::move(parts[i]), axis, offset_);
    }
    return compare(call_of("norm", std::move(parts), offset_), Comparison::kLessEqual, plain_number(1, "", offset_), offset_);
  }

  Result<Formula> simplex() {
    if (!arguments_.empty() && !shaped({false})) return wrong("simplex() or simplex(total)");
    const Formula total = arguments_.empty() ? plain_number(1, "", offset_) : arguments_[0].numbers.front();
    if (!above_zero(total)) return bad(total.offset, fmt::format("the total is {}", print(total)), "a number above 0", "");
    std::optional<Formula> all, sum;
    for (const Formula& value : values_) {
      add(all, compare(value, Comparison::kGreaterEqual, plain_number(0, "", offset_), offset_));
      sum = sum ? joined(Op::kAdd, *std::move(sum), value, offset_) : value;
    }
    add(all, compare(*std::move(sum), Comparison::kEqual, total, offset_));
    return *all;
  }

  Result<Formula> polytope() {
    std::optional<Formula> all;
    for (const SetArgument& row : arguments_) {
      if (!row.list || row.numbers.size() != values_.size() + 1) {
        return bad(row.offset, row.list ? fmt::format("a list of {} numbers stands here", row.numbers.size()) : "a number stands here",
                   fmt::format("[a, ..., b] with {} numbers for a . x <= b", values_.size() + 1), "");
      }
      std::optional<Formula> sum;
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const Formula& factor = row.numbers[i];
        if (constant_of(factor) == 0.0) continue;
        Formula term = constant_of(factor) == 1.0 && factor.text.empty() ? values_[i] : joined(Op::kMultiply, factor, values_[i], offset_);
        sum = sum ? joined(Op::kAdd, *std::move(sum), std::move(term), offset_) : std::move(term);
      }
      if (!sum) return bad(row.offset, "all factors of a plane are 0", "one that is not", "");
      add(all, compare(*std::move(sum), Comparison::kLessEqual, row.numbers.back(), offset_));
    }
    if (!all) return wrong("polytope([a, ..., b], ...)");
    return *all;
  }

  static void add(std::optional<Formula>& all, Formula one) {
    const std::size_t offset = one.offset;
    all = all ? joined(Op::kAnd, *std::move(all), std::move(one), offset) : std::move(one);
  }

  std::vector<Formula> from_centre(const SetArgument* centre) const {
    std::vector<Formula> parts = values_;
    for (std::size_t i = 0; centre != nullptr && i < parts.size(); ++i) {
      if (constant_of(centre->numbers[i]) == 0.0) continue;
      parts[i] = joined(Op::kSubtract, std::move(parts[i]), centre->numbers[i], offset_);
    }
    return parts;
  }

  // A number that is none (a channel that is given) may be anything.
  static bool above_zero(const Formula& f) {
    const auto number = constant_of(f);
    return !number || *number > 0;
  }

  // Which arguments are lists; each as long as there are values.
  bool shaped(std::initializer_list<bool> lists) const {
    if (arguments_.size() != lists.size()) return false;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (arguments_[i].list != lists.begin()[i]) return false;
      if (arguments_[i].list && arguments_[i].numbers.size() != values_.size()) return false;
    }
    return true;
  }

  Result<Formula> wrong(const std::string& usage) {
    return bad(offset_, fmt::format("{} does not take these arguments", name_),
               fmt::format("{}, a list with {} number{}", usage, values_.size(), values_.size() == 1 ? "" : "s"), "");
  }
  Result<Formula> bad(std::size_t offset, std::string what, std::string expected, std::string hint) {
    return fail({Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)});
  }

  std::string_view name_;
  std::size_t offset_;
  const std::vector<Formula>& values_;
  const std::vector<SetArgument>& arguments_;
  const Source& source_;
};

}  // namespace

bool is_set_name(std::string_view word) { return std::find(kSets.begin(), kSets.end(), word) != kSets.end(); }

Result<Formula> set_condition(std::string_view name, std::size_t offset, const std::vector<Formula>& values,
                              const std::vector<SetArgument>& arguments, const Source& source) {
  return SetWriter(name, offset, values, arguments, source).run();
}

}  // namespace kizzasi::logic
