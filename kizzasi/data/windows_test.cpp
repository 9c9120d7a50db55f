#include "kizzasi/data/windows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace kizzasi::data {
namespace {

Series counted(std::size_t rows) {
  Series series;
  series.schema.channels = {{"a", "", Role::kTarget}, {"b", "", Role::kObserved}};
  for (std::size_t r = 0; r < rows; ++r) series.values.insert(series.values.end(), {static_cast<double>(r), 0.0});
  return series;
}

TEST(Split, PartsFollowEachOtherAndCoverEverything) {
  for (std::size_t rows = 3; rows < 300; ++rows) {
    const auto split = split_rows(rows, 0.7, 0.1);
    if (!split) {
      EXPECT_LT(rows, 11U);  // too few for a validation row
      continue;
    }
    EXPECT_LT(0U, split->train_end);
    EXPECT_LT(split->train_end, split->validation_end);
    EXPECT_LT(split->validation_end, split->rows);
    EXPECT_EQ(split->rows, rows);
    EXPECT_EQ(split->train_end, rows * 7 / 10);
    EXPECT_EQ(split->validation_end, rows * 8 / 10);
  }
  EXPECT_EQ(split_rows(10, 1.0, 0.0)->train_end, 10U);
}

TEST(Split, RefusesWhatCannotBe) {
  for (const auto& [train, validation] :
       {std::pair{0.0, 0.1}, std::pair{0.8, 0.3}, std::pair{-0.1, 0.5}, std::pair{0.5, -0.1}, std::pair{std::nan(""), 0.1}}) {
    const auto split = split_rows(100, train, validation);
    ASSERT_FALSE(split);
    EXPECT_EQ(split.error().fault, Fault::kBadUse);
  }
  ASSERT_FALSE(split_rows(2, 0.7, 0.1));
  EXPECT_FALSE(split_rows(2, 0.7, 0.1).error().hint.empty());
}

// By the definition: every origin whose answers lie in the range, and nothing else.
TEST(Windows, AreAllThatFitAndNothingLeaks) {
  const Series series = counted(60);
  for (const std::size_t lookback : {1U, 4U, 20U}) {
    for (const std::size_t horizon : {1U, 3U, 15U}) {
      for (const std::size_t stride : {1U, 2U, 7U}) {
        for (const bool before : {false, true}) {
          const std::size_t first = 30, last = 55;
          const auto found = windows(series, first, last, {lookback, horizon, stride, before}, 4);
          std::vector<std::size_t> expected;
          const std::size_t start = before ? std::max(first, lookback) : first + lookback;
          for (std::size_t origin = 0; origin < 60; ++origin) {
            if (origin >= start && origin + horizon <= last && (origin - start) % stride == 0) expected.push_back(origin);
          }
          ASSERT_EQ(found.size(), expected.size());
          for (std::size_t i = 0; i < found.size(); ++i) {
            EXPECT_EQ(found[i].series, 4U);
            EXPECT_EQ(found[i].origin, expected[i]);
            EXPECT_EQ(found[i].begin + lookback, found[i].origin);
            EXPECT_GE(found[i].origin, first);
            EXPECT_TRUE(before || found[i].begin >= first);
          }
        }
      }
    }
  }
}

TEST(Windows, LeaveOutAnswersThatAreMostlyMissing) {
  Series series = counted(20);
  for (std::size_t r = 10; r < 14; ++r) series.row(r)[0] = std::numeric_limits<double>::quiet_NaN();
  const auto all = windows(series, 0, 20, {2, 4, 1, false, 1.0});
  const auto some = windows(series, 0, 20, {2, 4, 1, false, 0.5});
  EXPECT_EQ(all.size(), 15U);
  std::set<std::size_t> kept;
  for (const Window& window : some) kept.insert(window.origin);
  for (std::size_t origin = 2; origin <= 16; ++origin) {
    std::size_t missing = 0;
    for (std::size_t r = origin; r < origin + 4; ++r) missing += r >= 10 && r < 14 ? 1 : 0;
    EXPECT_EQ(kept.contains(origin), missing <= 2) << origin;
  }
}

TEST(Windows, NoneWhereNothingFits) {
  const Series series = counted(10);
  EXPECT_TRUE(windows(series, 0, 10, {8, 3, 1}).empty());
  EXPECT_TRUE(windows(series, 0, 11, {1, 1, 1}).empty());
  EXPECT_TRUE(windows(series, 5, 5, {1, 1, 1}).empty());
}

}  // namespace
}  // namespace kizzasi::data
