#include "kizzasi/logic/consistency.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/redundancy.h"
#include "kizzasi/logic/small_sets_test.h"

namespace kizzasi {
namespace {

using Verdict = Consistency::Verdict;

Consistency checked(const Schema& schema, const std::vector<std::string>& list) {
  const auto made = check_consistency(schema, texts(list));
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : Consistency{};
}

// A constraint over a and b as plain numbers: one of several rows p a + q b <= r. Brute force needs no solver: where a bounded region of
// closed half-planes holds a point, it holds one where two edges cross.
struct Plain {
  std::vector<std::array<double, 3>> rows;
  bool holds(double a, double b, double tolerance) const {
    return std::any_of(rows.begin(), rows.end(), [&](const auto& r) { return r[0] * a + r[1] * b <= r[2] + tolerance; });
  }
  std::string text() const {
    std::string out;
    for (const auto& r : rows) out += fmt::format("{}{} * a + {} * b <= {}", out.empty() ? "" : " or ", r[0], r[1], r[2]);
    return out;
  }
};

bool any_point(const std::vector<Plain>& set, double tolerance = 1e-9) {
  std::vector<std::array<double, 3>> edges;
  for (const Plain& c : set) edges.insert(edges.end(), c.rows.begin(), c.rows.end());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    for (std::size_t j = i + 1; j < edges.size(); ++j) {
      const double det = edges[i][0] * edges[j][1] - edges[i][1] * edges[j][0];
      if (det == 0) continue;
      const double a = (edges[i][2] * edges[j][1] - edges[i][1] * edges[j][2]) / det;
      const double b = (edges[i][0] * edges[j][2] - edges[i][2] * edges[j][0]) / det;
      if (std::all_of(set.begin(), set.end(), [&](const Plain& c) { return c.holds(a, b, tolerance); })) return true;
    }
  }
  return false;
}

std::vector<Plain> random_set(Rng& rng) {
  std::vector<Plain> set;
  for (const auto& [p, q] : {std::pair{1., 0.}, {-1., 0.}, {0., 1.}, {0., -1.}}) set.push_back({{{p, q, 8}}});
  const std::size_t more = 2 + rng.below(6);
  for (std::size_t i = 0; i < more; ++i) {
    Plain c;
    const std::size_t ways = rng.below(3) == 0 ? 2 + rng.below(2) : 1;
    for (std::size_t w = 0; w < ways; ++w) {
      double p = 0, q = 0;
      while (p == 0 && q == 0) p = static_cast<double>(rng.below(7)) - 3, q = static_cast<double>(rng.below(7)) - 3;
      c.rows.push_back({p, q, static_cast<double>(rng.below(13)) - 8});
    }
    set.push_back(c);
  }
  return set;
}

std::vector<std::string> texts_of(const std::vector<Plain>& set) {
  std::vector<std::string> out;
  for (const Plain& c : set) out.push_back(c.text());
  return out;
}

TEST(Consistency, EqualsBruteForceAndItsConflictsAreMinimal) {
  Rng rng(5);
  const Schema schema = channels({"a", "b"});
  std::size_t conflicts = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<Plain> set = random_set(rng);
    const Consistency said = checked(schema, texts_of(set));
    ASSERT_EQ(said.verdict == Verdict::kHolds, any_point(set)) << trial;
    EXPECT_TRUE(said.unjudged.empty());
    if (said.verdict == Verdict::kHolds) {
      for (const Plain& c : set) EXPECT_TRUE(c.holds(said.example[0], said.example[1], 1e-7)) << c.text();
      continue;
    }
    ++conflicts;
    // The box must stand in the brute force, so that regions are bounded; it is wide enough never to take part otherwise.
    std::vector<Plain> core;
    for (const std::size_t i : said.conflict) core.push_back(set[i]);
    const auto with_box = [&](std::vector<Plain> some) {
      for (const auto& [p, q] : {std::pair{1., 0.}, {-1., 0.}, {0., 1.}, {0., -1.}}) some.push_back({{{p, q, 1e4}}});
      return some;
    };
    ASSERT_FALSE(any_point(with_box(core))) << trial;
    for (std::size_t i = 0; i < core.size(); ++i) {
      auto rest = core;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_TRUE(any_point(with_box(rest))) << trial << " without " << core[i].text();
    }
  }
  EXPECT_GT(conflicts, 60u);
  EXPECT_LT(conflicts, 340u);
}

