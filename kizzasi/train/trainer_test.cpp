#include "kizzasi/train/trainer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

// A clock that tells one second more at each look.
class CountingClock final : public Clock {
 public:
  double seconds() const override { return static_cast<double>(looks_++); }

 private:
  mutable std::int64_t looks_ = 0;
};

// x follows a logistic map: next = 3.8 x (1 - x), which no line predicts; a second channel is its past value, so that two channels matter.
Series chaos(std::size_t rows) {
  Series series;
  series.schema.channels = {{"x", "", Role::kTarget}, {"old", "", Role::kObserved}};
  series.schema.step_ns = 1'000'000'000;
  double x = 0.31, old = 0.5;
  for (std::size_t r = 0; r < rows; ++r) {
    series.values.push_back(x);
    series.values.push_back(old);
    old = x;
    x = 3.8 * x * (1 - x);
  }
  return series;
}

ModelConfig small_model() {
  ModelConfig config;
  config.backbone.d_model = 8;
  config.backbone.n_layers = 1;
  config.backbone.d_state = 4;
  config.backbone.head_dim = 4;
  config.context = 8;
  config.recent = 2;
  config.d_decoder = 16;
  config.head.kind = "quantiles";
  config.head.levels = {0.1, 0.5, 0.9};
  return config;
}

// Everything that train() needs, kept together.
struct Bench {
  Series series;
  std::unique_ptr<SignalModel> model;
  std::unique_ptr<Dataset> data;
  TrainTask task;
  ShortcutFit shortcut;

  explicit Bench(Series given, ModelConfig config = small_model()) : series(std::move(given)) {
    const auto normalizer = Normalizer::fit(series, Scaling::kStandard);
    std::vector<std::size_t> order(series.channels());
    std::iota(order.begin(), order.end(), 0u);
    const ChannelCounts counts{1, series.channels() - 1, 0};
    task.weights = SignalModel::initial_weights(config, counts, Rng(3));
    const std::size_t rows = series.rows();
    task.train = {{0, 0, rows * 7 / 10}};
    task.validation = {{0, rows * 7 / 10, rows}};
    ThreadPool pool(1);
    const auto untrained = SignalModel::load(config, counts, task.weights);
    data = std::make_unique<Dataset>(*untrained, std::span(&series, 1), *normalizer, order);
    const auto fit = fit_shortcut(config, *data, task.train, task.validation, task.weights, pool);
    EXPECT_TRUE(fit);
    shortcut = *fit;
    model = std::make_unique<SignalModel>(*SignalModel::load(config, counts, task.weights));
    task.model = model.get();
    task.data = data.get();
  }
};

TrainConfig short_training(std::int64_t steps) {
  TrainConfig config;
  config.steps = steps;
  config.batch = 16;
  config.validate_every = 10;
  config.checkpoint_every = 7;
  config.patience = 0;
  config.seed = 5;
  return config;
}

std::string temporary(const char* name) { return (std::filesystem::temp_directory_path() / name).string(); }

TEST(Train, LearnsWhatNoLineCan) {
  Bench bench(chaos(600));
  ThreadPool pool(2);
  const auto outcome = train(bench.task, short_training(300), pool, CountingClock(), nullptr);
  ASSERT_TRUE(outcome) << outcome.error().text();
  EXPECT_LT(outcome->best_validation, 0.5 * outcome->start_validation);
}

