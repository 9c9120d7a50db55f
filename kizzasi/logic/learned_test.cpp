#include "kizzasi/logic/learned.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/learned_relations.h"

namespace kizzasi {
namespace {

using Kind = LearnedConstraint::Kind;

Schema channels(std::initializer_list<const char*> names) {
  Schema schema;
  for (const char* name : names) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = 2'000'000'000;
  return schema;
}

std::vector<LearnedConstraint> learned(const Schema& schema, const std::vector<double>& values, const LearnOptions& options = {}) {
  const auto made = learn_constraints(schema, {values, {}, {}}, options);
  EXPECT_TRUE(made) << made.error().text();
  return made ? *made : std::vector<LearnedConstraint>{};
}

const LearnedConstraint* of_kind(const std::vector<LearnedConstraint>& all, Kind kind) {
  for (const auto& one : all) {
    if (one.kind == kind) return &one;
  }
  return nullptr;
}

// Shares of rows that break each constraint, as the guard judges them.
std::vector<double> broken_shares(const Schema& schema, const std::vector<LearnedConstraint>& all, const std::vector<double>& values) {
  std::vector<ConstraintText> texts;
  for (const auto& one : all) texts.push_back({.name = one.name, .that = one.that});
  const auto guard = compile_guard(schema, texts, {});
  EXPECT_TRUE(guard) << guard.error().text();
  if (!guard) return {};
  std::vector<std::byte> state((*guard)->state_bytes());
  (*guard)->reset(state);
  GuardReport report;
  (*guard)->prepare(report);
  std::vector<double> broken(all.size(), 0);
  const std::size_t rows = values.size() / schema.size();
  for (std::size_t r = 0; r < rows; ++r) {
    const auto frame = std::span(values).subspan(r * schema.size(), schema.size());
    const auto time = static_cast<std::int64_t>(r) * schema.step_ns;
    (void)(*guard)->check(state, time, frame, report);
    for (std::size_t i = 0; i < all.size(); ++i) broken[i] += report.broken[i] / static_cast<double>(rows);
    (*guard)->accept(state, time, frame, {});
  }
  return broken;
}

// Wilks: of n rows none left out, one edge: s^n = 1 - confidence; two edges: n s^(n-1) - (n-1) s^n.
TEST(Learned, PromisesFollowTheClosedForms) {
  for (const std::size_t n : {1u, 10u, 299u, 5000u}) {
    for (const double confidence : {0.9, 0.99}) {
      EXPECT_NEAR(promised_share(n, 1, confidence), std::pow(1 - confidence, 1.0 / static_cast<double>(n)), 1e-9);
      if (n < 2) continue;
      const double s = promised_share(n, 2, confidence), count = static_cast<double>(n);
      EXPECT_NEAR(count * std::pow(s, count - 1) - (count - 1) * std::pow(s, count), 1 - confidence, 1e-9);
    }
  }
  EXPECT_EQ(promised_share(5, 6, 0.9), 0);
  EXPECT_GT(promised_share(93, 1, 0.99), 0.95);  // 90 rows are needed for 95 % at 99 %
  EXPECT_LT(promised_share(89, 1, 0.99), 0.95);
}

// Over many recordings of which the true share covered is known, the promise fails no more often than it says.
TEST(Learned, TheConfidenceHoldsOverManyTrials) {
  const Schema schema = channels({"x"});
  const auto normal = [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); };
  for (const double share : {0.0, 0.9}) {
    int trials = 0, failed = 0, rate_failed = 0;
    Rng rng(share == 0 ? 3 : 4);
    for (; trials < 2000; ++trials) {
      std::vector<double> values(120);
      for (double& v : values) v = rng.normal();
      LearnOptions options;
      options.confidence = 0.9;
      options.share = share;
      const auto all = learned(schema, values, options);
      ASSERT_GE(all.size(), 2u);
      double low = 0, high = 0;
      ASSERT_EQ(std::sscanf(all[0].that.c_str(), "%lf <= x <= %lf", &low, &high), 2) << all[0].that;
      EXPECT_GE(all[0].promised, share);
      failed += normal(high) - normal(low) < all[0].promised ? 1 : 0;
      ASSERT_EQ(std::sscanf(all[1].that.c_str(), "%lf <= rate(x) <= %lf", &low, &high), 2) << all[1].that;
      const double spread = std::sqrt(2.0) / 2;  // of a difference, over 2 s
      rate_failed += normal(high / spread) - normal(low / spread) < all[1].promised ? 1 : 0;
    }
    // 3 sigma above 10 %. Differences that share a value depend on one another a little: the promise is kept within twice that.
    EXPECT_LT(failed, trials * 0.1 + 3 * std::sqrt(trials * 0.09));
    EXPECT_GT(failed, trials * 0.03);  // and it is not bought by bounds that are too wide
    EXPECT_LT(rate_failed, trials * 0.1 + 6 * std::sqrt(trials * 0.09));
  }
}

TEST(Learned, FindsRelationsWithTheirWholeNumbers) {
  const Schema schema = channels({"inflow", "outflow", "store", "twice", "free"});
  Rng rng(8);
  const auto recording = [&](std::size_t rows, double noise) {
    std::vector<double> values;
    for (std::size_t r = 0; r < rows; ++r) {
      const double outflow = 5 + rng.normal(), store = 2 * rng.normal(), free = rng.normal();
      values.insert(values.end(), {outflow + store + noise * rng.normal(), outflow, store, 1.5 * store - 2 + noise * rng.normal(), free});
    }
    return values;
  };
  const auto of_relations = [&](const std::vector<double>& values) {
    std::vector<std::string> texts;
    for (const auto& one : learned(schema, values)) {
      if (one.kind == Kind::kRelation) texts.push_back(one.that);
    }
    return texts;
  };
  const auto plain = of_relations(recording(2000, 0));
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0], "inflow - outflow - store == 0");
  EXPECT_EQ(plain[1], "3 * store - 2 * twice == 4");
  const auto noisy_rows = recording(4000, 0.004);
  const auto noisy = of_relations(noisy_rows);
  ASSERT_EQ(noisy.size(), 2u);
  for (const std::string& text : {noisy[0], noisy[1]}) EXPECT_NE(text.find(" +- 0.0"), std::string::npos) << text;
  // The truth obeys what was learned, and what breaks a true relation by ten times its noise breaks one of them.
  const auto held_out = recording(4000, 0.004);
  const auto all = learned(schema, noisy_rows);
  const auto broken = broken_shares(schema, all, held_out);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_LE(broken[i], 1 - all[i].promised) << all[i].that;
  for (const int wrong : {0, 3}) {
    auto shifted = held_out;
    for (std::size_t r = 0; r < 4000; ++r) shifted[r * 5 + static_cast<std::size_t>(wrong)] += 0.08;
    double most = 0;
    const auto shares = broken_shares(schema, all, shifted);
    for (std::size_t i = 0; i < all.size(); ++i) most = all[i].kind == Kind::kRelation ? std::max(most, shares[i]) : most;
    EXPECT_GT(most, 0.95);
  }
}

