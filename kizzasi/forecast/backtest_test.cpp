#include "kizzasi/forecast/backtest.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>

#include "kizzasi/base/rng.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/forecast/baselines.h"
#include "kizzasi/forecast/csv_columns_test.h"

namespace kizzasi {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

Series bundled(const char* file, const std::vector<std::string>& names, std::int64_t step_ns) {
  return csv_columns(std::string(KIZZASI_SOURCE_DIR "/data/bundle/") + file, names, step_ns);
}

data::Split split_of(std::size_t rows) { return {rows * 7 / 10, rows * 8 / 10, rows}; }

BacktestResult run(const Series& series, const std::vector<std::unique_ptr<Forecaster>>& forecasters, const BacktestOptions& options,
                   ThreadPool* pool = nullptr) {
  std::vector<Forecaster*> plain;
  for (const auto& each : forecasters) plain.push_back(each.get());
  auto result = backtest(series, plain, options, pool);
  EXPECT_TRUE(result) << result.error().text();
  for (const MethodResult& method : result->methods) EXPECT_EQ(method.problem, "") << method.name;
  return *result;
}

template <typename... Each>
std::vector<std::unique_ptr<Forecaster>> list(Each... each) {
  std::vector<std::unique_ptr<Forecaster>> all;
  (all.push_back(std::move(each)), ...);
  return all;
}

PointMetrics overall(const MethodResult& method) { return method.points_over(0, method.horizon); }

void expect_share(double ours, double theirs) { EXPECT_NEAR(ours, theirs, 6e-6 * std::abs(theirs)); }  // the table has six digits

TEST(Backtest, ReproducesTheMeasuredBaselinesOfRoadTraffic) {
  const Series series = bundled("road_traffic_hourly.csv", {"vehicles"}, 3'600'000'000'000);
  BacktestOptions options;
  options.split = split_of(series.rows());
  options.horizon = 24;
  options.stride = 12;
  options.season = 24;
  options.outside = bounds_check({0}, {kInfinite});
  RidgeOptions ridge;
  const auto result = run(series,
                          list(naive_forecaster(), seasonal_naive_forecaster(24), seasonal_naive_forecaster(168),
                               seasonal_mean_forecaster(24, 7), window_average_forecaster(24), ridge_forecaster(ridge)),
                          options);
  const double mae[] = {2037.97, 485.747, 212.183, 540.051, 1694.18, 236.961};
  const double rmse[] = {2530.34, 934.431, 418.584, 839.995, 1943.41, 387.722};
  const double mase[] = {3.44719, 0.82163, 0.358903, 0.913485, 2.86566, 0.400813};
  for (std::size_t m = 0; m < 6; ++m) {
    SCOPED_TRACE(result.methods[m].name);
    expect_share(overall(result.methods[m]).mae(), mae[m]);
    expect_share(overall(result.methods[m]).rmse(), rmse[m]);
    expect_share(result.methods[m].mase, mase[m]);
    EXPECT_EQ(result.methods[m].forecasts, 159u);
    EXPECT_TRUE(result.methods[m].calibrated);
    const QuantileMetrics quantiles = result.methods[m].quantiles_over(0, 24);
    EXPECT_EQ(quantiles.crossings(), 0u);
    EXPECT_LT(quantiles.crps(), overall(result.methods[m]).mae());
  }
}

TEST(Backtest, ReproducesTheMeasuredBaselinesOfThePlant) {
  const Series series = bundled("solar_plant_15min.csv", {"ac_power_w"}, 900'000'000'000);
  BacktestOptions options;
  options.split = split_of(series.rows());
  options.horizon = 96;
  options.stride = 8;
  options.season = 96;
  options.outside = bounds_check({-10}, {kInfinite});
  RidgeOptions ridge;
  ridge.lookback = 288;
  ridge.horizon = 96;
  const auto result = run(series, list(seasonal_naive_forecaster(96), seasonal_mean_forecaster(96, 7), ridge_forecaster(ridge)), options);
  const double mae[] = {442.644, 435.187, 515.992};
  const double mase[] = {1.0491, 1.03143, 1.22294};
  for (std::size_t m = 0; m < 3; ++m) {
    expect_share(overall(result.methods[m]).mae(), mae[m]);
    expect_share(result.methods[m].mase, mase[m]);
  }
  EXPECT_EQ(result.methods[1].outside, 0u);
  EXPECT_NEAR(static_cast<double>(result.methods[2].outside) / static_cast<double>(result.methods[2].values), 0.249041, 5e-6);
}

TEST(Backtest, ReproducesTheMeasuredBaselinesOfTheRobot) {
  std::vector<std::string> names;
  std::vector<std::pair<std::string, std::string>> rates;
  for (const char* kind : {"q", "dq"}) {
    for (int joint = 1; joint <= 7; ++joint) names.push_back(kind + std::to_string(joint));
  }
  Series series = bundled("robot_arm_200hz.csv", names, 5'000'000);
  for (std::size_t c = 7; c < 14; ++c) {
    series.schema.channels[c].role = Role::kObserved;
    rates.emplace_back(names[c - 7], names[c]);
  }
  BacktestOptions options;
  options.split = split_of(series.rows());
  options.split.validation_end += 1;  // the table counts from the last known row
  options.horizon = 50;
  RidgeOptions ridge;
  ridge.lookback = 20;
  ridge.horizon = 50;
  ridge.lambda = 0.001;
  ridge.channels = RidgeChannels::kJoint;
  ridge.inputs = names;
  const auto result = run(series, list(naive_forecaster(), constant_velocity_forecaster(rates), ridge_forecaster(ridge)), options);
  const double at_50[] = {0.211627, 0.114027, 0.00958198};
  for (std::size_t m = 0; m < 3; ++m) EXPECT_NEAR(result.methods[m].points_over(49, 50).rmse(), at_50[m], 2e-5 * at_50[m]);
  EXPECT_NEAR(result.methods[2].points_over(9, 10).rmse(), 0.000103842, 1e-6);  // the table trained with 40 windows more
}

// Truth = a level that no one can know + noise: rows 0.. are counted, so a forecaster can be told what it may see.
class Spy final : public Forecaster {
 public:
  std::string name() const override { return "spy"; }
  Result<void> fit(const Series& train) override {
    trained_rows = train.rows();
    return {};
  }
  Result<void> forecast(const Series& series, std::size_t origin, std::size_t horizon, ForecastBlock& out) const override {
    out.resize(horizon, 1, {});
    for (std::size_t r = 0; r < series.rows(); ++r) {
      const bool right = std::isnan(series.at(r, 0)) == (r >= origin) && std::isnan(series.at(r, 1)) == (r >= origin) &&
                         std::isnan(series.at(r, 2)) == (r >= origin + horizon);
      if (!right) return fail({Fault::kBroken, "row " + std::to_string(r) + " at origin " + std::to_string(origin), "spy", "", ""});
    }
    std::fill(out.points.begin(), out.points.end(), series.at(origin - 1, 0));
    return {};
  }
  std::size_t trained_rows = 0;
};

TEST(Backtest, ShowsNoForecasterWhatComesAfterTheOrigin) {
  Series series{"", {{{"y", "", Role::kTarget}, {"x", "", Role::kObserved}, {"plan", "", Role::kKnownFuture}}, 0, ""}, 0, {}};
  for (int i = 0; i < 3 * 211; ++i) series.values.push_back(i);
  Spy spy;
  Forecaster* forecasters[] = {&spy};
  ThreadPool pool(3);
  for (const std::size_t stride : {1u, 4u, 30u}) {
    BacktestOptions options;
    options.split = {120, 160, 205};  // the last rows belong to no part
    options.horizon = 7;
    options.stride = stride;
    const auto result = backtest(series, forecasters, options, &pool);
    ASSERT_TRUE(result);
    EXPECT_EQ(result->methods[0].problem, "");
    EXPECT_EQ(spy.trained_rows, 120u);
    EXPECT_EQ(result->first_origin, 160u);
    EXPECT_LE(result->last_origin + 7, 205u);
    EXPECT_GT(result->last_origin + 7 + stride, 205u);
  }
}

Series noise(std::size_t rows, std::uint64_t seed) {
  Series series{"", {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}}, 0, ""}, 0, {}};
  Rng rng(seed);
  for (std::size_t r = 0; r < rows; ++r) {
    series.values.push_back(5 + rng.normal());
    series.values.push_back(rng.below(20) == 0 ? kNan : std::exp(rng.normal()));
  }
  return series;
}

