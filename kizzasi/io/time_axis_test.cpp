#include "kizzasi/io/time_axis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kizzasi/base/rng.h"

namespace kizzasi::io {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kDay = 86'400 * kSecond;

// Stamps of every kind: regular with gaps, scattering (more different steps than are counted one by one), months, no order in them at all.
std::vector<std::vector<std::int64_t>> recordings() {
  Rng rng(3);
  std::vector<std::vector<std::int64_t>> all(4);
  std::int64_t regular = 0, jitter = 0, irregular = 0;
  for (int i = 0; i < 20'000; ++i) {
    all[0].push_back(regular += kSecond * (i % 1000 == 7 ? 5 : 1));
    all[1].push_back(jitter += kSecond + static_cast<std::int64_t>(rng.below(400'000'000)));
    all[2].push_back(irregular += 1 + static_cast<std::int64_t>(rng.below(100)) * static_cast<std::int64_t>(rng.below(100)) * kSecond);
  }
  for (const std::int64_t day : {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 335, 366}) all[3].push_back((18'262 + day) * kDay);  // 2020
  return all;
}

TEST(TimeAxis, OrderAndCopiesOfStampsChangeNothingElse) {
  constexpr Regularity kKinds[] = {Regularity::kRegular, Regularity::kJitter, Regularity::kIrregular, Regularity::kCalendar};
  std::size_t kind = 0;
  for (const std::vector<std::int64_t>& rising : recordings()) {
    const TimeAxis axis = examine_times(rising);
    EXPECT_EQ(axis.regularity, kKinds[kind++]);
    EXPECT_EQ(axis.out_of_order + axis.duplicates, 0U);
    std::vector<std::int64_t> mixed = rising;
    std::reverse(mixed.begin(), mixed.end());
    mixed.push_back(mixed.front());
    const TimeAxis same = examine_times(mixed);
    EXPECT_EQ(same.out_of_order, rising.size() - 1);
    EXPECT_EQ(same.duplicates, 1U);
    EXPECT_EQ(same.first_duplicate, rising.size());
    EXPECT_EQ(same.regularity, axis.regularity);
    EXPECT_EQ(same.step_ns, axis.step_ns);
    EXPECT_EQ(same.months, axis.months);
    EXPECT_EQ(same.first_ns, axis.first_ns);
    EXPECT_EQ(same.last_ns, axis.last_ns);
    EXPECT_EQ(same.off_grid, axis.off_grid);
    ASSERT_EQ(same.gaps.size(), axis.gaps.size());
    for (std::size_t i = 0; i < axis.gaps.size(); ++i) {
      EXPECT_EQ(same.gaps[i].after_ns, axis.gaps[i].after_ns);
      EXPECT_EQ(same.gaps[i].missing_steps, axis.gaps[i].missing_steps);
    }
  }
}

// The step of scattering stamps is their median, worked out here by sorting all steps, rounded by at most half a per cent.
TEST(TimeAxis, TheStepOfScatteringStampsIsTheirMedian) {
  const std::vector<std::int64_t> stamps = recordings()[1];
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < stamps.size(); ++i) steps.push_back(stamps[i] - stamps[i - 1]);
  std::sort(steps.begin(), steps.end());
  const auto median = static_cast<double>(steps[steps.size() / 2]);
  EXPECT_NEAR(static_cast<double>(examine_times(stamps).step_ns), median, 0.005 * median);
}

TEST(TimeAxis, GapsAreCounted) {
  const TimeAxis axis = examine_times(recordings()[0]);
  EXPECT_EQ(axis.step_ns, kSecond);
  ASSERT_EQ(axis.gaps.size(), 20U);
  for (const Gap& gap : axis.gaps) EXPECT_EQ(gap.missing_steps, 4U);
  const TimeAxis months = examine_times(recordings()[3]);
  EXPECT_EQ(months.months, 1);
  ASSERT_EQ(months.gaps.size(), 1U);  // November is not there
  EXPECT_EQ(months.gaps[0].missing_steps, 1U);
}

}  // namespace
}  // namespace kizzasi::io
