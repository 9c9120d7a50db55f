#include "kizzasi/logic/clauses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "kizzasi/logic/bends.h"
#include "kizzasi/logic/channel_names.h"
#include "kizzasi/logic/monitor/nodes.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/logic/units.h"

namespace kizzasi::logic {
namespace {

constexpr std::int64_t kLongestPromise = 1'000'000;  // samples

Comparison straight(Comparison sign) {
  return sign == Comparison::kGreater ? Comparison::kLess : sign == Comparison::kGreaterEqual ? Comparison::kLessEqual : sign;
}
bool is_turned(Comparison sign) { return sign == Comparison::kGreater || sign == Comparison::kGreaterEqual; }

class ClauseWriter {
 public:
  ClauseWriter(const Schema& schema, const Source& source) : schema_(schema), source_(source), bends_(schema, source) {}

  Result<std::vector<Choice>> run(const Formula& formula) {
    std::vector<Choice> clauses;
    if (!split(formula, clauses)) return tl::unexpected(*error_);
    return clauses;
  }

 private:
  using Made = std::optional<Choice>;

  // What stands side by side under `and` at the top must hold whatever becomes of the rest.
  bool split(const Formula& f, std::vector<Choice>& clauses) {
    if (f.op == Op::kAnd) return split(f.operands[0], clauses) && split(f.operands[1], clauses);
    if (f.op == Op::kAlways && !f.interval.given) return split(f.operands[0], clauses);
    Formula chain = f;
    if (f.op == Op::kCompare && f.comparisons.size() > 1) {
      for (std::size_t i = 0; i < f.comparisons.size(); ++i) {
        chain.operands = {f.operands[i], f.operands[i + 1]};
        chain.comparisons = {f.comparisons[i]};
        if (!split(chain, clauses)) return false;
      }
      return true;
    }
    if (is_comparison(f) && speaks_of_each(f)) {
      for (const std::size_t channel : schema_.with_role(Role::kTarget)) {
        every_ = channel;
        auto made = comparison(f, true);
        every_.reset();
        if (!made) return false;
        clauses.push_back(*std::move(made));
      }
      return true;
    }
    auto made = expand(f, true);
    if (!made) return false;
    clauses.push_back(*std::move(made));
    return true;
  }

  // --- Branches --------------------------------------------------------------------------------------------------------------------------

  static Choice always_true() { return {Branch{}}; }

  Made all_of(Made a, Made b, std::size_t offset) {
    if (!a || !b) return {};
    if (a->size() * b->size() > kMostBranches) return too_many(offset);
    Choice out;
    for (const Branch& one : *a) {
      for (const Branch& other : *b) {
        out.push_back(one);
        out.back().insert(out.back().end(), other.begin(), other.end());
      }
    }
    return out;
  }

  Made one_of(Made a, Made b, std::size_t offset) {
    if (!a || !b) return {};
    if (a->size() + b->size() > kMostBranches) return too_many(offset);
    a->insert(a->end(), std::make_move_iterator(b->begin()), std::make_move_iterator(b->end()));
    return a;
  }

  Made too_many(std::size_t offset) {
    (void)bad(offset, fmt::format("it leaves more than {} branches to choose from", kMostBranches), "fewer choices in one constraint",
              "Split it: what is joined by and may stand in constraints of its own.");
    return {};
  }

