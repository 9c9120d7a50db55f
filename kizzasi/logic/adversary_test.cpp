// Hostile predictions and measurements under random constraints of all classes: a checker that knows the text alone, and tries every moment
// of what was emitted by its definition, finds nothing that is broken.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "kizzasi/logic/adversary_test.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

struct Tally {
  std::size_t sets = 0, frames = 0, infeasible = 0, violations = 0, wrongly_infeasible = 0;
};

void attack(std::uint64_t seed, std::size_t frames, Tally& tally) {
  Adversary make(seed);
  const std::size_t n = 2 + make.below(3);
  std::vector<double> inside(n);
  for (double& x : inside) x = make.few_digits(3);
  Attacked attacked;
  for (std::size_t i = 0, count = 2 + make.below(4); i < count; ++i) attacked.add(make.constraint(inside));
  const auto compiled = compile_guard(attacked_schema(n), attacked.texts, {});
  if (!compiled) {  // a contradiction, and it must be one
    EXPECT_NE(compiled.error().what.find("obey"), std::string::npos) << compiled.error().text() << "\n" << attacked.all;
    return;
  }
  GuardedStream stream(**compiled);
  ++tally.sets;
  Checker checker;
  const bool measuring = make.below(2) == 0;
  std::int64_t time = 0;
  for (std::size_t t = 0; t < frames; ++t) {
    time += make.jump();
    std::vector<double> x(n), seen(n, kNaN);
    for (std::size_t c = 0; c < n; ++c) x[c] = make.wild(inside[c]);
    const std::vector<double> raw = x;
    const GuardStatus status = stream.propose(time, x);
    if (measuring) {
      for (std::size_t c = 0; c < n; ++c) seen[c] = make.below(4) == 0 ? make.wild(inside[c]) : x[c];
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
    ++tally.frames;
    if (status == GuardStatus::kInfeasible) ++tally.infeasible;
    for (std::size_t i = 0; i < attacked.formulas.size(); ++i) {
      if (checker.truth(attacked.formulas[i], t) >= 0) continue;
      if (status == GuardStatus::kInfeasible && stream.report.broken[i] != 0) continue;
      ++tally.violations;
      ADD_FAILURE() << "seed " << seed << " frame " << t << " status " << to_string(status) << ": " << attacked.texts[i].that << "\nraw "
                    << fmt::format("{}", fmt::join(raw, ", ")) << "\nemitted " << fmt::format("{}", fmt::join(x, ", ")) << "\n"
                    << attacked.all;
      return;
    }
    if (status != GuardStatus::kInfeasible) continue;
    // An acceleration in no time is infinite or nothing at all; and where values are huge, sums of them hit nothing exactly.
    const bool stands = t > 0 && time == checker.time[t - 1];
    bool odd = stands && attacked.all.find("accel") != std::string::npos;
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
        obeys = std::all_of(attacked.formulas.begin(), attacked.formulas.end(), [&](const Formula& f) { return checker.truth(f, t) > 0; });
      }
      if (!obeys) continue;
      ++tally.wrongly_infeasible;
      ADD_FAILURE() << "seed " << seed << " frame " << t << ": " << fmt::format("{}", fmt::join(other, ", ")) << " obeys all\nraw "
                    << fmt::format("{}", fmt::join(raw, ", ")) << "\nemitted " << fmt::format("{}", fmt::join(emitted, ", ")) << "\n"
                    << attacked.all;
      return;
    }
    checker.sent.back() = emitted;
    if (!any) checker.seen.back() = emitted;
  }
}

TEST(Adversary, BreaksNothing) {
  Tally tally;
  const std::size_t cases = wanted_number("KIZZASI_CASES", 20'000), each = wanted_number("KIZZASI_FRAMES", 60);
  for (std::uint64_t seed = 1; tally.frames < cases && tally.violations + tally.wrongly_infeasible < 5; ++seed) attack(seed, each, tally);
  EXPECT_EQ(tally.violations, 0u);
  EXPECT_EQ(tally.wrongly_infeasible, 0u);
  std::printf("%zu frames emitted under %zu sets of constraints of all classes: %zu violations; %zu frames where nothing obeyed, said so\n",
              tally.frames, tally.sets, tally.violations, tally.infeasible);
}

}  // namespace
}  // namespace kizzasi
