#include "kizzasi/data/season.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <numbers>

#include "kizzasi/base/json.h"
#include "kizzasi/base/rng.h"

namespace kizzasi::data {
namespace {

std::vector<Json> published_cases() {
  std::vector<Json> cases;
  std::ifstream file(KIZZASI_SOURCE_DIR "/tests/golden/data/seasonal_period.jsonl");
  for (std::string line; std::getline(file, line);) {
    auto one = Json::parse(line, "seasonal_period.jsonl");
    EXPECT_TRUE(one);
    cases.push_back(std::move(*one));
  }
  return cases;
}

TEST(Season, IsWhatACarefulPersonSays) {
  const auto cases = published_cases();
  ASSERT_GE(cases.size(), 15U);
  for (const Json& one : cases) {
    std::vector<double> values;
    for (const Json& value : one.find("input")->find("y")->items()) values.push_back(value.number());
    const auto period = static_cast<std::size_t>(one.find("expected")->find("period")->integer());
    const auto found = find_seasons(values);
    const std::string name = one.find("case")->string();
    if (period == 1) {
      EXPECT_TRUE(found.empty()) << name << " got " << (found.empty() ? 0 : found.front().period);
      continue;
    }
    ASSERT_FALSE(found.empty()) << name;
    EXPECT_EQ(found.front().period, period) << name;
    if (name == "two_periods_7_and_30") {
      ASSERT_GE(found.size(), 2U);
      EXPECT_EQ(found[1].period, 30U);
    }
    if (name == "traffic") {
      ASSERT_GE(found.size(), 2U);
      EXPECT_EQ(found[1].period, 168U);
    }
  }
}

// A season that was put in is found, whatever its length, under noise and with a fifth of the values missing.
TEST(Season, FindsWhatWasPutIn) {
  Rng rng(3);
  for (const std::size_t period : {2U, 3U, 5U, 12U, 24U, 52U, 61U, 96U, 250U, 365U}) {
    std::vector<double> profile(period), values;
    for (double& value : profile) value = rng.normal();
    for (std::size_t i = 0; i < 8 * period + 40; ++i) {
      const double value = 3 * profile[i % period] + 0.01 * static_cast<double>(i) + rng.normal();
      values.push_back(rng.uniform() < 0.2 ? std::numeric_limits<double>::quiet_NaN() : value);
    }
    const auto found = find_seasons(values);
    ASSERT_FALSE(found.empty()) << period;
    EXPECT_EQ(found.front().period, period);
  }
}

// Nothing is found where values merely wander.
TEST(Season, FindsNoneInWhatWanders) {
  int wrong = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    std::vector<double> values;
    double level = 0, before = 0, before2 = 0;
    for (int i = 0; i < 300; ++i) {
      level += rng.normal();
      const double ar = 1.2 * before - 0.6 * before2 + rng.normal();
      before2 = before;
      before = ar;
      values.push_back(seed % 3 == 0 ? rng.normal() : seed % 3 == 1 ? level : ar);
    }
    wrong += find_seasons(values).empty() ? 0 : 1;
  }
  EXPECT_LE(wrong, 1);
}

TEST(Season, OfManySeriesIsWhatTheyShare) {
  Rng rng(6);
  std::vector<Series> series(40);
  for (std::size_t s = 0; s < series.size(); ++s) {
    series[s].schema.channels = {{"y", "", Role::kTarget}};
    for (std::size_t r = 0; r < 120; ++r) {
      const double phase = 2 * std::numbers::pi * static_cast<double>(r) / 12;
      series[s].values.push_back(s % 4 == 0 ? rng.normal() : 5 * std::sin(phase) + rng.normal());
    }
  }
  const auto found = find_seasons(series);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().period, 12U);
}

TEST(Season, CalendarPeriods) {
  constexpr std::int64_t kMinute = 60'000'000'000;
  EXPECT_EQ(calendar_periods(60 * kMinute), (std::vector<std::size_t>{24, 168}));
  EXPECT_EQ(calendar_periods(15 * kMinute), (std::vector<std::size_t>{96, 672}));
  EXPECT_EQ(calendar_periods(1440 * kMinute), (std::vector<std::size_t>{7, 365}));
  EXPECT_TRUE(calendar_periods(0).empty());
}

}  // namespace
}  // namespace kizzasi::data
