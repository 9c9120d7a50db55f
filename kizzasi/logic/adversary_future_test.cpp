// Hostile predictions and measurements under random conditions about the future: whatever deadline is missed was reported as broken by
// then, and one condition alone, on a channel whose rate is limited, is never missed.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "kizzasi/logic/adversary_test.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

// Conditions that look ahead, as many as wanted, over channels whose rates may be limited.
class Promises {
 public:
  explicit Promises(Adversary& make) : make_(make) {}

  std::string one(std::size_t n) {
    const std::size_t a = make_.below(n), b = make_.below(n);
    const std::string goal = below_or_above(a);
    const std::string trigger = make_.below(2) == 0 ? below_or_above(b) : fmt::format("x{} in [{}, {}]", b, make_.few_digits(2) - 2, 4);
    const std::size_t first = make_.below(3), last = first + 1 + make_.below(6);
    switch (make_.below(10)) {
      case 0:
      case 1:
        return fmt::format("always (({}) -> eventually[0, {}] {})", trigger, last, goal);
      case 2:
        return fmt::format("({}) -> eventually[{}, {}] {}", trigger, first, last, goal);
      case 3:
        return fmt::format("({}) -> always[{}, {}] {}", trigger, first, last, goal);
      case 4:
        return fmt::format("always eventually[0, {}] {}", last, goal);
      case 5:
        torn_ = torn_ || a == b;
        return fmt::format("({}) -> {} until[0, {}] {}", trigger, below_or_above(b), last, goal);
      case 6:
        return fmt::format("({}) -> {} unless[0, {}] {}", trigger, below_or_above(b), last, goal);
      case 7:
        return fmt::format("({}) -> {} release[0, {}] {}", trigger, goal, last, below_or_above(b));
      case 8:
        return fmt::format("({}) -> next {}", trigger, goal);
      default:
        return fmt::format("({}) -> always[0, {}] eventually[0, {}] {}", trigger, 1 + make_.below(3), 1 + make_.below(3), goal);
    }
  }

  // Whether a channel must stay on one side until it is on another: more than its rate allows at once, perhaps.
  bool torn() const { return torn_; }

 private:
  std::string below_or_above(std::size_t c) { return fmt::format("x{} {} {}", c, make_.below(2) == 0 ? "<=" : ">", make_.few_digits(4)); }

  Adversary& make_;
  bool torn_ = false;
};

struct Tally {
  std::size_t sets = 0, refused = 0, frames = 0, judged = 0, infeasible = 0, violations = 0;
};

void attack(std::uint64_t seed, std::size_t frames, Tally& tally) {
  Adversary make(seed);
  Promises promises(make);
  const std::size_t n = 1 + make.below(3);
  // Alone: one condition about the future and limits of change from what was sent, frames in step; then nothing stands in the way.
  std::vector<std::string> list{promises.one(n)};
  const bool alone = make.below(2) == 0 && !promises.torn();
  if (!alone) {
    for (std::size_t more = make.below(3); more > 0; --more) list.push_back(promises.one(n));
    if (n > 1 && make.below(3) == 0) list.push_back(make.constraint(std::vector<double>(n, 0.0)));
  }
  for (std::size_t c = 0; c < n; ++c) {
    if (make.below(2) == 0) list.push_back(fmt::format("abs(rate(x{}, from = commanded)) <= {}", c, make.above_zero()));
    if (!alone && make.below(2) == 0) list.push_back(fmt::format("-7 <= x{} <= 7", c));
  }
  Attacked attacked;
  for (const std::string& that : list) attacked.add(that);
  const auto compiled = compile_guard(attacked_schema(n), attacked.texts, {});
  if (!compiled) {  // said before the stream begins
    ++tally.refused;
    return;
  }
  GuardedStream stream(**compiled);
  ++tally.sets;
  Checker checker;
  std::vector<std::vector<std::uint8_t>> broken;
  const bool measuring = make.below(2) == 0;
  std::int64_t time = 0;
  for (std::size_t t = 0; t < frames; ++t) {
    time += alone ? kSecond : make.jump();
    std::vector<double> x(n), seen(n, kNaN);
    if (make.below(4) == 0) {  // a proposal that is not taken leaves no trace
      for (double& value : x) value = make.wild(0);
      stream.propose(time, x);
    }
    for (double& value : x) value = make.wild(0);
    const GuardStatus status = stream.propose(time, x);
    if (measuring) {
      for (std::size_t c = 0; c < n; ++c) seen[c] = make.below(4) == 0 ? make.wild(0) : x[c];
    }
    bool any = false;
    for (double& value : seen) {
      if (!std::isfinite(value)) value = kNaN;
      any = any || std::isfinite(value);
    }
    stream.accept(time, seen, x);
    checker.seen.push_back(any ? seen : x);
    checker.sent.push_back(x);
    checker.time.push_back(time);
    broken.push_back(status == GuardStatus::kInfeasible ? stream.report.broken : std::vector<std::uint8_t>(attacked.formulas.size(), 0));
    ++tally.frames;
    if (status != GuardStatus::kInfeasible) continue;
    ++tally.infeasible;
    if (!alone) continue;
    ++tally.violations;
    ADD_FAILURE() << "seed " << seed << " frame " << t << ": a condition that stands alone was given up\n" << attacked.all;
    return;
  }
  for (std::size_t i = 0; i < attacked.formulas.size(); ++i) {
    const std::size_t horizon = Checker::horizon(attacked.formulas[i]);
    for (std::size_t t = 0; t < frames; ++t) {
      ++tally.judged;
      if (checker.truth(attacked.formulas[i], t) >= 0) continue;
      bool said = false;
      for (std::size_t s = t; s <= std::min(t + horizon, frames - 1); ++s) said = said || broken[s][i] != 0;
      if (said) continue;
      ++tally.violations;
      std::string sent;
      for (std::size_t s = t < 3 ? 0 : t - 3; s <= std::min(t + horizon, frames - 1); ++s) {
        sent += fmt::format("  {}: {}\n", s, fmt::join(checker.sent[s], ", "));
      }
      ADD_FAILURE() << "seed " << seed << " frame " << t << ": " << attacked.texts[i].that << "\n" << sent << attacked.all;
      return;
    }
  }
}

TEST(AdversaryOfTheFuture, MissesNoDeadlineInSilence) {
  Tally tally;
  const std::size_t wanted = wanted_number("KIZZASI_CASES", 60'000), each = wanted_number("KIZZASI_FRAMES", 60);
  for (std::uint64_t seed = 1; tally.frames < wanted && tally.violations < 5; ++seed) attack(seed, each, tally);
  EXPECT_EQ(tally.violations, 0u);
  EXPECT_LT(tally.refused, 2 * tally.sets);
  std::printf(
      "%zu frames emitted under %zu sets of conditions about the future: %zu violations; %zu frames where nothing obeyed, said so; %zu "
      "sets refused\n",
      tally.frames, tally.sets, tally.violations, tally.infeasible, tally.refused);
}

}  // namespace
}  // namespace kizzasi
