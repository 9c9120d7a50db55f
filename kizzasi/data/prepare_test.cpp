#include "kizzasi/data/prepare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "kizzasi/base/rng.h"

namespace kizzasi::data {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Table table_of(std::vector<std::int64_t> seconds, std::vector<double> values) {
  Table table;
  table.source = "t.csv";
  table.columns = {{"x", "", Role::kTarget}};
  for (const std::int64_t second : seconds) table.time_ns.push_back(second * kSecond);
  table.values = std::move(values);
  return table;
}

void expect_values(const Series& series, const std::vector<double>& expected) {
  ASSERT_EQ(series.values.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(series.values[i])) << i << ": " << series.values[i];
    } else {
      EXPECT_NEAR(series.values[i], expected[i], 1e-12) << i;
    }
  }
}

TEST(Prepare, SortsMergesAndLeavesGapsMissing) {
  PrepareReport report;
  const Table table = table_of({10, 30, 20, 30, 60, 70}, {1, 3, 2, 4, 6, 7});
  const auto series = prepare(table, {}, report);
  ASSERT_TRUE(series) << series.error().text();
  ASSERT_EQ(series->size(), 1U);
  expect_values(series->front(), {1, 2, 4, kNaN, kNaN, 6, 7});
  EXPECT_EQ(series->front().start_ns, 10 * kSecond);
  EXPECT_EQ(series->front().schema.step_ns, 10 * kSecond);
  const SeriesReport total = report.total();
  EXPECT_EQ(total.rows_read, 6U);
  EXPECT_EQ(total.rows_out, 7U);
  EXPECT_EQ(total.duplicates, 1U);
  EXPECT_EQ(total.out_of_order, 1U);
  EXPECT_EQ(total.gaps, 1U);
  EXPECT_EQ(total.gap_frames, 2U);
  EXPECT_EQ(total.missing, 2U);
  EXPECT_EQ(total.filled, 0U);
}

TEST(Prepare, EveryDuplicatePolicy) {
  const Table table = table_of({0, 1, 1, 1, 2, 3}, {0, 5, kNaN, 9, 2, 3});
  for (const auto& [policy, middle] : {std::pair{"first", 5.0}, std::pair{"last", 9.0}, std::pair{"mean", 7.0}}) {
    PrepareOptions options;
    options.duplicates = policy;
    PrepareReport report;
    const auto series = prepare(table, options, report);
    ASSERT_TRUE(series);
    expect_values(series->front(), {0, middle, 2, 3});
    EXPECT_EQ(report.total().duplicates, 2U);
  }
  PrepareOptions options;
  options.duplicates = "error";
  PrepareReport report;
  const auto refused = prepare(table, options, report);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("1970-01-01T00:00:01"), std::string::npos) << refused.error().text();
}

TEST(Prepare, EveryMissingPolicyWithItsLongestGap) {
  const Table table = table_of({0, 1, 2, 3, 4, 5, 6, 7, 8}, {kNaN, 1, kNaN, 3, kNaN, kNaN, kNaN, 7, kNaN});
  const auto run = [&](const char* policy, std::int64_t max_gap) {
    PrepareOptions options;
    options.missing = policy;
    options.max_gap = max_gap;
    PrepareReport report;
    auto series = prepare(table, options, report);
    EXPECT_TRUE(series);
    EXPECT_EQ(report.total().missing, 6U);
    std::size_t left = 0;
    for (const double value : series->front().values) left += std::isnan(value) ? 1 : 0;
    EXPECT_EQ(report.total().filled + left, 6U);
    return series->front();
  };
  expect_values(run("keep", 0), {kNaN, 1, kNaN, 3, kNaN, kNaN, kNaN, 7, kNaN});
  expect_values(run("interpolate", 0), {kNaN, 1, 2, 3, 4, 5, 6, 7, kNaN});
  expect_values(run("interpolate", 2), {kNaN, 1, 2, 3, kNaN, kNaN, kNaN, 7, kNaN});
  expect_values(run("forward", 0), {kNaN, 1, 1, 3, 3, 3, 3, 7, 7});
  expect_values(run("forward", 1), {kNaN, 1, 1, 3, kNaN, kNaN, kNaN, 7, 7});
}