TEST(Train, TheSameBitsForAnyNumberOfThreads) {
  std::vector<NamedTensors> results;
  for (const std::size_t threads : {1u, 2u, 3u}) {
    Bench bench(chaos(300));
    ThreadPool pool(threads);
    const auto outcome = train(bench.task, short_training(25), pool, CountingClock(), nullptr);
    ASSERT_TRUE(outcome) << outcome.error().text();
    results.push_back(outcome->weights);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// However often a training is broken off and resumed, its end is that of the uninterrupted one.
TEST(Train, ResumedEqualsUninterrupted) {
  for (const char* schedule : {"constant", "cosine", "plateau"}) {
    TrainConfig config = short_training(40);
    config.schedule.schedule = schedule;
    ThreadPool pool(2);
    Bench whole(chaos(300));
    const auto straight = train(whole.task, config, pool, CountingClock(), nullptr);
    ASSERT_TRUE(straight) << straight.error().text();

    Bench bench(chaos(300));
    bench.task.checkpoint = temporary("kizzasi_resume_test.safetensors");
    std::int64_t stop = 9;
    Result<TrainOutcome> outcome =
        train(bench.task, config, pool, CountingClock(), [&](const TrainProgress& at) { return at.step < stop; });
    ASSERT_TRUE(outcome) << outcome.error().text();
    EXPECT_EQ(outcome->end, TrainEnd::kStopped);
    bench.task.resume = true;
    while (outcome->end == TrainEnd::kStopped) {
      stop += 11;
      outcome = train(bench.task, config, pool, CountingClock(), [&](const TrainProgress& at) { return at.step < stop; });
      ASSERT_TRUE(outcome) << outcome.error().text();
    }
    EXPECT_EQ(outcome->steps, 40) << schedule;
    EXPECT_EQ(outcome->weights, straight->weights) << schedule;
    std::filesystem::remove(bench.task.checkpoint);
  }
}

TEST(Train, ABudgetStopsAndStepsRepeatIt) {
  ThreadPool pool(1);
  TrainConfig config = short_training(10'000);
  config.budget_s = 15;  // looks at the clock, one each step
  Bench bench(chaos(300));
  const auto stopped = train(bench.task, config, pool, CountingClock(), nullptr);
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->end, TrainEnd::kBudget);
  config.budget_s = 0;
  config.steps = stopped->steps;
  Bench again(chaos(300));
  const auto repeated = train(again.task, config, pool, CountingClock(), nullptr);
  ASSERT_TRUE(repeated);
  EXPECT_EQ(repeated->weights, stopped->weights);
}

TEST(Train, AnotherRunsCheckpointIsRefused) {
  ThreadPool pool(1);
  Bench bench(chaos(300));
  bench.task.checkpoint = temporary("kizzasi_other_run_test.safetensors");
  ASSERT_TRUE(train(bench.task, short_training(5), pool, CountingClock(), nullptr));
  bench.task.resume = true;
  bench.task.identity["data"] = "another";
  const auto refused = train(bench.task, short_training(5), pool, CountingClock(), nullptr);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("another run"), std::string::npos);
  std::filesystem::remove(bench.task.checkpoint);
}

TEST(Train, WhatIsNotFiniteStopsWithStepAndTensor) {
  ThreadPool pool(1);
  Bench bench(chaos(300));
  TrainConfig config = short_training(200);
  config.optimizer.learning_rate = 1000;
  config.clip = 0;
  const auto broken = train(bench.task, config, pool, CountingClock(), nullptr);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().where.find("training step"), std::string::npos) << broken.error().text();
  EXPECT_NE(broken.error().hint.find("--learning-rate"), std::string::npos);
}

// Noise has nothing to learn beyond its mean: whatever a few steps seem to gain on one validation part is not taken for knowledge.
TEST(Training, WhatIsNotMuchBetterThanTheShortcutIsNotKept) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Rng rng(seed);
    Series series;
    series.schema.channels = {{"x", "", Role::kTarget}};
    for (int r = 0; r < 2000; ++r) series.values.push_back(rng.normal());
    const Bench bench(std::move(series));
    ThreadPool pool(1);
    TrainConfig config = short_training(60);
    config.validate_every = 5;
    config.patience = 0;
    const auto outcome = train(bench.task, config, pool, CountingClock(), nullptr);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->best_step, 0);
    EXPECT_EQ(outcome->best_validation, outcome->start_validation);
    for (const auto& [name, tensor] : bench.task.weights) EXPECT_EQ(outcome->weights.at(name).values, tensor.values) << name;
    config.least_gain = 0;
    EXPECT_GE(train(bench.task, config, pool, CountingClock(), nullptr)->best_step, 0);
  }
}

// On a linear autoregression the closed form finds its coefficients; with noise it comes near them.
TEST(Shortcut, FindsTheLineThatMadeTheData) {
  Rng rng(8);
  Series series;
  series.schema.channels = {{"x", "", Role::kTarget}};
  double x = 0, old = 0;
  for (int r = 0; r < 20'000; ++r) {
    const double next = 0.6 * x + 0.3 * old + 0.1 * rng.normal();
    old = x;
    x = next;
    series.values.push_back(x);
  }
  const Bench bench(std::move(series));
  const Tensor& weights = bench.task.weights.at("shortcut.recent.weight");
  EXPECT_NEAR(weights.values[0], 0.6, 0.02);
  EXPECT_NEAR(weights.values[1], 0.3, 0.02);
  EXPECT_NEAR(bench.task.weights.at("shortcut.bias").values[0], 0, 0.02);
}