  Made expand(const Formula& f, bool wanted) {
    switch (f.op) {
      case Op::kTrue:
      case Op::kFalse:
        return (f.op == Op::kTrue) == wanted ? always_true() : Choice{};
      case Op::kProposition: {
        Formula channel = f;
        channel.op = Op::kChannel;
        const Formula half = plain_number(0.5, "", f.offset);
        return wanted ? pair(half, Comparison::kLessEqual, channel, f.offset) : pair(channel, Comparison::kLess, half, f.offset);
      }
      case Op::kCompare:
      case Op::kWithin:
      case Op::kIn:
        return each_channel(f, wanted);
      case Op::kNot:
        return expand(f.operands[0], !wanted);
      case Op::kAnd:
      case Op::kOr: {
        const bool all = (f.op == Op::kAnd) == wanted;
        auto a = expand(f.operands[0], wanted), b = a ? expand(f.operands[1], wanted) : Made{};
        return all ? all_of(std::move(a), std::move(b), f.offset) : one_of(std::move(a), std::move(b), f.offset);
      }
      case Op::kImplies: {
        auto a = expand(f.operands[0], !wanted), b = a ? expand(f.operands[1], wanted) : Made{};
        return wanted ? one_of(std::move(a), std::move(b), f.offset) : all_of(std::move(a), std::move(b), f.offset);
      }
      case Op::kIff:
      case Op::kXor: {
        const bool same = (f.op == Op::kIff) == wanted;
        auto one = all_of(expand(f.operands[0], true), expand(f.operands[1], same), f.offset);
        auto other = one ? all_of(expand(f.operands[0], false), expand(f.operands[1], !same), f.offset) : Made{};
        return one_of(std::move(one), std::move(other), f.offset);
      }
      case Op::kRise:
      case Op::kFall:
      case Op::kHysteresis:
      case Op::kPrevious:
      case Op::kHistorically:
      case Op::kOnce:
      case Op::kSince:
        return past(f, wanted);
      default:
        return future(f, wanted);
    }
  }

  // --- The past: what it says now, given what it said one frame ago ----------------------------------------------------------------------

  Literal known(Formula f, bool weak, bool wanted) {
    Literal literal;
    literal.kind = Literal::Kind::kKnown;
    literal.offset = f.offset;
    literal.formula = std::move(f);
    literal.weak = weak;
    literal.negated = !wanted;
    return literal;
  }

  Made known_only(Formula f, bool weak, bool wanted) {
    Choice one(1);
    one.front().push_back(known(std::move(f), weak, wanted));
    return one;
  }

  // The same formula with an interval that begins and ends `by` samples earlier, an end at no time below 0.
  static Formula shifted(const Formula& f, const SampleInterval& samples) {
    Formula out = f;
    out.interval.given = true;
    out.interval.low_unit = out.interval.high_unit = "";
    out.interval.low = static_cast<double>(samples.low == 0 ? 0 : samples.low - 1);
    out.interval.high = samples.high == kEndless ? std::numeric_limits<double>::infinity() : static_cast<double>(samples.high - 1);
    return out;
  }

  Made past(const Formula& f, bool wanted) {
    if (has_future(f)) {
      (void)bad(f.offset, fmt::format("'{}' looks back at a condition that looks ahead: what it says of now is known too late", print(f)),
                "past operators over the present and the past", "");
      return {};
    }
    switch (f.op) {
      case Op::kRise:  // true now, and not one sample ago; without a neighbour what is true now counts
        return wanted ? all_of(expand(f.operands[0], true), known_only(f.operands[0], false, false), f.offset)
                      : one_of(expand(f.operands[0], false), known_only(f.operands[0], false, true), f.offset);
      case Op::kFall:
        return wanted ? all_of(expand(f.operands[0], false), known_only(f.operands[0], true, true), f.offset)
                      : one_of(expand(f.operands[0], true), known_only(f.operands[0], true, false), f.offset);
      case Op::kPrevious:
        return known_only(f.operands[0], !f.strong, wanted);
      case Op::kHysteresis:
        return hysteresis(f, wanted);
      default:
        break;
    }
    const auto samples = interval(f);
    if (!samples) return {};
    const bool historically = f.op == Op::kHistorically, since = f.op == Op::kSince;
    Made before = historically == wanted ? always_true() : Choice{};
    if (samples->high > 0) before = known_only(shifted(f, *samples), historically, wanted);
    if (since) {  // q or (p and before); at an interval that begins later, p and before
      const bool reaches_now = samples->low == 0;
      Made stay = expand(f.operands[0], wanted);
      Made rest = wanted ? all_of(std::move(stay), std::move(before), f.offset) : one_of(std::move(stay), std::move(before), f.offset);
      if (!reaches_now) return rest;
      Made now = expand(f.operands[1], wanted);
      return wanted ? one_of(std::move(now), std::move(rest), f.offset) : all_of(std::move(now), std::move(rest), f.offset);
    }
    if (samples->low > 0) return before;
    Made now = expand(f.operands[0], wanted);
    const bool all = historically == wanted;
    return all ? all_of(std::move(now), std::move(before), f.offset) : one_of(std::move(now), std::move(before), f.offset);
  }