// Each policy against its own definition, evaluated row by row on random stamps.
TEST(Prepare, ResamplesAsStated) {
  Rng rng(11);
  for (int round = 0; round < 40; ++round) {
    Table table = table_of({}, {});
    std::int64_t time = 0;
    for (int i = 0; i < 50; ++i) {
      table.time_ns.push_back(time);
      table.values.push_back(rng.normal());
      time += static_cast<std::int64_t>(rng.uniform(0.2, 1.6) * kSecond);
    }
    const std::int64_t last = table.time_ns.back();
    for (const char* policy : {"mean", "last", "linear"}) {
      PrepareOptions options;
      options.step = "1s";
      options.resample = policy;
      PrepareReport report;
      const auto series = prepare(table, options, report);
      ASSERT_TRUE(series) << series.error().text();
      const Series& out = series->front();
      ASSERT_EQ(out.rows(), static_cast<std::size_t>(std::llround(static_cast<double>(last) / kSecond)) + 1);
      for (std::size_t f = 0; f < out.rows(); ++f) {
        const std::int64_t at = static_cast<std::int64_t>(f) * kSecond;
        double expected = kNaN;
        if (std::string(policy) == "mean") {
          double sum = 0;
          int count = 0;
          for (std::size_t i = 0; i < 50; ++i) {
            if (table.time_ns[i] >= at - kSecond / 2 && table.time_ns[i] < at + kSecond / 2) {
              sum += table.values[i];
              ++count;
            }
          }
          if (count > 0) expected = sum / count;
        } else if (std::string(policy) == "last") {
          for (std::size_t i = 0; i < 50; ++i) {
            if (table.time_ns[i] <= at + kSecond / 100 && table.time_ns[i] >= at - kSecond) expected = table.values[i];
          }
        } else {
          for (std::size_t i = 0; i < 50; ++i) {
            if (i + 1 < 50 && table.time_ns[i] <= at && at < table.time_ns[i + 1] &&
                table.time_ns[i + 1] - table.time_ns[i] <= 2 * kSecond) {
              const double share =
                  static_cast<double>(at - table.time_ns[i]) / static_cast<double>(table.time_ns[i + 1] - table.time_ns[i]);
              expected = table.values[i] + share * (table.values[i + 1] - table.values[i]);
            }
          }
          double nearest = 0.01 * kSecond;  // a stamp that close is on the grid
          for (std::size_t i = 0; i < 50; ++i) {
            const double off = std::fabs(static_cast<double>(table.time_ns[i] - at));
            if (off <= nearest) {
              nearest = off;
              expected = table.values[i];
            }
          }
        }
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(out.values[f])) << policy << " " << f << " " << out.values[f];
        } else {
          EXPECT_NEAR(out.values[f], expected, 1e-12) << policy << " " << f;
        }
      }
    }
    PrepareOptions strict;
    strict.step = "1s";
    strict.resample = "none";
    PrepareReport report;
    EXPECT_FALSE(prepare(table, strict, report));
  }
}

TEST(Prepare, MonthsYearsAndCenturiesAreCounted) {
  // 1 January of 1700 to 2019: further apart than 64-bit nanoseconds can subtract.
  Table table = table_of({}, {});
  const auto days = [](int year) {
    std::int64_t n = 0;
    for (int y = 1970; y < year; ++y) n += (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)) ? 366 : 365;
    for (int y = year; y < 1970; ++y) n -= (y % 4 == 0 && (y % 100 != 0 || y % 400 == 0)) ? 366 : 365;
    return n;
  };
  for (int year = 1700; year < 2020; ++year) {
    if (year == 1900) continue;
    table.time_ns.push_back(days(year) * 86400 * kSecond);
    table.values.push_back(year);
  }
  PrepareReport report;
  const auto series = prepare(table, {}, report);
  ASSERT_TRUE(series) << series.error().text();
  ASSERT_EQ(series->front().rows(), 320U);
  for (std::size_t r = 0; r < 320; ++r) {
    if (r == 200) {
      EXPECT_TRUE(std::isnan(series->front().values[r]));
    } else {
      EXPECT_EQ(series->front().values[r], 1700.0 + static_cast<double>(r));
    }
  }
  EXPECT_EQ(report.total().gap_frames, 1U);
}

// Rows of a calendar series stand on the very stamps that made them, and go on with those of the calendar.
TEST(Prepare, RowsOfACalendarStandOnItsStamps) {
  using namespace std::chrono;
  const auto ns = [](sys_days day, int hours) { return sys_time<nanoseconds>(day + std::chrono::hours(hours)).time_since_epoch().count(); };
  for (const int step : {1, 3, 12}) {
    for (const unsigned day : {1U, 15U, 28U, 32U}) {  // 32: the last of each month
      std::vector<std::int64_t> stamps;
      for (int i = 0; i < 200; ++i) {
        const year_month month = year(1965) / January + months(i * step);
        const sys_days date = day > 31 ? sys_days(month / last) : sys_days(month / std::chrono::day(day));
        stamps.push_back(ns(date, day == 15 ? 7 : 0));
      }
      Table table = table_of({}, {});
      for (std::size_t i = 0; i < 150; ++i) {
        if (i % 40 == 17) continue;  // a gap
        table.time_ns.push_back(stamps[i]);
        table.values.push_back(static_cast<double>(i));
      }
      PrepareReport report;
      const auto series = prepare(table, {}, report);
      ASSERT_TRUE(series) << series.error().text();
      ASSERT_EQ(series->front().rows(), 150U);
      for (std::size_t i = 0; i < 200; ++i) {
        ASSERT_EQ(row_time(series->front(), i), stamps[i]) << step << " " << day << " " << i;
        if (i + 1 == 200 || day == 28) continue;  // of the 28th of February alone it cannot be told whether it means the last
        ASSERT_EQ(later(stamps[i], 1, series->front().schema.step_ns), stamps[i + 1]) << step << " " << day << " " << i;
      }
    }
  }
  EXPECT_EQ(later(5, 3, 60), 185);
  EXPECT_EQ(later(5, 3, 0), 5);
}

