// Conditions about the future: every deadline is met, and not a frame sooner than the declared rates ask for.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"

namespace kizzasi {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
using Trace = std::vector<std::vector<double>>;
using At = std::function<bool(const Trace&, std::size_t)>;

Result<std::unique_ptr<Guard>> compiled(std::initializer_list<const char*> list, int decimals = -1, std::size_t channels = 2) {
  Schema schema;
  for (std::size_t c = 0; c < channels; ++c) schema.channels.push_back({fmt::format("x{}", c), "", Role::kTarget});
  schema.channels.push_back({"given", "", Role::kKnownFuture});
  schema.step_ns = kSecond;
  std::vector<ConstraintText> texts;
  for (const char* that : list) texts.push_back({.name = that, .that = that, .where = "test"});
  return compile_guard(schema, texts, {decimals});
}

// Emits `frames` frames of a rollout whose predictions are noise around `around`.
Trace emitted(std::initializer_list<const char*> list, std::size_t frames, double around, double noise, std::uint64_t seed,
              int decimals = -1) {
  const auto guard = compiled(list, decimals);
  if (!guard) throw std::runtime_error(guard.error().text());
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles());
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  Rng rng(seed);
  Trace trace;
  for (std::size_t t = 0; t < frames; ++t) {
    std::vector<double> x{around + noise * rng.normal(), around + noise * rng.normal(), rng.below(4) == 0 ? 1.0 : 0.0};
    const GuardStatus status = (*guard)->propose(state, static_cast<std::int64_t>(t) * kSecond, x, report, scratch);
    EXPECT_NE(status, GuardStatus::kInfeasible) << *list.begin() << " at " << t;
    (*guard)->accept(state, static_cast<std::int64_t>(t) * kSecond, {}, x);
    trace.push_back(x);
  }
  return trace;
}

bool some(const Trace& trace, std::size_t from, std::size_t to, const At& holds) {
  for (std::size_t s = from; s <= to; ++s) {
    if (holds(trace, s)) return true;
  }
  return false;
}
bool all(const Trace& trace, std::size_t from, std::size_t to, const At& holds) {
  return !some(trace, from, to, [&](const Trace& tr, std::size_t s) { return !holds(tr, s); });
}
At above(double level, std::size_t c = 0) {
  return [=](const Trace& tr, std::size_t t) { return tr[t][c] > level; };
}
At below(double level, std::size_t c = 0) {
  return [=](const Trace& tr, std::size_t t) { return tr[t][c] < level; };
}
At at_most(double level, std::size_t c = 0) {
  return [=](const Trace& tr, std::size_t t) { return tr[t][c] <= level; };
}
At given() {
  return [](const Trace& tr, std::size_t t) { return tr[t][2] >= 1; };
}