  // On from `on` until down to `off`, or its mirror image: (x > off) since (x >= on).
  Made hysteresis(const Formula& f, bool wanted) {
    const Formula &x = f.operands[0], &on = f.operands[1], &off = f.operands[2];
    const auto first = constant_of(on), last = constant_of(off);
    const bool falling = first && last && *first < *last;
    Formula since;
    since.op = Op::kSince;
    since.offset = f.offset;
    since.operands = {compare(falling ? x : off, Comparison::kLess, falling ? off : x, f.offset),
                      compare(falling ? x : on, Comparison::kLessEqual, falling ? on : x, f.offset)};
    return past(since, wanted);
  }

  static bool has_future(const Formula& f) {
    const bool own = f.op == Op::kNext || f.op == Op::kAlways || f.op == Op::kEventually || f.op == Op::kUntil || f.op == Op::kRelease ||
                     f.op == Op::kUnless;
    return own || std::any_of(f.operands.begin(), f.operands.end(), has_future);
  }

  std::optional<SampleInterval> interval(const Formula& f) {
    if (!f.interval.given) return SampleInterval{0, kEndless};
    auto samples = sample_interval(f.interval, schema_.step_ns, source_);
    if (!samples) {
      if (!error_) error_ = samples.error();
      return {};
    }
    return *samples;
  }

  // --- The future: promises -------------------------------------------------------------------------------------------------------------

  Made future(const Formula& f, bool wanted) {
    Promise p;
    SampleInterval span{1, 1};
    if (f.op != Op::kNext) {
      const auto samples = interval(f);
      if (!samples) return {};
      span = *samples;
    }
    p.low = span.low;
    p.high = span.high;
    const bool one = f.op == Op::kNext || f.op == Op::kAlways || f.op == Op::kEventually;
    const Formula& last = one ? f.operands[0] : f.operands[1];
    // What must hold in the end, and what must hold, or sets free, on the way there.
    bool reach = f.op == Op::kEventually || f.op == Op::kUntil;
    if (!wanted && f.op != Op::kNext) reach = !reach;
    p.kind = reach ? Promise::Kind::kReach : Promise::Kind::kKeep;
    if (f.op == Op::kUnless) return unless(f, wanted, span);
    auto goal = expand(last, wanted);
    auto stay = one ? Made{reach ? always_true() : Choice{}} : goal ? expand(f.operands[0], wanted) : Made{};
    if (!goal || !stay) return {};
    p.goal = *std::move(goal);
    p.stay = *std::move(stay);
    return promised(f, std::move(p), !one);
  }

  // p unless q: p at every frame of [0, high], until q at or after `low` sets free.
  Made unless(const Formula& f, bool wanted, const SampleInterval& span) {
    if (span.low > 0) return refuse(f.offset, "'unless' with an interval that begins later", "unless[0, b]", "");
    if (!wanted) {  // not p at some frame, and until then not q
      Formula both = joined(Op::kUntil, {}, {}, f.offset);
      Formula not_q;
      not_q.op = Op::kNot;
      not_q.offset = f.offset;
      not_q.operands = {f.operands[1]};
      Formula neither;
      neither.op = Op::kNot;
      neither.offset = f.offset;
      neither.operands = {f.operands[0]};
      both.operands = {not_q, joined(Op::kAnd, neither, not_q, f.offset)};
      both.interval = f.interval;
      return future(both, true);
    }
    auto goal = expand(f.operands[0], true), free = goal ? expand(f.operands[1], true) : Made{};
    if (!goal || !free) return {};
    Promise p;
    p.kind = Promise::Kind::kKeep;
    p.high = span.high;
    p.frees_at_once = true;
    p.goal = *std::move(goal);
    p.stay = *std::move(free);
    return promised(f, std::move(p), true);
  }