// Every limit of a set may move: the cost of the repair is no more than that of any point, whose nearest repair is known in closed form.
TEST(Consistency, TheRepairHoldsAndIsTheLeast) {
  Rng rng(6);
  const Schema schema = channels({"a", "b"});
  std::size_t repaired = 0;
  for (int trial = 0; trial < 150; ++trial) {
    const std::vector<Plain> set = random_set(rng);
    auto list = texts_of(set);
    const Consistency said = checked(schema, list);
    if (said.verdict != Verdict::kConflict) continue;
    ++repaired;
    ASSERT_FALSE(said.repairs.empty()) << trial;
    for (const Repair& repair : said.repairs) list[repair.constraint] = repair.that;
    EXPECT_EQ(checked(schema, list).verdict, Verdict::kHolds) << trial;
    // At a point each constraint must open the way that is cheapest to open.
    const auto cost_at = [&](double a, double b) {
      double cost = 0;
      for (const Plain& c : set) {
        double least = INFINITY;
        for (const auto& r : c.rows) {
          const double gap = std::max(0.0, r[0] * a + r[1] * b - r[2]);
          least = std::min(least, gap * gap / (r[0] * r[0] + r[1] * r[1]));
        }
        cost += least;
      }
      return cost;
    };
    double grid = INFINITY, at_a = 0, at_b = 0;
    for (double step : {0.25, 0.025, 0.0025}) {
      const double middle_a = at_a, middle_b = at_b, reach = step == 0.25 ? 10 : 20 * step;
      for (double a = middle_a - reach; a <= middle_a + reach; a += step) {
        for (double b = middle_b - reach; b <= middle_b + reach; b += step) {
          if (const double cost = cost_at(a, b); cost < grid) grid = cost, at_a = a, at_b = b;
        }
      }
    }
    EXPECT_LE(said.cost, grid * (1 + 1e-6) + 1e-9) << trial;
    EXPECT_NEAR(said.cost, grid, 1e-3 * (1 + grid)) << trial;
  }
  EXPECT_GT(repaired, 30u);
}

TEST(Consistency, NamesWhatCannotHoldTogetherAndHowToMendIt) {
  const Schema schema = channels({"level", "inflow", "outflow"});
  const auto said = checked(schema, {"0 <= level <= 5", "inflow - outflow == 0", "inflow >= 3 [m3/h]", "outflow <= 2"});
  EXPECT_EQ(said.verdict, Verdict::kConflict);
  EXPECT_EQ(said.conflict, (std::vector<std::size_t>{1, 2, 3}));
  ASSERT_EQ(said.repairs.size(), 3u);  // least squares: gaps of 1 / (2 + 1 + 1), times the unit of each
  EXPECT_EQ(said.repairs[0].that, "inflow - outflow == 0.5");
  EXPECT_EQ(said.repairs[1].that, "inflow >= 2.75 [m3/h]");
  EXPECT_EQ(said.repairs[2].that, "outflow <= 2.25");
  EXPECT_NEAR(said.cost, 0.25, 1e-6);

  const auto one = checked(schema, {"5 <= level <= 3"});
  EXPECT_EQ(one.conflict, (std::vector<std::size_t>{0}));
  ASSERT_EQ(one.repairs.size(), 1u);
  EXPECT_EQ(one.repairs[0].that, "4 <= level <= 4");
  const auto signs = checked(schema, {"level >= 1", "level <= -1"});
  ASSERT_EQ(signs.repairs.size(), 2u);
  EXPECT_EQ(signs.repairs[0].that, "level >= 0");
  EXPECT_EQ(signs.repairs[1].that, "level <= 0");
}