// Mean squared error of the first step ahead over the validation part, by the short-cut alone.
double first_step_error(const Bench& bench) {
  const std::vector<Origin> origins = bench.data->origins(bench.task.validation[0]);
  const std::vector<RowRange> ranges(origins.size(), bench.task.validation[0]);
  const std::array<std::size_t, 1> here{0};
  SignalBatch batch;
  Answers answers;
  bench.data->fill(origins, here, ranges, batch, answers);
  const std::size_t horizon = bench.data->shape().horizon;
  std::vector<float> location(origins.size() * horizon), scale(horizon);
  bench.model->locate(batch, location, scale);
  double sum = 0;
  for (std::size_t i = 0; i < location.size(); i += horizon) sum += std::pow(static_cast<double>(location[i] - answers.values[i]), 2);
  return sum / static_cast<double>(origins.size());
}

// A smooth signal: the next value is nearly certain and wants hardly any penalty, the far ones are not and want a large one. Learned
// together, the next one must not suffer.
TEST(Shortcut, NearStepsDoNotPayForFarOnes) {
  int apart = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    Rng rng(seed);
    Series series;
    series.schema.channels = {{"x", "", Role::kTarget}};
    double x = 0, speed = 0;
    for (int r = 0; r < 340; ++r) {
      speed = 0.95 * speed + 0.05 * rng.normal();
      x = 0.99 * x + speed;
      series.values.push_back(x + 1e-6 * rng.normal());
    }
    ModelConfig config = small_model();
    config.recent = config.context = 60;
    config.horizon = 1;
    const double alone = first_step_error(Bench(series, config));
    config.horizon = 30;
    const Bench together(series, config);
    EXPECT_LT(first_step_error(together), 6 * alone) << seed;  // 6: a longer horizon leaves fewer windows to learn from
    apart += together.shortcut.least_lambda < together.shortcut.most_lambda ? 1 : 0;
  }
  EXPECT_GE(apart, 2);
}

// Two kinds of stretches: a swing of 100 that repeats itself but for a small surprise, and noise. In window units the short-cut serves the
// noise; in seasonal units the surprise counts as much, so it is forecast better there than before.
TEST(Shortcut, SeasonalUnitsServeWhatRepeatsItself) {
  Series series;
  series.schema.channels = {{"x", "", Role::kTarget}};
  Rng rng(12);
  double drift = 0, walk = 0;
  for (int r = 0; r < 1200; ++r) {
    const bool regular = r / 150 % 2 == 0;
    drift = 0.8 * drift + 0.5 * rng.normal();
    walk = 0.5 * walk + 30 * rng.normal();
    series.values.push_back(regular ? 50 * std::sin(r * 2 * 3.14159265358979 / 12) + drift : walk);
  }
  ModelConfig config;
  config.parts = "shortcut";
  config.context = 48;
  config.recent = 24;
  config.season = 12;
  config.seasons = 1;
  config.horizon = 3;
  config.windowed = true;
  config.window_norm = "mean_std";
  config.head.kind = "point";
  const auto normalizer = Normalizer::fit(series, Scaling::kStandard);
  const std::vector<std::size_t> order{0};
  ThreadPool pool(1);
  std::vector<double> errors;
  for (const LossUnit unit : {LossUnit::kWindow, LossUnit::kSeasonal}) {
    NamedTensors weights = SignalModel::initial_weights(config, {1, 0, 0}, Rng(3));
    const auto untrained = SignalModel::load(config, {1, 0, 0}, weights);
    ASSERT_TRUE(untrained) << untrained.error().text();
    const Dataset data(*untrained, std::span(&series, 1), *normalizer, order, unit);
    const std::vector<RowRange> train{{0, 0, 900}}, validation{{0, 900, 1200}};
    ASSERT_TRUE(fit_shortcut(config, data, train, validation, weights, pool));
    const auto model = SignalModel::load(config, {1, 0, 0}, weights);
    // Of both the error in the regular stretch of the validation part, in physical units.
    std::vector<Origin> origins;
    for (std::size_t row = 950; row < 1040; ++row) origins.push_back({0, 0, row});
    const std::vector<RowRange> ranges(origins.size(), {0, 0, 1200});
    SignalBatch batch;
    Answers answers;
    data.fill(origins, std::array<std::size_t, 1>{0}, ranges, batch, answers);
    std::vector<float> location(answers.values.size()), scale(3);
    model->locate(batch, location, scale);
    double sum = 0;
    for (std::size_t i = 0; i < location.size(); ++i) {
      sum += std::abs(static_cast<double>(location[i] - answers.values[i])) * static_cast<double>(answers.spread[i / 3]);
    }
    errors.push_back(sum);
  }
  EXPECT_LT(errors[1], 0.9 * errors[0]);
}

}  // namespace
}  // namespace kizzasi