  Made promised(const Formula& f, Promise p, bool has_stay) {
    if (p.kind == Promise::Kind::kReach && p.high == kEndless) {
      (void)bad(f.offset, fmt::format("'{}' sets no deadline: no frame is the last at which it could still be kept", print(f)),
                "an interval with an end, such as eventually[0, 10s]", "");
      return {};
    }
    if (p.high != kEndless && p.high > kLongestPromise) {
      (void)bad(f.offset, fmt::format("the interval of '{}' ends {} samples ahead", print(f), p.high),
                fmt::format("at most {}", kLongestPromise), "");
      return {};
    }
    if (has_stay && p.kind == Promise::Kind::kReach && p.low > 0) {
      return refuse(f.offset, fmt::format("'{}' with an interval that begins later", word(f.op)), "an interval that begins at 0", "");
    }
    for (const Choice* choice : {&p.goal, &p.stay}) {
      for (const Branch& branch : *choice) {
        for (const Literal& literal : branch) {
          if (literal.kind != Literal::Kind::kKnown) continue;
          (void)bad(literal.offset, "a condition of the future that is about the past cannot be aimed at", "conditions on values of then",
                    "");
          return {};
        }
      }
    }
    Literal literal;
    literal.kind = Literal::Kind::kPromise;
    literal.offset = f.offset;
    literal.promise = std::make_shared<const Promise>(std::move(p));
    Choice one(1);
    one.front().push_back(std::move(literal));
    return one;
  }

  // --- Comparisons -----------------------------------------------------------------------------------------------------------------------

  static bool is_comparison(const Formula& f) { return f.op == Op::kCompare || f.op == Op::kWithin || f.op == Op::kIn; }

  Made each_channel(const Formula& f, bool wanted) {
    if (!speaks_of_each(f)) return comparison(f, wanted);
    Made all = wanted ? always_true() : Choice{};
    for (const std::size_t channel : schema_.with_role(Role::kTarget)) {
      every_ = channel;
      auto one = comparison(f, wanted);
      all = wanted ? all_of(std::move(all), std::move(one), f.offset) : one_of(std::move(all), std::move(one), f.offset);
      if (!all) break;
    }
    every_.reset();
    return all;
  }

  // `*` outside of a list is the channel that is spoken of.
  Formula named(const Formula& f) const {
    Formula out = f;
    if (f.op == Op::kEveryChannel && every_) {
      out.op = Op::kChannel;
      out.text = schema_.channels[*every_].name;
    }
    for (Formula& operand : out.operands) operand = named(operand);
    return out;
  }

  Made comparison(const Formula& given, bool wanted) {
    const Formula f = named(given);
    if (f.op == Op::kIn) {
      auto low = two(f.operands[1], Comparison::kLessEqual, f.operands[0], f.offset, wanted);
      auto high = low ? two(f.operands[0], Comparison::kLessEqual, f.operands[2], f.offset, wanted) : Made{};
      return wanted ? all_of(std::move(low), std::move(high), f.offset) : one_of(std::move(low), std::move(high), f.offset);
    }
    if (f.op == Op::kWithin) {
      Formula size = call_of("abs", {joined(Op::kSubtract, f.operands[0], f.operands[1], f.offset)}, f.offset);
      return two(std::move(size), Comparison::kLessEqual, f.operands[2], f.offset, wanted);
    }
    Made all = wanted ? always_true() : Choice{};
    for (std::size_t i = 0; i < f.comparisons.size() && all; ++i) {
      const Formula &left = f.operands[i], &right = f.operands[i + 1];
      const bool turned = is_turned(f.comparisons[i]);
      auto one = two(turned ? right : left, straight(f.comparisons[i]), turned ? left : right, f.offset, wanted);
      all = wanted ? all_of(std::move(all), std::move(one), f.offset) : one_of(std::move(all), std::move(one), f.offset);
    }
    return all;
  }