TEST(Promise, HoldsAtEveryFrameByItsDefinition) {
  struct Row {
    std::initializer_list<const char*> constraints;
    std::size_t horizon;
    At law;
  };
  const Row rows[] = {
      {{"always (x0 > 3 -> eventually[0, 5] x0 < 1)"},
       5,
       [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || some(tr, t, t + 5, below(1)); }},
      {{"always (x0 > 3 -> eventually[0, 5] x0 < 1)", "abs(rate(x0)) <= 0.7"},
       5,
       [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || some(tr, t, t + 5, below(1)); }},
      {{"x0 > 3 -> eventually[2, 6] x0 < 1", "abs(rate(x0)) <= 2"},
       6,
       [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || some(tr, t + 2, t + 6, below(1)); }},
      {{"given >= 1 -> eventually[0, 4] (x0 < 0 and x1 > 1)", "rate(x0) >= -1.5", "rate(x1) <= 2", "-6 <= x0 <= 6", "x1 >= -6"},
       4,
       [](const Trace& tr, std::size_t t) {
         return !given()(tr, t) || some(tr, t, t + 4, [](const Trace& r, std::size_t s) { return r[s][0] < 0 && r[s][1] > 1; });
       }},
      {{"x0 > 3 -> always[0, 3] x1 <= 1"},
       3,
       [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || all(tr, t, t + 3, at_most(1, 1)); }},
      {{"x0 > 3 -> always[2, 4] x1 <= 1", "abs(rate(x1)) <= 0.5"},
       4,
       [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || all(tr, t + 2, t + 4, at_most(1, 1)); }},
      {{"x0 > 3 -> next x0 <= 3"}, 1, [](const Trace& tr, std::size_t t) { return !above(3)(tr, t) || at_most(3)(tr, t + 1); }},
      {{"always eventually[0, 4] x0 < 0"}, 4, [](const Trace& tr, std::size_t t) { return some(tr, t, t + 4, below(0)); }},
      {{"always eventually[0, 4] x0 < 0", "abs(rate(x0)) <= 3"},
       4,
       [](const Trace& tr, std::size_t t) { return some(tr, t, t + 4, below(0)); }},
      {{"x0 > 3 -> always[0, 3] eventually[0, 2] x1 < 0"},
       5,
       [](const Trace& tr, std::size_t t) {
         return !above(3)(tr, t) || all(tr, t, t + 3, [](const Trace& r, std::size_t s) { return some(r, s, s + 2, below(0, 1)); });
       }},
      {{"x0 > 3 -> x1 < 5 until[0, 4] x0 < 1"},
       4,
       [](const Trace& tr, std::size_t t) {
         if (!above(3)(tr, t)) return true;
         for (std::size_t s = t; s <= t + 4; ++s) {
           if (below(1)(tr, s)) return true;
           if (!below(5, 1)(tr, s)) return false;
         }
         return false;
       }},
      {{"x0 > 3 -> x1 <= 2 unless[0, 5] x0 < 2"},
       5,
       [](const Trace& tr, std::size_t t) {
         if (!above(3)(tr, t)) return true;
         for (std::size_t s = t; s <= t + 5; ++s) {
           if (below(2)(tr, s)) return true;
           if (!at_most(2, 1)(tr, s)) return false;
         }
         return true;
       }},
      {{"x0 > 3 -> x0 < 2 release[0, 4] x1 <= 2"},
       4,
       [](const Trace& tr, std::size_t t) {
         if (!above(3)(tr, t)) return true;
         for (std::size_t s = t; s <= t + 4; ++s) {
           if (!at_most(2, 1)(tr, s)) return false;
           if (below(2)(tr, s)) return true;
         }
         return true;
       }},
      {{"not (x0 > 3 and always[0, 3] x0 > 3)"}, 3, [](const Trace& tr, std::size_t t) { return !all(tr, t, t + 3, above(3)); }},
      {{"x0 > 6 -> always x1 <= 1"},
       40,
       [](const Trace& tr, std::size_t t) { return !above(6)(tr, t) || all(tr, t, t + 40, at_most(1, 1)); }},
  };
  for (const Row& row : rows) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      for (const int decimals : {-1, 2}) {
        const Trace trace = emitted(row.constraints, 200, seed % 3 == 0 ? 6 : 2, 3, seed, decimals);
        for (std::size_t t = 0; t + row.horizon < trace.size(); ++t) {
          ASSERT_TRUE(row.law(trace, t)) << *row.constraints.begin() << " seed " << seed << " decimals " << decimals << " frame " << t;
        }
        if (row.constraints.size() == 1) continue;
        const std::string second = *(row.constraints.begin() + 1);
        if (second != "abs(rate(x0)) <= 0.7") continue;
        for (std::size_t t = 1; t < trace.size(); ++t) ASSERT_LE(std::abs((trace[t][0] - trace[t - 1][0]) / 1), 0.7);
      }
    }
  }
}

TEST(Promise, WaitsForTheLastSafeMoment) {
  // Down from 10 to below 1 within 20 frames at 1.5 a frame: the first frame may be as high as 1 + 20 * 1.5; from 10 it stays for 14
  // frames.
  const auto guard = compiled({"x0 > 3 -> eventually[0, 20] x0 <= 1", "abs(rate(x0)) <= 1.5"});
  ASSERT_TRUE(guard) << guard.error().text();
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles());
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  std::vector<double> high{100, 0, 0};
  (*guard)->propose(state, 0, high, report, scratch);
  EXPECT_NEAR(high[0], 31, 1e-9);
  for (std::int64_t t = 0; t <= 20; ++t) {
    std::vector<double> x{10, 0, 0};
    (*guard)->propose(state, t * kSecond, x, report, scratch);
    const double latest = 1 + 1.5 * static_cast<double>(20 - t);
    EXPECT_NEAR(x[0], std::min(10.0, latest), 1e-9) << t;
    (*guard)->accept(state, t * kSecond, {}, x);
  }
}

TEST(Promise, WhatNobodyCanKeepIsRefused) {
  const auto told = [](std::initializer_list<const char*> list) {
    const auto guard = compiled(list);
    return guard ? "accepted" : guard.error().text();
  };
  EXPECT_EQ(told({"eventually x0 > 1"}),
            "test:1: 'eventually x0 > 1' sets no deadline: no frame is the last at which it could still be kept (expected an interval with "
            "an end, such as eventually[0, 10s]).");
  EXPECT_EQ(told({"x0 > 1 -> eventually[0, 3] given > 2"}),
            "test:28: nothing that is predicted stands in a condition of the future, so nobody can see to it (expected a predicted channel "
            "in it).");
  EXPECT_EQ(told({"x0 > 1 -> eventually[0, 3] x0 < 0", "abs(accel(x0)) <= 1"}),
            "test:28: how far its channel can move until then is not known: more than its rate is bounded by what was before (expected "
            "bounds on rate(x) alone for what has a deadline).");
  EXPECT_EQ(told({"x0 > 1 -> eventually[0, 3] x0 + x1 < 0", "abs(rate(x0)) <= 1"}),
            "test:28: the last moment from which it can still be reached is not known to this version (expected conditions on one channel "
            "each, against numbers, where the rate of a channel is limited).");
  EXPECT_EQ(told({"x0 > 1 -> eventually[0, 3] once[0, 2] x0 < 0"}),
            "test:28: a condition of the future that is about the past cannot be aimed at (expected conditions on values of then).");
}

}  // namespace
}  // namespace kizzasi
