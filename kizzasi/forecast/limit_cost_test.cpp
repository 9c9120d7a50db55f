#include "kizzasi/forecast/limit_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "kizzasi/base/rng.h"
#include "kizzasi/forecast/learn.h"
#include "kizzasi/model/model_file.h"

namespace kizzasi {
namespace {

// Two noisy waves that stay within +-1 by themselves; the limits ask for less.
Series waves(std::size_t rows, double second = 1) {
  Series series;
  series.schema.channels = {
      {"x", "", Role::kTarget}, {"seen", "", Role::kObserved}, {"y", "", Role::kTarget}, {"hot", "", Role::kKnownFuture}};
  series.schema.step_ns = 1'000'000'000;
  Rng rng(7);
  for (std::size_t r = 0; r < rows; ++r) {
    const double t = 2 * 3.14159265358979 * static_cast<double>(r) / 24;
    series.values.push_back(std::sin(t) + 0.1 * rng.normal());
    series.values.push_back(rng.normal());
    series.values.push_back(5 + second * 10 * std::cos(t) + rng.normal());
    series.values.push_back(r % 24 < 12 ? 1 : 0);
  }
  return series;
}

const std::vector<ConstraintText> kLimits{{"cap", "x <= 0.8"},
                                          {"rate", "abs(rate(y)) <= 2"},
                                          {"both", "x + y / 10 <= 1.2"},
                                          {"hot", "hot > 0.5 -> y >= 0"},
                                          {"ends", "x > 0.7 -> eventually[0,4s] x < 0.7"}};

LearnOptions options_for(const std::string& penalty, const std::string& mode) {
  LearnOptions options;
  options.model.backbone.d_model = 8;
  options.model.backbone.n_layers = 1;
  options.model.backbone.d_state = 4;
  options.model.backbone.head_dim = 4;
  options.model.context = 24;
  options.model.recent = 4;
  options.model.d_decoder = 16;
  options.model.horizon = 6;
  options.model.channel_mode = mode;
  options.model.head.kind = "quantiles";
  options.model.head.levels = {0.1, 0.5, 0.9};
  options.training.steps = 60;
  options.training.batch = 16;
  options.training.validate_every = 10;
  options.training.checkpoint_every = 7;
  options.training.patience = 0;
  options.calibration_windows = 20;
  options.penalty.penalty = penalty;
  options.penalty.penalty_weight = 3;
  options.limits = kLimits;
  return options;
}

TEST(LimitCost, GradientsByNormalisedValuesEqualDifferences) {
  const std::vector<Series> series{waves(200)};
  const auto normalizer = Normalizer::fit(series[0], Scaling::kStandard);
  Rng rng(3);
  for (const std::string mode : {"mixed", "independent"}) {
    for (const std::string kind : {"hinge", "squared", "augmented"}) {
      const LearnOptions options = options_for(kind, mode);
      const SignalShape shape(options.model, channel_counts(series[0].schema));
      const auto made = LimitCost::make(options.penalty, kLimits, series, *normalizer, shape, {{0, 0, 140}});
      ASSERT_TRUE(made) << made.error().text();
      const LimitCost& cost = **made;
      std::vector<double> state = cost.start();
      for (double& number : state) number = rng.uniform(0.5, 2);
      double largest = 0;
      for (std::size_t turn = 0; turn < 20; ++turn) {
        const std::size_t outputs = shape.horizon * shape.targets;
        std::vector<double> values(outputs), gradient(outputs), unused(outputs), sums(cost.sums());
        for (double& value : values) value = 1.5 * rng.normal();
        const auto at = [&](std::span<double> slopes) {
          const PredictedWindow window{0, static_cast<std::uint32_t>(turn % shape.lanes), turn, values};
          return cost.cost(window, state, slopes, sums);
        };
        at(gradient);
        for (std::size_t i = 0; i < outputs; ++i) {
          const double kept = values[i], step = 1e-6;
          values[i] = kept + step;
          const double up = at(unused);
          values[i] = kept - step;
          const double down = at(unused);
          values[i] = kept;
          EXPECT_NEAR(gradient[i], (up - down) / (2 * step), 1e-6) << mode << " " << kind << " " << i;
          largest = std::max(largest, std::abs(gradient[i]));
        }
      }
      EXPECT_GT(largest, 0.1);
    }
  }
}

TEST(LimitCost, TrainingWithAPriceBreaksLess) {
  const std::vector<Series> series{waves(600)};
  ThreadPool pool(2);
  for (const std::string mode : {"mixed", "independent"}) {
    const auto learn_with = [&](const std::string& kind) {
      LearnOptions options = options_for(kind, mode);
      options.training.steps = 200;
      options.penalty.penalty_weight = kind == "augmented" ? 30 : 3;
      auto learned = learn(series, options, "", false, pool, SteadyClock(), {});
      EXPECT_TRUE(learned) << learned.error().text();
      EXPECT_EQ(learned->file.constraints, kLimits);
      return std::move(*learned);
    };
    const Learned free = learn_with("none");
    ASSERT_TRUE(free.breaches);
    EXPECT_GT(share(free.breaches->all()), 0.02) << mode;
    for (const std::string kind : {"hinge", "squared", "exact", "augmented"}) {
      const Learned paid = learn_with(kind);
      EXPECT_LT(mean_size(paid.breaches->all()), 0.6 * mean_size(free.breaches->all())) << mode << " " << kind;
    }
  }
}

TEST(LimitCost, MultipliersResumeToTheSameBitsWhateverTheThreads) {
  const std::vector<Series> series{waves(300)};
  const std::string file = (std::filesystem::temp_directory_path() / "kizzasi_limit_cost.checkpoint").string();
  for (const std::string kind : {"augmented", "lagrangian", "exact"}) {
    SCOPED_TRACE(kind);
    LearnOptions options = options_for(kind, "mixed");
    ThreadPool one(1), three(3);
    const auto whole = learn(series, options, "", false, one, SteadyClock(), {});
    ASSERT_TRUE(whole) << whole.error().text();
    const auto threads = learn(series, options, "", false, three, SteadyClock(), {});
    ASSERT_TRUE(threads);
    EXPECT_EQ(threads->file.weights, whole->file.weights);
    EXPECT_EQ(threads->outcome.history.dump(), whole->outcome.history.dump());
    // Stopped at step 23, between two moves of the multipliers, and resumed.
    LearnHooks stop;
    stop.watch = [](const TrainProgress& at) { return at.step < 23; };
    ASSERT_TRUE(learn(series, options, file, false, one, SteadyClock(), stop));
    const auto resumed = learn(series, options, file, true, three, SteadyClock(), {});
    ASSERT_TRUE(resumed) << resumed.error().text();
    EXPECT_EQ(resumed->outcome.history.dump(), whole->outcome.history.dump());
    EXPECT_EQ(resumed->outcome.start_validation, whole->outcome.start_validation);
    EXPECT_EQ(resumed->file.weights, whole->file.weights);
    // The multipliers moved, and the history says so.
    const Json& last = whole->outcome.history.items().back();
    const Json& first = whole->outcome.history.items().front();
    EXPECT_NE(last.find("limits")->dump(), first.find("limits")->dump());
    // Other limits are another run.
    options.limits.pop_back();
    EXPECT_FALSE(learn(series, options, file, true, one, SteadyClock(), {}));
  }
  std::filesystem::remove(file);
}

TEST(LimitCost, APenaltyNeedsSomethingToPrice) {
  const std::vector<Series> series{waves(300)};
  ThreadPool pool(1);
  for (const ConstraintText& text : {ConstraintText{"said", "x <= 0", "warn"}, ConstraintText{"given", "seen <= 0"}}) {
    LearnOptions options = options_for("hinge", "mixed");
    options.limits = {text};
    const auto refused = learn(series, options, "", false, pool, SteadyClock(), {});
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().text().find("no limit to pay for"), std::string::npos) << refused.error().text();
  }
}

}  // namespace
}  // namespace kizzasi
