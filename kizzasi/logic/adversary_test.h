// For tests: the constraint language tried by its definitions, moment by moment over all that came and went out, sharing nothing with the
// enforcer but the formula as read; and an adversary that makes up constraints and hostile numbers.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/formula.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/parser.h"

namespace kizzasi {

using logic::Comparison;
using logic::Formula;
using logic::From;
using logic::Op;

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr std::int64_t kSecond = 1'000'000'000;
inline constexpr double kEps = 2.220446049250313e-16;

// How many, where the environment says so.
inline std::size_t wanted_number(const char* variable, std::size_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

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
        for (std::size_t s = t + 1; s-- > 0;) {  // the last moment that decides
          const double x = number(f.operands[0], s, true, kSent);
          if (x >= number(f.operands[1], s, true, kSent)) return 1;
          if (x <= number(f.operands[2], s, true, kSent)) return -1;
        }
        return -1;
      }
      case Op::kNext:
        return ahead(f.operands[0], t + 1);
      case Op::kEventually:
      case Op::kAlways: {
        int all = f.op == Op::kEventually ? -1 : 1;
        for (std::size_t s = std::min(t + low(f), sent.size()); s <= std::min(t + high(f), sent.size()); ++s) {
          const int one = ahead(f.operands[0], s);
          all = f.op == Op::kEventually ? std::max(all, one) : std::min(all, one);
        }
        return all;
      }
      case Op::kUntil:
        return until(f, t, 1);
      case Op::kRelease:
        return -until(f, t, -1);
      case Op::kUnless: {
        int all = until(f, t, 1), stays = 1;
        for (std::size_t s = t; s <= std::min(t + high(f), sent.size()); ++s) stays = std::min(stays, ahead(f.operands[0], s));
        return std::max(all, stays);
      }
      default:
        ADD_FAILURE() << "the checker does not know " << logic::print(f);
        return 0;
    }
  }

  // So many frames ahead decide.
  static std::size_t horizon(const Formula& f) {
    std::size_t most = 0;
    for (const Formula& part : f.operands) most = std::max(most, horizon(part));
    switch (f.op) {
      case Op::kNext:
        return most + 1;
      case Op::kEventually:
      case Op::kAlways:
      case Op::kUntil:
      case Op::kRelease:
      case Op::kUnless:
        return std::min(most + high(f), std::size_t{1} << 40);
      default:
        return most;
    }
  }

 private:
  enum Trace { kSeen, kSent };

  // A frame that has not come is unknown.
  int ahead(const Formula& f, std::size_t s) const { return s < sent.size() ? truth(f, s) : 0; }
  // Of both parts, or of what is opposite to them (`sign` -1).
  int until(const Formula& f, std::size_t t, int sign) const {
    int best = -1, so_far = 1;
    for (std::size_t s = t; s <= std::min(t + high(f), sent.size()); ++s) {
      if (s >= t + low(f) || s == sent.size()) best = std::max(best, std::min(so_far, sign * ahead(f.operands[1], s)));
      so_far = std::min(so_far, sign * ahead(f.operands[0], s));
    }
    return best;
  }

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

// Constraints as texts, as what they were read as, and all on lines of their own for messages.
struct Attacked {
  std::vector<ConstraintText> texts;
  std::vector<Formula> formulas;
  std::string all;

  void add(const std::string& that) {
    texts.push_back({.name = that, .that = that, .where = "test"});
    auto formula = logic::parse_formula({that, "test"});
    ASSERT_TRUE(formula) << that << formula.error().text();
    formulas.push_back(*formula);
    all.append("  ").append(that).append("\n");
  }
};

// Channels x0, x1, ... one second apart.
inline Schema attacked_schema(std::size_t channels) {
  Schema schema;
  for (std::size_t c = 0; c < channels; ++c) schema.channels.push_back({fmt::format("x{}", c), "", Role::kTarget});
  schema.step_ns = kSecond;
  return schema;
}

// What one stream of a guard works in.
struct GuardedStream {
  const Guard& guard;
  std::vector<std::byte> state = std::vector<std::byte>(guard.state_bytes());
  std::vector<double> scratch = std::vector<double>(guard.scratch_doubles());
  GuardReport report;

  explicit GuardedStream(const Guard& of) : guard(of) {
    guard.prepare(report);
    guard.reset(state);
  }
  GuardStatus propose(std::int64_t time, std::span<double> x) { return guard.propose(state, time, x, report, scratch); }
  void accept(std::int64_t time, std::span<const double> seen, std::span<const double> x) { guard.accept(state, time, seen, x); }
};

}  // namespace kizzasi
