#include "kizzasi/train/schedule.h"

#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/train/golden_test.h"

namespace kizzasi {
namespace {

constexpr double kRate = 0.1;
constexpr std::int64_t kSteps = 40;

ScheduleConfig named(const std::string& name, std::int64_t warmup = 0) {
  ScheduleConfig config;
  config.schedule = name;
  config.warmup_steps = warmup;
  return config;
}

// The runs of the reference file.
std::map<std::string, ScheduleConfig> published_runs() {
  std::map<std::string, ScheduleConfig> runs;
  runs["cosine_warmup"] = named("cosine", 5);
  runs["linear_warmup"] = named("linear", 5);
  runs["constant_warmup"] = named("constant", 5);
  runs["inverse_sqrt"] = named("inverse_sqrt", 5);
  runs["cosine_hard_restarts"] = named("hard_restarts", 5);
  runs["cosine_hard_restarts"].cycles = 3;
  runs["one_cycle_cos"] = named("one_cycle");
  runs["one_cycle_linear_three_phase"] = named("one_cycle");
  runs["one_cycle_linear_three_phase"].one_cycle_linear = true;
  runs["one_cycle_linear_three_phase"].three_phase = true;
  runs["exponential"] = named("exponential");
  runs["exponential"].decay_factor = 0.93;
  runs["step"] = named("step");
  runs["step"].period_steps = 7;
  runs["step"].decay_factor = 0.5;
  runs["multistep"] = named("multistep");
  runs["multistep"].milestones = {3, 8, 20};
  runs["multistep"].decay_factor = 0.3;
  runs["cosine"] = named("cosine");
  runs["cosine"].min_learning_rate = 0.001;
  runs["cosine_past_end"] = runs["cosine"];
  runs["cosine_past_end"].period_steps = 20;
  runs["warm_restarts"] = named("warm_restarts");
  runs["warm_restarts"].period_steps = 6;
  runs["warm_restarts"].period_growth = 2;
  runs["warm_restarts"].min_learning_rate = 0.002;
  runs["polynomial"] = named("polynomial");
  runs["polynomial"].polynomial_power = 2;
  runs["linear"] = named("constant", 9);
  runs["linear"].warmup_start = 0.2;
  runs["cyclic_triangular2"] = named("cyclic");
  runs["cyclic_triangular2"].period_steps = 5;
  runs["cyclic_triangular2"].min_learning_rate = 0.01;
  runs["plateau"] = named("plateau");
  runs["plateau"].decay_factor = 0.5;
  runs["plateau"].plateau_patience = 3;
  runs["plateau"].plateau_threshold = 0.01;
  runs["plateau"].plateau_cooldown = 2;
  runs["plateau"].min_learning_rate = 0.001;
  runs["plateau_abs_max"] = named("plateau");
  runs["plateau_abs_max"].decay_factor = 0.3;
  runs["plateau_abs_max"].plateau_patience = 2;
  runs["plateau_abs_max"].plateau_threshold = 0.05;
  runs["plateau_abs_max"].plateau_absolute = true;
  runs["plateau_abs_max"].plateau_rising = true;
  return runs;
}

TEST(Schedule, FollowsThePublishedRuns) {
  const Golden golden("schedules");
  const auto& metric = golden.values("metric");
  for (const auto& [run, config] : published_runs()) {
    auto schedule = Schedule::of(config, kRate, kSteps);
    ASSERT_TRUE(schedule) << schedule.error().text();
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      ASSERT_NEAR(schedule->rate(step), golden.values(run)[at], 1e-14) << run << " step " << step;
      const auto momentum = schedule->momentum(step);
      ASSERT_EQ(momentum.has_value(), golden.has(run + ".momentum"));
      if (momentum) {
        ASSERT_NEAR(*momentum, golden.values(run + ".momentum")[at], 1e-14) << run << " step " << step;
      }
      schedule->observe(metric[at]);
    }
  }
}

TEST(Schedule, StaysBetweenItsLowestAndHighestRateAlsoPastTheEnd) {
  for (auto [run, config] : published_runs()) {
    config.min_learning_rate = 0.01;
    config.warmup_start = 0.2;
    for (const std::int64_t total : {1, 2, 3, 40}) {
      const auto schedule = *Schedule::of(config, kRate, total);
      for (std::int64_t step = 0; step < 3 * total + 10; ++step) {
        const double rate = schedule.rate(step), low = config.kind() == ScheduleKind::kOneCycle ? 0 : 0.01;
        ASSERT_TRUE(rate >= low && rate <= kRate * (1 + 1e-12)) << run << " " << total << " " << step << ": " << rate;
      }
    }
  }
}

TEST(Schedule, ARestoredPlateauGoesOnAsTheOther) {
  const Golden golden("schedules");
  const auto& metric = golden.values("metric");
  const ScheduleConfig config = published_runs()["plateau"];
  auto whole = *Schedule::of(config, kRate, kSteps), part = whole;
  for (std::size_t step = 0; step < metric.size(); ++step) {
    if (step == 21) part.restore(whole.watch());
    if (step >= 21) {
      EXPECT_EQ(part.rate(0), whole.rate(0));
      part.observe(metric[step]);
    }
    whole.observe(metric[step]);
  }
  EXPECT_EQ(part.watch(), whole.watch());
}

TEST(Schedule, NanIsNoImprovement) {
  ScheduleConfig config = named("plateau");
  config.plateau_patience = 1;
  auto schedule = *Schedule::of(config, kRate, kSteps);
  for (int i = 0; i < 2; ++i) schedule.observe(std::numeric_limits<double>::quiet_NaN());
  EXPECT_LT(schedule.rate(0), kRate);
}

TEST(ScheduleConfig, RefusesWhatMakesNoSense) {
  EXPECT_FALSE(Schedule::of(named("cosinus"), kRate, kSteps));
  EXPECT_FALSE(Schedule::of(named("cosine"), kRate, 0));
  ScheduleConfig config = named("multistep");
  config.milestones = {8, 3};
  EXPECT_FALSE(Schedule::of(config, kRate, kSteps));
}

}  // namespace
}  // namespace kizzasi