TEST(Prepare, FarFutureStampsAreSetAside) {
  Table table = table_of({0, 60, 120, 4'200'000'000, 240, 300}, {0, 1, 2, 3, 4, 5});
  PrepareReport report;
  const auto series = prepare(table, {}, report);
  ASSERT_TRUE(series) << series.error().text();
  expect_values(series->front(), {0, 1, 2, kNaN, 4, 5});
  EXPECT_EQ(report.total().implausible, 1U);
  EXPECT_EQ(report.total().out_of_order, 0U);
}

TEST(Prepare, LongTablesBecomeSeriesOfTheirOwnStep) {
  Table table = table_of({0, 0, 1, 2, 60, 3, 120}, {1, 10, 2, 3, 20, 4, 30});
  table.series = {0, 1, 0, 0, 1, 0, 1};
  table.ids = {"fast", "slow"};
  PrepareReport report;
  const auto series = prepare(table, {}, report);
  ASSERT_TRUE(series) << series.error().text();
  ASSERT_EQ(series->size(), 2U);
  EXPECT_EQ((*series)[0].id, "fast");
  EXPECT_EQ((*series)[0].schema.step_ns, kSecond);
  EXPECT_EQ((*series)[1].schema.step_ns, 60 * kSecond);
  expect_values((*series)[1], {10, 20, 30});
}

TEST(Prepare, RolesFollowTheOptions) {
  Table table;
  table.columns = {
      {"a", "", Role::kTarget}, {"b", "", Role::kTarget}, {"c", "", Role::kTarget}, {"d", "", Role::kTarget}, {"same", "", Role::kTarget}};
  table.values = {1, 2, 3, 4, 7, 2, 3, 4, 5, 7};
  PrepareOptions options;
  options.targets = {"b"};
  options.known_future = {"c"};
  options.drop = {"d"};
  PrepareReport report;
  const auto series = prepare(table, options, report);
  ASSERT_TRUE(series) << series.error().text();
  const Schema& schema = series->front().schema;
  ASSERT_EQ(schema.names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(schema.channels[0].role, Role::kObserved);
  EXPECT_EQ(schema.channels[1].role, Role::kTarget);
  EXPECT_EQ(schema.channels[2].role, Role::kKnownFuture);
  ASSERT_EQ(report.remarks.size(), 1U);  // the constant one is left out, and said
}

TEST(Prepare, WrongUsesSayWhatWhereAndTheWayOut) {
  const Table good = table_of({0, 1, 2, 3}, {1, 2, 3, 4});
  struct Case {
    const char* name;
    Table table;
    PrepareOptions options;
  };
  std::vector<Case> cases;
  const auto with = [](auto change) {
    PrepareOptions options;
    change(options);
    return options;
  };
  cases.push_back({"no rows", table_of({}, {}), {}});
  cases.push_back({"unknown target", good, with([](auto& o) { o.targets = {"y"}; })});
  cases.push_back({"unknown drop", good, with([](auto& o) { o.drop = {"zz"}; })});
  cases.push_back({"two roles", good, with([](auto& o) { o.targets = o.observed = {"x"}; })});
  cases.push_back({"nothing left", good, with([](auto& o) { o.drop = {"x"}; })});
  cases.push_back({"no target", good, with([](auto& o) { o.observed = {"x"}; })});
  cases.push_back({"constant", table_of({0, 1, 2}, {5, 5, 5}), {}});
  cases.push_back({"all missing", table_of({0, 1, 2}, {kNaN, kNaN, kNaN}), {}});
  cases.push_back({"named target all missing", table_of({0, 1, 2}, {kNaN, kNaN, kNaN}), with([](auto& o) { o.targets = {"x"}; })});
  cases.push_back({"bad step", good, with([](auto& o) { o.step = "10 parsecs"; })});
  cases.push_back({"zero step", good, with([](auto& o) { o.step = "0s"; })});
  cases.push_back({"bad policy", good, with([](auto& o) { o.resample = "cubic"; })});
  cases.push_back({"bad duplicates", good, with([](auto& o) { o.duplicates = "drop"; })});
  cases.push_back({"off the grid", table_of({0, 10, 25, 30, 40}, {1, 2, 3, 4, 5}), with([](auto& o) { o.resample = "none"; })});
  cases.push_back({"frames without end", table_of({0, 1, 2, 500'000'000}, {1, 2, 3, 4}), {}});
  for (const Case& one : cases) {
    PrepareReport report;
    const auto result = prepare(one.table, one.options, report);
    ASSERT_FALSE(result) << one.name;
    EXPECT_FALSE(result.error().what.empty()) << one.name;
    EXPECT_FALSE(result.error().expected.empty()) << one.name << ": " << result.error().text();
    EXPECT_FALSE(result.error().where.empty()) << one.name << ": " << result.error().text();
  }
}

}  // namespace
}  // namespace kizzasi::data
