// Hostile predictions and measurements under random constraints of all classes: a checker that knows the text alone, and tries every moment
// of what was emitted by its definition, finds nothing that is broken.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <tuple>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {
namespace {

using logic::Comparison;
using logic::Formula;
using logic::From;
using logic::Op;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kEps = 2.220446049250313e-16;

std::size_t wanted_cases() {
  const char* text = std::getenv("KIZZASI_CASES");
  return text == nullptr ? 20'000 : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

// --- The checker -------------------------------------------------------------------------------------------------------------------------

// All that came, and all that went out. Truth: -1 false, 0 unknown, 1 true, by the definitions, tried moment by moment.
class Checker {
 public:
  std::vector<std::vector<double>> seen, sent;
  std::vector<std::int64_t> time;

  int truth(const Formula& f, std::size_t t) const {
    switch (f.op) {
      case Op::kTrue:
        return 1;
      case Op::kFalse:
        return -1;
      case Op::kCompare: {
        int all = 1;
        for (std::size_t i = 0; i < f.comparisons.size(); ++i)
          all = std::min(all, compared(f.operands[i], f.comparisons[i], f.operands[i + 1], t));
        return all;
      }
      case Op::kWithin: {
        const double gap = std::abs(number(f.operands[0], t, true, kSent) - number(f.operands[1], t, true, kSent));
        const double most = number(f.operands[2], t, true, kSent);
        return std::isnan(gap) || std::isnan(most) ? 0 : gap <= most ? 1 : -1;
      }
      case Op::kIn: {
        const double x = number(f.operands[0], t, true, kSent);
        return std::isnan(x) ? 0 : number(f.operands[1], t, true, kSent) <= x && x <= number(f.operands[2], t, true, kSent) ? 1 : -1;
      }
      case Op::kNot:
        return -truth(f.operands[0], t);
      case Op::kAnd:
        return std::min(truth(f.operands[0], t), truth(f.operands[1], t));
      case Op::kOr:
        return std::max(truth(f.operands[0], t), truth(f.operands[1], t));
      case Op::kImplies:
        return std::max(-truth(f.operands[0], t), truth(f.operands[1], t));
      case Op::kIff: {
        const int a = truth(f.operands[0], t), b = truth(f.operands[1], t);
        return std::max(std::min(a, b), std::min(-a, -b));
      }
      case Op::kXor: {
        const int a = truth(f.operands[0], t), b = truth(f.operands[1], t);
        return std::max(std::min(a, -b), std::min(-a, b));
      }
      case Op::kRise:
        return std::min(truth(f.operands[0], t), t == 0 ? 1 : -truth(f.operands[0], t - 1));
      case Op::kFall:
        return std::min(-truth(f.operands[0], t), t == 0 ? 1 : truth(f.operands[0], t - 1));
      case Op::kPrevious:
        return t == 0 ? (f.strong ? -1 : 1) : truth(f.operands[0], t - 1);
      case Op::kOnce:
      case Op::kHistorically: {
        int all = f.op == Op::kOnce ? -1 : 1;
        for (std::size_t back = low(f); back <= std::min(high(f), t); ++back) {
          const int one = truth(f.operands[0], t - back);
          all = f.op == Op::kOnce ? std::max(all, one) : std::min(all, one);
        }
        return all;
      }
      case Op::kSince: {
        int best = -1;
        for (std::size_t back = low(f); back <= std::min(high(f), t); ++back) {
          int one = truth(f.operands[1], t - back);
          for (std::size_t s = t - back + 1; s <= t; ++s) one = std::min(one, truth(f.operands[0], s));
          best = std::max(best, one);
        }
        return best;
      }
      case Op::kHysteresis: {
        bool on = false;
        for (std::size_t s = 0; s <= t; ++s) {
          const double x = number(f.operands[0], s, true, kSent);
          on = x >= number(f.operands[1], s, true, kSent) || (on && x > number(f.operands[2], s, true, kSent));
        }
        return on ? 1 : -1;
      }
      default:
        ADD_FAILURE() << "the checker does not know " << logic::print(f);
        return 0;
    }
  }

 private:
  enum Trace { kSeen, kSent };

  static std::size_t low(const Formula& f) { return f.interval.given ? static_cast<std::size_t>(f.interval.low) : 0; }
  static std::size_t high(const Formula& f) {
    return f.interval.given && std::isfinite(f.interval.high) ? static_cast<std::size_t>(f.interval.high) : std::size_t{1} << 40;
  }

  int compared(const Formula& left, Comparison sign, const Formula& right, std::size_t t) const {
    const double a = number(left, t, true, kSent), b = number(right, t, true, kSent);
    if (std::isnan(a) || std::isnan(b)) return 0;
    switch (sign) {
      case Comparison::kLess:
        return a < b ? 1 : -1;
      case Comparison::kLessEqual:
        return a <= b ? 1 : -1;
      case Comparison::kGreater:
        return a > b ? 1 : -1;
      case Comparison::kGreaterEqual:
        return a >= b ? 1 : -1;
      default:
        return std::abs(a - b) <= 8 * kEps * (terms(left, t) + terms(right, t)) ? 1 : -1;
    }
  }

  // The sum of the sizes of what is added.
  double terms(const Formula& f, std::size_t t) const {
    if (f.op == Op::kAdd || f.op == Op::kSubtract) return terms(f.operands[0], t) + terms(f.operands[1], t);
    return std::abs(number(f, t, true, kSent));
  }

  double at(std::size_t channel, std::size_t t, Trace trace) const { return (trace == kSeen ? seen : sent)[t][channel]; }

  // `now`: at the frame that is judged itself, where what was emitted counts.
  double number(const Formula& f, std::size_t t, bool now, Trace trace) const {
    switch (f.op) {
      case Op::kNumber:
        return f.number;
      case Op::kChannel:
        return at(static_cast<std::size_t>(f.text[1] - '0'), t, now ? kSent : trace);
      case Op::kNegate:
        return -number(f.operands[0], t, now, trace);
      case Op::kAdd:
        return number(f.operands[0], t, now, trace) + number(f.operands[1], t, now, trace);
      case Op::kSubtract:
        return number(f.operands[0], t, now, trace) - number(f.operands[1], t, now, trace);
      case Op::kMultiply:
        return number(f.operands[0], t, now, trace) * number(f.operands[1], t, now, trace);
      default:
        return called(f, t, now, trace);
    }
  }

  double called(const Formula& f, std::size_t t, bool now, Trace trace) const {
    const auto part = [&](std::size_t i) { return number(f.operands[i], t, now, trace); };
    if (f.text == "abs") return std::abs(part(0));
    const bool window = f.operands.size() == 2 && f.operands[1].op == Op::kNumber && f.operands[1].text == "samples";
    const Trace back = f.from == From::kCommanded ? kSent : kSeen;
    if (f.text == "rate") return rate(f.operands[0], 1, t, now, trace, back);
    if (f.text == "accel") return rate(f.operands[0], 2, t, now, trace, back);
    if (f.text == "prev") return previous(f.operands[0], static_cast<std::size_t>(f.operands[1].number), t, back).first;
    if (window) {
      const auto width = static_cast<std::size_t>(f.operands[1].number);
      std::vector<double> x;
      for (std::size_t k = std::min(width, t + 1); k-- > 1;) x.push_back(number(f.operands[0], t - k, false, kSeen));
      x.push_back(part(0));
      double sum = 0, most = -kInfinity, least = kInfinity;
      for (const double value : x) {
        sum += value;
        if (std::isnan(value)) return kNaN;
        most = std::max(most, value);
        least = std::min(least, value);
      }
      if (f.text == "mean") return sum / static_cast<double>(x.size());
      if (f.text == "integral") return sum;
      return f.text == "max" ? most : least;
    }
    double value = f.text == "norm" ? part(0) * part(0) : f.text == "norm1" || f.text == "norminf" ? std::abs(part(0)) : part(0);
    for (std::size_t i = 1; i < f.operands.size(); ++i) {
      if (f.text == "norm") value += part(i) * part(i);
      if (f.text == "norm1") value += std::abs(part(i));
      if (f.text == "norminf") value = std::max(value, std::abs(part(i)));
      if (f.text == "max") value = std::max(value, part(i));
      if (f.text == "min") value = std::min(value, part(i));
    }
    return f.text == "norm" ? std::sqrt(value) : value;
  }

  // The value k frames ago, with its time. One frame ago, of a channel: the last that there was.
  std::pair<double, std::int64_t> previous(const Formula& f, std::size_t k, std::size_t t, Trace back) const {
    if (f.op == Op::kChannel && k == 1) {
      const auto channel = static_cast<std::size_t>(f.text[1] - '0');
      for (std::size_t s = t; s-- > 0;) {
        if (std::isfinite(at(channel, s, back))) return {at(channel, s, back), time[s]};
      }
      return {kNaN, 0};
    }
    if (t < k) return {kNaN, 0};
    return {number(f, t - k, false, back), time[t - k]};
  }

  double rate(const Formula& f, int order, std::size_t t, bool now, Trace trace, Trace back) const {
    double before = kNaN, here = kNaN;
    std::int64_t then = 0;
    if (order == 1) {
      here = number(f, t, now, trace);
      std::tie(before, then) = previous(f, 1, t, back);
    } else {
      if (t == 0) return kNaN;
      here = rate(f, order - 1, t, now, trace, back);
      before = rate(f, order - 1, t - 1, false, back, back);
      then = time[t - 1];
    }
    const double passed = time[t] <= then ? 0 : static_cast<double>(time[t] - then) / 1e9;
    return passed == 0 && here == before ? 0 : (here - before) / passed;
  }
};

// --- The adversary -----------------------------------------------------------------------------------------------------------------------

class Adversary {
 public:
  explicit Adversary(std::uint64_t seed) : rng_(seed) {}

  std::size_t below(std::size_t n) { return rng_.below(n); }
  double few_digits(double spread) { return std::round(10 * spread * (2 * rng_.uniform() - 1)) / 10; }
  double above_zero() { return 0.3 + std::abs(few_digits(4)); }
  std::string channel(std::size_t n) { return fmt::format("x{}", below(n)); }

  // A condition over the present; `inside` tends to obey it.
  std::string atom(const std::vector<double>& inside) {
    const std::size_t n = inside.size(), a = below(n), b = (a + 1 + below(n - 1)) % n;
    switch (below(6)) {
      case 0:
        return fmt::format("x{} <= {}", a, inside[a] + few_digits(3));
      case 1:
        return fmt::format("x{} > {}", a, inside[a] + few_digits(3));
      case 2:
        return fmt::format("x{} + x{} <= {}", a, b, inside[a] + inside[b] + few_digits(3));
      case 3:
        return fmt::format("x{} - 2 * x{} >= {}", a, b, inside[a] - 2 * inside[b] + few_digits(3));
      case 4:
        return fmt::format("abs(x{} - {}) >= {}", a, few_digits(4), above_zero());
      default:
        return fmt::format("x{} in [{}, {}]", a, inside[a] - above_zero(), inside[a] + above_zero());
    }
  }
  std::string plain(const std::vector<double>& inside) {  // without `in`
    for (;;) {
      std::string text = atom(inside);
      if (text.find(" in ") == text.npos) return text;
    }
  }

  std::string constraint(const std::vector<double>& inside) {
    const std::size_t n = inside.size(), a = below(n), b = (a + 1 + below(n - 1)) % n;
    const double x = inside[a], y = inside[b];
    switch (below(22)) {
      case 0:
        return fmt::format("{} <= x{} <= {}", x - above_zero(), a, x + above_zero());
      case 1:
        return fmt::format("abs(rate(x{}, from = commanded)) <= {}", a, above_zero());
      case 2:
        return fmt::format("x{} + {} * x{} <= {}", a, few_digits(2), b, x + 3 * above_zero() + 2 * std::abs(y));
      case 3:
        return fmt::format("x{} - x{} == {} +- {}", a, b, x - y, above_zero());
      case 4:
        return fmt::format("x{} + x{} == {}", a, b, x + y);
      case 5:
        return fmt::format("{} -> {}", plain(inside), plain(inside));
      case 6:
        return fmt::format("{} or {} or {}", plain(inside), plain(inside), plain(inside));
      case 7:
        return fmt::format("not ({} and {})", plain(inside), plain(inside));
      case 8:
        return fmt::format("x{} > {} xor x{} > {}", a, few_digits(3), b, few_digits(3));
      case 9:
        return fmt::format("abs(x{} - {}) >= {}", a, x + 2 * above_zero() + 1, 1);
      case 10:
        return fmt::format("norm(x{} - {}, x{} - {}) <= {}", a, x, b, y, above_zero());
      case 11:
        return fmt::format("norm1(x{}, x{}) <= {}", a, b, std::abs(x) + std::abs(y) + above_zero());
      case 12:
        return fmt::format("max(x{}, x{} - 1) <= {}", a, b, std::max(x, y) + above_zero());
      case 13:
        return fmt::format("mean(x{}, {} [samples]) <= {}", a, 2 + below(5), x + above_zero());
      case 14:
        return fmt::format("abs(accel(x{}, from = commanded)) <= {}", a, 3 * above_zero());
      case 15:
        return fmt::format("x{} - prev(x{}, {}, from = commanded) <= {}", a, a, 1 + below(4), above_zero());
      case 16:
        return fmt::format("once[0, {}] x{} > {} -> {}", below(6), a, x + above_zero(), plain(inside));
      case 17:
        return fmt::format("rise(x{} > {}) -> x{} <= {}", a, x + few_digits(2), b, y + above_zero());
      case 18:
        return fmt::format("hysteresis(x{}, {}, {}) -> x{} <= {}", a, x + 2, x - 1, b, y + above_zero());
      case 19:
        return fmt::format("(x{} < {} since[0, {}] x{} < {}) or x{} <= {}", a, x + 4, 1 + below(6), b, y, a, x + above_zero());
      case 20:
        return fmt::format("x{} * x{} + x{} * x{} - x{} * x{} <= {}", a, a, b, b, a, b, x * x + y * y - x * y + above_zero());
      default:
        return fmt::format("abs(rate(x{} + x{}, from = commanded)) <= {}", a, b, 2 * above_zero());
    }
  }

  double wild(double around) {
    switch (below(14)) {
      case 0:
        return kNaN;
      case 1:
        return below(2) == 0 ? kInfinity : -kInfinity;
      case 2:
        return below(2) == 0 ? 1e30 : -1e30;
      case 3:
        return 5e-324 * static_cast<double>(below(9));
      case 4:
        return around + 1000 * rng_.normal();
      case 5:
        return ramp_ += 0.5;
      default:
        return around + 4 * rng_.normal();
    }
  }
  std::int64_t jump() {
    switch (below(20)) {
      case 0:
        return 0;
      case 1:
        return 100 * kSecond;
      case 2:
        return kSecond / 7;
      default:
        return kSecond;
    }
  }
  double uniform() { return rng_.uniform(); }
  double normal() { return rng_.normal(); }

 private:
  Rng rng_;
  double ramp_ = 0;
};

struct Tally {
  std::size_t sets = 0, frames = 0, infeasible = 0, violations = 0, wrongly_infeasible = 0;
};

void attack(std::uint64_t seed, std::size_t frames, Tally& tally) {
  Adversary make(seed);
  const std::size_t n = 2 + make.below(3);
  std::vector<double> inside(n);
  for (double& x : inside) x = make.few_digits(3);
  Schema schema;
  for (std::size_t c = 0; c < n; ++c) schema.channels.push_back({fmt::format("x{}", c), "", Role::kTarget});
  schema.step_ns = kSecond;
  std::vector<ConstraintText> texts;
  std::vector<Formula> formulas;
  std::string all;
  for (std::size_t i = 0, count = 2 + make.below(4); i < count; ++i) {
    const std::string that = make.constraint(inside);
    texts.push_back({.name = that, .that = that, .where = "test"});
    auto formula = logic::parse_formula({that, "test"});
    ASSERT_TRUE(formula) << that << formula.error().text();
    formulas.push_back(*formula);
    all.append("  ").append(that).append("\n");
  }
  const auto compiled = compile_guard(schema, texts, {});
  if (!compiled) {  // a contradiction, and it must be one
    EXPECT_NE(compiled.error().what.find("obey"), std::string::npos) << compiled.error().text() << "\n" << all;
    return;
  }
  const Guard& guard = **compiled;
  ++tally.sets;
  std::vector<std::byte> state(guard.state_bytes());
  std::vector<double> scratch(guard.scratch_doubles());
  GuardReport report;
  guard.prepare(report);
  guard.reset(state);
  Checker checker;
  const bool measuring = make.below(2) == 0;
  std::int64_t time = 0;
  for (std::size_t t = 0; t < frames; ++t) {
    time += make.jump();
    std::vector<double> x(n), seen(n, kNaN);
    for (std::size_t c = 0; c < n; ++c) x[c] = make.wild(inside[c]);
    const std::vector<double> raw = x;
    const GuardStatus status = guard.propose(state, time, x, report, scratch);
    if (measuring) {
      for (std::size_t c = 0; c < n; ++c) seen[c] = make.below(4) == 0 ? make.wild(inside[c]) : x[c];
    }
    bool any = false;
    for (double& value : seen) {
      if (!std::isfinite(value)) value = kNaN;
      any = any || std::isfinite(value);
    }
    guard.accept(state, time, seen, x);
    checker.seen.push_back(any ? seen : x);
    checker.sent.push_back(x);
    checker.time.push_back(time);
    ++tally.frames;
    if (status == GuardStatus::kInfeasible) ++tally.infeasible;
    for (std::size_t i = 0; i < formulas.size(); ++i) {
      if (checker.truth(formulas[i], t) >= 0) continue;
      if (status == GuardStatus::kInfeasible && report.broken[i] != 0) continue;
      ++tally.violations;
      ADD_FAILURE() << "seed " << seed << " frame " << t << " status " << to_string(status) << ": " << texts[i].that << "\nraw "
                    << fmt::format("{}", fmt::join(raw, ", ")) << "\nemitted " << fmt::format("{}", fmt::join(x, ", ")) << "\n"
                    << all;
      return;
    }
    if (status != GuardStatus::kInfeasible) continue;
    // An acceleration in no time is infinite or nothing at all; and where values are huge, sums of them hit nothing exactly.
    const bool stands = t > 0 && time == checker.time[t - 1];
    bool odd = stands && all.find("accel") != std::string::npos;
    for (std::size_t k = t < 8 ? 0 : t - 8; k <= t; ++k) {
      for (const double value : checker.sent[k]) odd = odd || std::abs(value) > 1e9;
      for (const double value : checker.seen[k]) odd = odd || std::abs(value) > 1e9;
    }
    if (odd) continue;
    // Where it says that nothing obeys, points thrown at random must not either.
    const std::vector<double> emitted = checker.sent.back();
    for (int turn = 0; turn < 60; ++turn) {
      std::vector<double> other = t > 0 && turn % 3 == 0 ? checker.sent[t - 1] : turn % 3 == 1 ? inside : emitted;
      for (double& value : other) value += (turn % 4) * make.normal();
      bool obeys = true;  // and with room for rounding
      for (int near = 0; near < 6 && obeys; ++near) {
        std::vector<double> shaken = other;
        if (near > 0) {
          for (double& value : shaken) value += 1e-9 * make.normal();
        }
        checker.sent.back() = shaken;
        if (!any) checker.seen.back() = shaken;
        obeys = std::all_of(formulas.begin(), formulas.end(), [&](const Formula& f) { return checker.truth(f, t) > 0; });
      }
      if (!obeys) continue;
      ++tally.wrongly_infeasible;
      ADD_FAILURE() << "seed " << seed << " frame " << t << ": " << fmt::format("{}", fmt::join(other, ", ")) << " obeys all\nraw "
                    << fmt::format("{}", fmt::join(raw, ", ")) << "\nemitted " << fmt::format("{}", fmt::join(emitted, ", ")) << "\n"
                    << all;
      return;
    }
    checker.sent.back() = emitted;
    if (!any) checker.seen.back() = emitted;
  }
}

TEST(Adversary, BreaksNothing) {
  Tally tally;
  const std::size_t cases = wanted_cases(), each = 60;
  for (std::uint64_t seed = 1; tally.frames < cases && tally.violations + tally.wrongly_infeasible < 5; ++seed) attack(seed, each, tally);
  EXPECT_EQ(tally.violations, 0u);
  EXPECT_EQ(tally.wrongly_infeasible, 0u);
  std::printf("%zu frames emitted under %zu sets of constraints of all classes: %zu violations; %zu frames where nothing obeyed, said so\n",
              tally.frames, tally.sets, tally.violations, tally.infeasible);
}

}  // namespace
}  // namespace kizzasi
