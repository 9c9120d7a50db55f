#include "kizzasi/signal/head.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kizzasi/signal/prediction.h"

namespace kizzasi {
namespace {

HeadConfig of_kind(const char* kind) {
  HeadConfig config;
  config.kind = kind;
  return config;
}

TEST(Head, CountsTheNumbersOfEachKind) {
  EXPECT_EQ(of_kind("point").parameters(), 1u);
  EXPECT_EQ(of_kind("gaussian").parameters(), 2u);
  EXPECT_EQ(of_kind("student_t").parameters(), 3u);
  EXPECT_EQ(of_kind("mixture").parameters(), 9u);
  EXPECT_EQ(of_kind("quantiles").parameters(), 15u);
}

TEST(Head, EveryKindIsNamedOnce) {
  for (const HeadKind kind : {HeadKind::kPoint, HeadKind::kGaussian, HeadKind::kStudentT, HeadKind::kMixture, HeadKind::kQuantiles}) {
    EXPECT_EQ(of_kind(to_string(kind)).which(), kind);
    EXPECT_TRUE(of_kind(to_string(kind)).check());
  }
}

TEST(Head, RefusesLevelsThatAreNoQuantiles) {
  const auto with_levels = [](std::vector<double> levels) {
    HeadConfig config;
    config.levels = std::move(levels);
    return config.check();
  };
  EXPECT_TRUE(with_levels({0.5}));
  for (const std::vector<double>& levels : std::vector<std::vector<double>>{{}, {0.1, 0.9}, {0.5, 0.5}, {0.9, 0.5}, {0, 0.5}, {0.5, 1}}) {
    EXPECT_FALSE(with_levels(levels)) << testing::PrintToString(levels);
  }
  EXPECT_EQ(of_kind("guassian").check().error().hint, "Did you mean 'gaussian'?");
  HeadConfig none = of_kind("mixture");
  none.components = 0;
  EXPECT_FALSE(none.check());
}

TEST(Head, ReadsBackFromItsJson) {
  HeadConfig config = of_kind("student_t");
  config.levels = {0.25, 0.5, 0.75};
  HeadConfig back;
  ASSERT_TRUE(apply_fields(back, to_json(config), "head"));
  EXPECT_EQ(back, config);
}

TEST(StepStatus, NamesDiffer) {
  EXPECT_STREQ(to_string(StepStatus::kOk), "ok");
  EXPECT_STREQ(to_string(StepStatus::kNotFinite), "not_finite");
  EXPECT_STREQ(to_string(StepStatus::kInfeasible), "infeasible");
  EXPECT_STREQ(to_string(StepStatus::kRejected), "rejected");
}

}  // namespace
}  // namespace kizzasi