TEST(Backtest, SumsEqualADoubleLoop) {
  const Series series = noise(300, 1);
  BacktestOptions options;
  options.split = {150, 200, 300};
  options.horizon = 5;
  options.stride = 3;
  const auto result = run(series, list(naive_forecaster()), options);
  for (std::size_t target = 0; target < 2; ++target) {
    for (std::size_t step = 0; step < 5; ++step) {
      double sum = 0, terms = 0;
      for (std::size_t origin = 200; origin + 5 <= 300; origin += 3) {
        double last = kNan;
        for (std::size_t r = 0; r < origin; ++r) last = std::isnan(series.at(r, target)) ? last : series.at(r, target);
        const double error = std::abs(series.at(origin + step, target) - last);
        sum += std::isnan(error) ? 0 : error;
        terms += std::isnan(error) ? 0 : 1;
      }
      const PointMetrics& cell = result.methods[0].points[step * 2 + target];
      EXPECT_NEAR(cell.mae(), sum / terms, 1e-12);
      EXPECT_EQ(cell.pairs() + cell.missing(), result.methods[0].forecasts);
    }
  }
}

TEST(Backtest, BitsDoNotDependOnThreads) {
  const Series series = noise(400, 2);
  BacktestOptions options;
  options.split = {200, 300, 400};
  options.horizon = 6;
  options.season = 7;
  RidgeOptions ridge;
  ridge.lookback = 14;
  ridge.horizon = 6;
  ridge.channels = RidgeChannels::kPooled;
  const auto forecasters = [&] { return list(seasonal_naive_forecaster(7), ridge_forecaster(ridge), ets_forecaster("ANN", 1)); };
  const auto alone = run(series, forecasters(), options);
  for (const std::size_t threads : {2u, 5u}) {
    ThreadPool pool(threads);
    const auto shared = run(series, forecasters(), options, &pool);
    for (std::size_t m = 0; m < 3; ++m) {
      EXPECT_EQ(overall(shared.methods[m]).mae(), overall(alone.methods[m]).mae());
      EXPECT_EQ(shared.methods[m].quantiles_over(0, 6).crps(), alone.methods[m].quantiles_over(0, 6).crps());
      EXPECT_EQ(shared.methods[m].mase, alone.methods[m].mase);
    }
  }
}

