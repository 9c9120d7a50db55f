#include "kizzasi/forecast/baselines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>

#include "kizzasi/base/rng.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/forecast/backtest.h"
#include "kizzasi/forecast/csv_columns_test.h"
#include "kizzasi/signal/normalizer.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Two channels with a season of 12 and some noise.
Series seasonal(std::size_t rows, double factor, double shift, double missing) {
  Series series{"", {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}}, 0, ""}, 0, {}};
  Rng rng(7), gaps(8);
  for (std::size_t r = 0; r < rows; ++r) {
    const double phase = 2 * std::numbers::pi * static_cast<double>(r % 12) / 12;
    for (const double size : {1.0, 5.0}) {
      const double value = 20 + size * std::sin(phase) + 0.3 * rng.normal();
      series.values.push_back(gaps.uniform() < missing ? kNan : factor * value + shift);
    }
  }
  return series;
}

std::vector<std::unique_ptr<Forecaster>> every_baseline() {
  RidgeOptions ridge;
  ridge.lookback = 24;
  ridge.horizon = 9;
  auto all = standard_baselines({12}, ridge);
  ridge.channels = RidgeChannels::kPooled;
  ridge.intercept = false;
  all.push_back(ridge_forecaster(ridge));
  ridge.channels = RidgeChannels::kJoint;
  all.push_back(ridge_forecaster(ridge));
  all.push_back(theta_forecaster(ThetaKind::kDynamicOptimised, 12));
  return all;
}

ForecastBlock forecast_of(Forecaster& forecaster, const Series& series, std::size_t train, std::size_t origin) {
  ForecastBlock block;
  const auto fitted = forecaster.fit(series.slice(0, train));
  EXPECT_TRUE(fitted) << forecaster.name() << ": " << fitted.error().text();
  const auto done = forecaster.forecast(series, origin, 9, block);
  EXPECT_TRUE(done) << forecaster.name() << ": " << done.error().text();
  return block;
}

// A change of unit changes the forecast by the very same change: fitting included.
TEST(Baselines, AreBlindToUnits) {
  for (const auto& forecaster : every_baseline()) {
    const ForecastBlock plain = forecast_of(*forecaster, seasonal(400, 1, 0, 0), 300, 350);
    const ForecastBlock scaled = forecast_of(*forecaster, seasonal(400, 1000, 0, 0), 300, 350);
    for (std::size_t i = 0; i < plain.points.size(); ++i) {
      EXPECT_NEAR(scaled.points[i], 1000 * plain.points[i], 2e-3 * std::abs(1000 * plain.points[i])) << forecaster->name();
    }
  }
}

TEST(Baselines, AnswerEveryStepAcrossGaps) {
  for (const auto& forecaster : every_baseline()) {
    if (forecaster->name().starts_with("ridge")) continue;  // their training wants whole windows: below
    const ForecastBlock block = forecast_of(*forecaster, seasonal(400, 1, 0, 0.2), 300, 350);
    ASSERT_EQ(block.points.size(), 18u);
    for (const double value : block.points) EXPECT_NEAR(value, 20, 9) << forecaster->name();
  }
}

TEST(RidgeForecaster, LeavesOutWindowsWithGaps) {
  RidgeOptions options;
  options.lookback = 13;
  options.horizon = 9;
  options.lambda = 1e-6;
  Series series{"", {{{"a", "", Role::kTarget}}, 0, ""}, 0, {}};
  for (int r = 0; r < 400; ++r) series.values.push_back(std::sin(2 * std::numbers::pi * r / 12) + 0.001 * std::cos(r * 1.7));
  series.values[100] = 1e3;
  series.values[101] = kNan;  // what lies around it must not teach anything: the spike is in no whole window...
  for (int r = 70; r < 100; r += 10) series.values[static_cast<std::size_t>(r)] = kNan;
  for (int r = 110; r < 140; r += 10) series.values[static_cast<std::size_t>(r)] = kNan;
  for (const RidgeChannels channels : {RidgeChannels::kEach, RidgeChannels::kPooled, RidgeChannels::kJoint}) {
    options.channels = channels;
    const auto forecaster = ridge_forecaster(options);
    const ForecastBlock block = forecast_of(*forecaster, series, 300, 350);
    for (std::size_t h = 0; h < 9; ++h) EXPECT_NEAR(block.point(h, 0), series.at(350 + h, 0), 0.01) << forecaster->name();
  }
  options.lookback = 500;
  EXPECT_FALSE(ridge_forecaster(options)->fit(series));
  Series holes = series;
  for (std::size_t r = 0; r < holes.rows(); r += 10) holes.values[r] = kNan;
  options.lookback = 13;
  EXPECT_EQ(ridge_forecaster(options)->fit(holes).error().what, "no training window is free of missing values");
}