TEST(Consistency, TellsEdgesApart) {
  const Schema schema = channels({"a", "b"});
  const auto verdict = [&](const std::vector<std::string>& list) { return checked(schema, list).verdict; };
  EXPECT_EQ(verdict({"a <= 2", "a >= 2"}), Verdict::kHolds);
  EXPECT_EQ(verdict({"a < 2", "a >= 2"}), Verdict::kConflict);
  EXPECT_EQ(verdict({"a < 2", "a > 1.999999"}), Verdict::kHolds);
  EXPECT_EQ(verdict({"a == b", "a + b == 4", "not (a <= 2 and b <= 2)"}), Verdict::kConflict);
  EXPECT_EQ(verdict({"norm(a, b) <= 5", "a + b >= 7.08"}), Verdict::kConflict);  // 5 sqrt 2 = 7.0711
  EXPECT_EQ(verdict({"norm(a, b) <= 5", "a + b >= 7.07"}), Verdict::kHolds);
  EXPECT_EQ(verdict({"a * a + a * b + b * b <= 3", "a >= 2.01"}), Verdict::kConflict);  // largest a: 2
  EXPECT_EQ(verdict({"a * a + a * b + b * b <= 3", "a >= 1.99"}), Verdict::kHolds);
  EXPECT_EQ(verdict({"a > 1 -> b >= 2", "b <= 1", "a >= 1.5"}), Verdict::kConflict);
  EXPECT_EQ(verdict({"abs(a) >= 2", "abs(a - b) <= 1", "b == 0.5"}), Verdict::kConflict);
  EXPECT_EQ(verdict({"abs(a) >= 2", "abs(a - b) <= 1", "b == -1.5"}), Verdict::kHolds);
  const auto strict = checked(schema, {"a < 2", "a > 2"});
  EXPECT_EQ(strict.verdict, Verdict::kConflict);
  EXPECT_FALSE(strict.repairs.empty());
}

// No single frame breaks them, but no two frames in a row obey.
TEST(Consistency, AsksForFramesInARow) {
  const Schema schema = channels({"a"});
  EXPECT_EQ(checked(schema, {"0 <= a <= 0.5", "rate(a) >= 1"}).conflict, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(checked(schema, {"0 <= a <= 2", "rate(a) >= 1"}).verdict, Verdict::kHolds);
  const auto four = checked(schema, {"0 <= a <= 2", "rate(a) >= 1", "prev(a, 3) <= 9"});
  EXPECT_EQ(four.frames, 4u);
  EXPECT_EQ(four.conflict, (std::vector<std::size_t>{0, 1}));
}

TEST(Consistency, SaysWhatItDoesNotJudge) {
  const Schema schema = channels({"a", "b"});
  const auto said = checked(schema, {"norm(a, b) >= 1", "hour() >= 22 -> a <= 1", "a >= 0"});
  EXPECT_EQ(said.verdict, Verdict::kHolds);
  ASSERT_EQ(said.unjudged.size(), 2u);
  EXPECT_EQ(said.unjudged[0].constraint, 0u);
  EXPECT_EQ(said.unjudged[1].why, "it depends on the time of day");
  // What is judged is enough for a conflict.
  EXPECT_EQ(checked(schema, {"norm(a, b) >= 1", "a >= 0", "a <= -1"}).conflict, (std::vector<std::size_t>{1, 2}));
  auto soft = texts({"a >= 0", "a <= -1"});
  soft[1].soft = true;
  EXPECT_EQ(check_consistency(schema, soft)->verdict, Verdict::kHolds);
  EXPECT_FALSE(check_consistency(schema, texts({"x >= 0"})));
}

// The guard takes an example as it stands, up to rounding.
TEST(Consistency, TheGuardAcceptsTheExample) {
  const Schema schema = channels({"a", "b"});
  const auto list = texts({"a + b <= 4", "a > 1 -> b >= 2", "norm(a, b) <= 3", "a >= 1.2", "abs(rate(b)) <= 0.5"});
  const auto said = check_consistency(schema, list);
  ASSERT_TRUE(said && said->verdict == Verdict::kHolds);
  const auto guard = compile_guard(schema, list, {});
  ASSERT_TRUE(guard);
  std::vector<std::byte> state((*guard)->state_bytes());
  std::vector<double> scratch((*guard)->scratch_doubles());
  GuardReport report;
  (*guard)->prepare(report);
  (*guard)->reset(state);
  for (std::size_t r = 0; r < said->frames; ++r) {
    std::vector<double> frame(said->example.begin() + static_cast<std::ptrdiff_t>(2 * r),
                              said->example.begin() + static_cast<std::ptrdiff_t>(2 * r + 2));
    const auto status = (*guard)->propose(state, static_cast<std::int64_t>(r) * schema.step_ns, frame, report, scratch);
    EXPECT_TRUE(status == GuardStatus::kClean || status == GuardStatus::kMoved);
    EXPECT_LT(report.distance, 1e-8);
    (*guard)->accept(state, static_cast<std::int64_t>(r) * schema.step_ns, {}, frame);
  }
}

TEST(Redundancy, EqualsBruteForce) {
  Rng rng(7);
  const Schema schema = channels({"a", "b"});
  std::size_t found = 0;
  for (int trial = 0; trial < 250; ++trial) {
    const std::vector<Plain> set = random_set(rng);
    if (!any_point(set)) continue;
    const auto said = find_redundant(schema, texts(texts_of(set)));
    ASSERT_TRUE(said) << said.error().text();
    EXPECT_TRUE(said->unjudged.empty());
    // A constraint follows from others when they leave no point on its other side, closed and moved out by a little.
    const auto denied_room = [&](const Plain& c, std::vector<Plain> others) {
      for (const auto& r : c.rows) others.push_back({{{-r[0], -r[1], -r[2] - 1e-6}}});
      for (const auto& [p, q] : {std::pair{1., 0.}, {-1., 0.}, {0., 1.}, {0., -1.}}) others.push_back({{{p, q, 1e4}}});
      return any_point(others, 1e-8);
    };
    std::vector<bool> gone(set.size(), false);
    for (const auto& f : said->follows) gone[f.constraint] = true;
    std::vector<Plain> kept;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (!gone[i]) kept.push_back(set[i]);
    }
    for (const auto& f : said->follows) {
      ++found;
      std::vector<Plain> from;
      for (const std::size_t j : f.from) {
        EXPECT_FALSE(gone[j]);
        from.push_back(set[j]);
      }
      EXPECT_FALSE(denied_room(set[f.constraint], from)) << trial;
      for (std::size_t j = 0; j < from.size(); ++j) {
        auto fewer = from;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(j));
        EXPECT_TRUE(denied_room(set[f.constraint], fewer)) << trial;
      }
    }
    for (std::size_t i = 0; i < set.size(); ++i) {  // what stays adds something
      if (gone[i]) continue;
      std::vector<Plain> others;
      for (std::size_t j = 0; j < set.size(); ++j) {
        if (j != i && !gone[j]) others.push_back(set[j]);
      }
      EXPECT_TRUE(denied_room(set[i], others)) << trial << " " << set[i].text();
    }
  }
  EXPECT_GT(found, 100u);
}