  Made two(Formula left, Comparison sign, Formula right, std::size_t offset, bool wanted) {
    if (wanted) return pair(std::move(left), sign, std::move(right), offset);
    if (sign == Comparison::kLess) return pair(std::move(right), Comparison::kLessEqual, std::move(left), offset);
    if (sign == Comparison::kLessEqual) return pair(std::move(right), Comparison::kLess, std::move(left), offset);
    auto below = pair(left, Comparison::kLess, right, offset, true);
    auto above = below ? pair(std::move(right), Comparison::kLess, std::move(left), offset, true) : Made{};
    return one_of(std::move(below), std::move(above), offset);
  }

  // left < right, left <= right or left == right, with every bend over what moves taken apart.
  Made pair(Formula left, Comparison sign, Formula right, std::size_t offset, bool apart = false) {
    Formula whole = compare(std::move(left), sign, std::move(right), offset);
    const auto found = bends_.find(whole);
    if (!found) {
      if (!error_) error_ = found.error();
      return {};
    }
    const auto [bend, pull] = *found;
    if (bend == nullptr) {
      Literal literal;
      literal.formula = std::move(whole);
      literal.apart = apart;
      literal.offset = offset;
      Choice one(1);
      one.front().push_back(std::move(literal));
      return one;
    }
    const Formula bent = *bend;
    if (bent.text == "norm1" || bent.text == "norminf") {
      *bend = bends_.spelled_out(bent);
      return pair(whole.operands[0], sign, whole.operands[1], offset, apart);
    }
    const bool convex = bent.text != "min";
    const std::vector<Formula> parts = bends_.alternatives(bent);
    const bool all = sign != Comparison::kEqual && (pull > 0) == convex;
    Made out = all ? always_true() : Choice{};
    for (const Formula& part : parts) {
      *bend = part;
      Made one = pair(whole.operands[0], sign, whole.operands[1], offset, apart);
      if (sign == Comparison::kEqual) {  // only where this part is the one that counts
        for (const Formula& other : parts) {
          if (&other == &part) continue;
          Made chosen = convex ? pair(other, Comparison::kLessEqual, part, offset) : pair(part, Comparison::kLessEqual, other, offset);
          one = all_of(std::move(one), std::move(chosen), offset);
        }
      }
      out = all ? all_of(std::move(out), std::move(one), offset) : one_of(std::move(out), std::move(one), offset);
      if (!out) break;
    }
    return out;
  }

  // --- Errors ----------------------------------------------------------------------------------------------------------------------------

  Made refuse(std::size_t offset, const std::string& what, std::string expected, std::string hint) {
    (void)bad(offset, fmt::format("{} is not enforced by this version", what), std::move(expected), std::move(hint));
    return {};
  }
  bool bad(std::size_t offset, std::string what, std::string expected, std::string hint) {
    if (!error_) error_ = Error{Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)};
    return false;
  }

  const Schema& schema_;
  const Source& source_;
  Bends bends_;
  std::optional<std::size_t> every_;
  std::optional<Error> error_;
};

}  // namespace

Result<std::vector<Choice>> clauses_of(const Formula& formula, const Schema& schema, const Source& source) {
  // Names, units, intervals and windows are settled by the one who knows them all.
  if (auto graph = build_graph(formula, schema, source); !graph) return tl::unexpected(graph.error());
  return ClauseWriter(schema, source).run(in_common_units(formula, schema));
}

}  // namespace kizzasi::logic