// Errors of the calibration and of the test part are exchangeable here, so intervals cover what they claim, for every target.
TEST(Backtest, ConformalIntervalsCoverTheirShare) {
  const Series series = noise(6000, 3);
  BacktestOptions options;
  options.split = {1000, 2500, 6000};
  options.horizon = 2;
  options.most_calibration = 1500;
  const auto result = run(series, list(window_average_forecaster(50)), options);
  for (std::size_t target = 0; target < 2; ++target) {
    for (const IntervalMetrics& interval : result.methods[0].quantiles_of(target).intervals()) {
      EXPECT_NEAR(interval.coverage, interval.nominal, 0.03) << target;
    }
  }
}

// Ten calibration forecasts cannot tell a 0.5 % quantile: the worst error stands in, and that is counted.
TEST(Backtest, SaysWhereCalibrationIsTooShort) {
  const Series series = noise(400, 8);
  BacktestOptions options;
  options.split = {200, 210, 400};
  options.horizon = 1;
  options.levels = {0.005, 0.25, 0.5, 0.75, 0.995};
  const auto result = run(series, list(naive_forecaster()), options);
  EXPECT_EQ(result.methods[0].beyond_calibration, 4u);  // two levels of two targets
  EXPECT_EQ(result.methods[0].quantiles_over(0, 1).unusable(), 0u);
  EXPECT_GT(result.methods[0].quantiles_over(0, 1).crps(), 0);
}

TEST(Backtest, OneThatFailsDoesNotStopTheOthers) {
  const Series series = noise(100, 4);
  BacktestOptions options;
  options.split = {20, 60, 100};
  options.horizon = 4;
  options.keep = 3;
  RidgeOptions ridge;
  ridge.lookback = 500;
  ridge.horizon = 4;
  const auto forecasters = list(ridge_forecaster(ridge), naive_forecaster());
  Forecaster* plain[] = {forecasters[0].get(), forecasters[1].get()};
  const auto result = backtest(series, plain, options, nullptr);
  ASSERT_TRUE(result);
  EXPECT_EQ(
      result->methods[0].problem,
      "ridge NLinear 500, lambda 30: 20 training rows are fewer than one window (expected at least 504 rows). Shorten the look-back or "
      "the horizon.");
  EXPECT_EQ(result->methods[1].problem, "");
  ASSERT_EQ(result->methods[1].kept.size(), 3u);
  EXPECT_EQ(result->methods[1].kept.back().first, result->last_origin);
  options.horizon = 41;
  EXPECT_EQ(backtest(series, plain, options, nullptr).error().what, "40 test rows hold no horizon of 41");
}

TEST(Backtest, JoinedSeriesPoolTheirErrors) {
  BacktestOptions options;
  options.split = {100, 150, 200};
  options.horizon = 3;
  const auto first = run(noise(200, 5), list(naive_forecaster()), options), second = run(noise(200, 6), list(naive_forecaster()), options);
  const BacktestResult parts[] = {first, second};
  const auto both = join(parts);
  ASSERT_TRUE(both);
  const auto a = overall(first.methods[0]), b = overall(second.methods[0]), all = overall(both->methods[0]);
  EXPECT_EQ(all.pairs(), a.pairs() + b.pairs());
  EXPECT_NEAR(all.mae() * static_cast<double>(all.pairs()),
              a.mae() * static_cast<double>(a.pairs()) + b.mae() * static_cast<double>(b.pairs()), 1e-9);
  EXPECT_DOUBLE_EQ(both->methods[0].mase, (first.methods[0].mase + second.methods[0].mase) / 2);
}

}  // namespace
}  // namespace kizzasi