TEST(Learned, RelationsAreExactWhereTheDataAre) {
  const Schema schema = channels({"a", "b", "c"});
  Rng rng(9);
  std::vector<double> values;
  for (int r = 0; r < 300; ++r) {  // three columns on one line: two relations, each of two columns or so
    const double a = static_cast<double>(rng.below(1000));
    values.insert(values.end(), {a, 3 * a + 10, 3 * a / 2});
  }
  std::vector<std::string> texts;
  for (const auto& one : learned(schema, values)) {
    if (one.kind == Kind::kRelation) texts.push_back(one.that);
  }
  ASSERT_EQ(texts.size(), 2u);
  for (const std::string& text : texts) EXPECT_EQ(text.find("+-"), std::string::npos) << text;
  const auto broken = broken_shares(schema, learned(schema, values), values);
  for (const double share : broken) EXPECT_EQ(share, 0);
  // Independent columns have none.
  for (double& v : values) v = rng.normal();
  EXPECT_EQ(of_kind(learned(schema, values), Kind::kRelation), nullptr);
}

// Excursions that last 3 to 12 rows, over a base with small noise.
TEST(Learned, SettlingTimesCoverNewEpisodes) {
  const Schema schema = channels({"temp"});
  int kept = 0, episodes = 0;
  double promised = 0;
  for (std::uint64_t trial = 0; trial < 60; ++trial) {
    Rng rng = Rng(10).numbered(trial);
    const auto recording = [&](std::size_t rows) {
      std::vector<double> values;
      while (values.size() < rows) {
        for (int i = 0; i < 60; ++i) values.push_back(20 + 0.1 * rng.normal());
        const std::size_t length = 3 + rng.below(10);
        for (std::size_t i = 0; i < length; ++i) values.push_back(60 + 0.1 * rng.normal());
      }
      values.resize(rows);
      for (std::size_t i = rows - 20; i < rows; ++i) values[i] = 20;
      return values;
    };
    LearnOptions options;
    options.confidence = 0.9;
    const auto all = learned(schema, recording(12000), options);
    const auto* settles = of_kind(all, Kind::kSettling);
    ASSERT_NE(settles, nullptr);
    EXPECT_GT(settles->judged, 60u);
    double start = 0, longest = 0, back = 0;
    ASSERT_EQ(std::sscanf(settles->that.c_str(), "temp > %lf -> eventually[0, %lf] temp < %lf", &start, &longest, &back), 3)
        << settles->that;
    promised += settles->promised / 60;
    const auto fresh = recording(6000);
    for (std::size_t r = 1; r < fresh.size(); ++r) {
      if (!(fresh[r] > start && fresh[r - 1] < back)) continue;
      std::size_t end = r;
      while (end < fresh.size() && fresh[end] >= back) ++end;
      ++episodes;
      kept += static_cast<double>(end - r) <= longest ? 1 : 0;
    }
    EXPECT_TRUE(broken_shares(schema, all, fresh).size() == all.size());  // the guard takes it
  }
  EXPECT_GE(kept, promised * episodes);
}

TEST(Learned, MissingValuesSeriesAndUnevenTimes) {
  Schema schema = channels({"x y"});
  schema.channels[0].unit = "m";
  const double none = std::nan("");
  // Two series side by side; within each, x rises by 1 a second.
  std::vector<double> values;
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> series;
  std::int64_t now = 0;
  for (int r = 0; r < 40; ++r) {
    now += (1 + r % 3) * std::int64_t{1'000'000'000};
    for (const int s : {0, 1}) {
      values.push_back(r % 5 == 4 ? none : static_cast<double>(now) / 1e9 + 1000 * s);
      times.push_back(now);
      series.push_back(s);
    }
  }
  const auto all = learn_constraints(schema, {values, times, series}, {});
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].that, "1 <= \"x y\" <= 1078 [m]");
  EXPECT_EQ((*all)[0].judged, 64u);
  EXPECT_EQ((*all)[1].that, "rate(\"x y\") == 1");
  EXPECT_FALSE(learn_constraints(schema, {values, times, {}}, {.confidence = 1}));
  EXPECT_FALSE(learn_constraints(schema, {values, std::span(times).first(3), {}}, {}));
}

}  // namespace
}  // namespace kizzasi