TEST(RidgeForecaster, NamesWhatItCannotRead) {
  RidgeOptions options;
  options.channels = RidgeChannels::kJoint;
  options.inputs = {"a", "c"};
  EXPECT_EQ(ridge_forecaster(options)->fit(seasonal(400, 1, 0, 0)).error().what, "there is no channel 'c'");
}

TEST(EtsForecaster, AConstantChannelStaysWhereItIs) {
  Series series = seasonal(300, 1, 0, 0);
  for (std::size_t r = 0; r < series.rows(); ++r) series.row(r)[0] = 4;
  const ForecastBlock block = forecast_of(*ets_forecaster("auto", 12), series, 200, 250);
  for (std::size_t h = 0; h < 9; ++h) EXPECT_EQ(block.point(h, 0), 4);
}

TEST(ConstantVelocity, MovesByTheRate) {
  Series series{"", {{{"q", "rad", Role::kTarget}, {"dq", "rad/s", Role::kObserved}}, 5'000'000, ""}, 0, {1, 2, 1.5, 4}};
  ForecastBlock block;
  ASSERT_TRUE(constant_velocity_forecaster({{"q", "dq"}})->forecast(series, 2, 3, block));
  EXPECT_DOUBLE_EQ(block.point(2, 0), 1.5 + 4 * 0.015);
  EXPECT_FALSE(constant_velocity_forecaster({{"q", "speed"}})->forecast(series, 2, 3, block));
  EXPECT_FALSE(constant_velocity_forecaster({})->forecast(series, 2, 3, block));
}

TEST(ConstantVelocity, KeepsTheRatesThemselves) {
  const Series series{"", {{{"q", "rad", Role::kTarget}, {"dq", "rad/s", Role::kTarget}}, 5'000'000, ""}, 0, {1, 2, 1.5, 4}};
  ForecastBlock block;
  ASSERT_TRUE(constant_velocity_forecaster({{"q", "dq"}})->forecast(series, 2, 3, block));
  EXPECT_DOUBLE_EQ(block.point(2, 0), 1.5 + 4 * 0.015);
  EXPECT_EQ(block.point(2, 1), 4);
}

// Hourly transformer data, standard split, every test window, z-scored: needs the folder that KIZZASI_FIELD names.
TEST(RidgeForecaster, ReproducesTheMeasuredTableOfTransformers) {
  const char* field = std::getenv("KIZZASI_FIELD");
  if (field == nullptr) GTEST_SKIP() << "KIZZASI_FIELD names no folder";
  Series series =
      csv_columns(std::string(field) + "/ett/ETTh1.csv", {"HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"}, 3'600'000'000'000);
  const Normalizer scaling = *Normalizer::fit(series.slice(0, 8640), Scaling::kStandard);
  ThreadPool pool(0);
  const std::pair<std::size_t, double> table[] = {{96, 0.370}, {192, 0.403}, {336, 0.426}, {720, 0.422}};
  for (const auto& [horizon, expected] : table) {
    BacktestOptions options;
    options.split = {8640, 8640, 14400};  // 12 months train; the 4 after them are not needed here
    options.split.validation_end = 11520;
    options.horizon = horizon;
    options.most_calibration = 1;
    RidgeOptions ridge;
    ridge.horizon = horizon;
    ridge.lambda = 1000;
    ridge.intercept = false;
    ridge.channels = RidgeChannels::kPooled;
    const auto forecaster = ridge_forecaster(ridge);
    Forecaster* forecasters[] = {forecaster.get()};
    const auto result = backtest(series, forecasters, options, &pool);
    ASSERT_TRUE(result);
    ASSERT_EQ(result->methods[0].problem, "");
    double mse = 0;
    for (std::size_t c = 0; c < 7; ++c) mse += result->methods[0].points_of(c).mse() / (scaling.scale(c) * scaling.scale(c)) / 7;
    EXPECT_NEAR(mse, expected, 0.0005) << horizon;
  }
}

}  // namespace
}  // namespace kizzasi