TEST(Redundancy, KeepsOneOfTwinsAndSaysWhatItCannotJudge) {
  const Schema schema = channels({"a", "b"});
  auto said = find_redundant(schema, texts({"a <= 5", "a < 5", "a <= 5", "a <= 6 or b >= 0", "b <= 1 or b > 0"}));
  ASSERT_TRUE(said);
  ASSERT_EQ(said->follows.size(), 4u);
  EXPECT_EQ(said->follows[0].constraint, 0u);
  EXPECT_EQ(said->follows[0].from, (std::vector<std::size_t>{1}));
  EXPECT_TRUE(said->follows[3].from.empty());
  // A box follows from a ball, but whether a ball follows from a box is not asked.
  said = find_redundant(schema, texts({"norm(a, b) <= 1", "a <= 1.5", "b <= 0.5"}));
  ASSERT_TRUE(said);
  ASSERT_EQ(said->follows.size(), 1u);
  EXPECT_EQ(said->follows[0].constraint, 1u);
  ASSERT_EQ(said->unjudged.size(), 1u);
  EXPECT_EQ(said->unjudged[0].constraint, 0u);
  // A rate follows from bounds over two frames.
  said = find_redundant(schema, texts({"0 <= a <= 1", "abs(rate(a)) <= 1", "abs(rate(a)) <= 0.9"}));
  ASSERT_TRUE(said);
  ASSERT_EQ(said->follows.size(), 1u);
  EXPECT_EQ(said->follows[0].constraint, 1u);
}

}  // namespace
}  // namespace kizzasi
