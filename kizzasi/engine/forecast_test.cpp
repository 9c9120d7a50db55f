#include "kizzasi/engine/forecast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

TEST(Forecast, LeavesNoTrace) {
  for (std::uint64_t seed = 0; seed < cases(40); ++seed) {
    Rng rng(seed);
    const ModelFile model = random_model(rng);
    SCOPED_TRACE(text_of(model));
    const Series series = random_series(model, 22, 0.05, rng);
    const auto predictor = predictor_of(model);
    Session quiet = Session::prepare(predictor), asked = Session::prepare(predictor);
    Forecast f;
    ForecastRequest request;
    request.observed_plan = ObservedPlan::kHold;
    request.samples = predictor->has_spread() ? 2 : 0;
    for (std::size_t r = 0; r < series.rows(); ++r) {
      request.horizon = 1 + rng.below(9);
      const auto expected = bits(quiet.step(series.frame(r)).value);
      EXPECT_EQ(bits(asked.step(series.frame(r)).value), expected);
      if (r % 7 != 0) continue;
      const auto before = asked.snapshot();
      ASSERT_TRUE(asked.forecast(request, f));
      ASSERT_EQ(asked.snapshot(), before);
    }
  }
}

TEST(Forecast, TheFirstStepIsTheStreamsPrediction) {
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    Rng rng(seed + 1000);
    const ModelFile model = random_model(rng);
    SCOPED_TRACE(text_of(model));
    const Series series = random_series(model, 25, 0.02, rng);
    Session s = Session::prepare(predictor_of(model));
    ForecastRequest request;
    Forecast f;
    for (std::size_t r = 0; r < series.rows(); ++r) {
      const Prediction& p = s.step(series.frame(r));
      ASSERT_TRUE(s.forecast(request, f));
      EXPECT_EQ(bits(f.block.points), bits(p.value));
      EXPECT_EQ(bits(f.block.quantiles), bits(p.quantiles));
      EXPECT_EQ(f.time_ns[0], p.time_ns);
    }
  }
}

// Rolling is what a user would do by hand: feed the points of one block as frames of a fork, and ask again.
TEST(Forecast, LongerThanABlockIsFeedingThePointsByHand) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    Rng rng(seed + 2000);
    const ModelFile model = random_model(rng);
    SCOPED_TRACE(text_of(model));
    const Series series = random_series(model, 30, 0, rng);
    const auto predictor = predictor_of(model);
    Session s = Session::prepare(predictor);
    s.prefill(series, 0, series.rows());
    const std::size_t block = predictor->horizon(), horizon = block * 2 + 1, observed = predictor->counts().observed,
                      known = predictor->counts().known;
    ForecastRequest request;
    request.horizon = horizon;
    request.observed_plan = ObservedPlan::kGiven;
    for (std::size_t i = 0; i < horizon * observed; ++i) request.observed.push_back(100 * rng.normal());
    for (std::size_t i = 0; i < horizon * known; ++i) request.known.push_back(100 * rng.normal());
    Forecast rolled;
    ASSERT_TRUE(s.forecast(request, rolled));

    std::vector<double> by_hand;
    for (std::size_t first = 0; first < horizon; first += block) {
      ForecastRequest part;
      part.horizon = std::min(block, horizon - first);
      part.known.assign(request.known.begin() + static_cast<std::ptrdiff_t>(first * known), request.known.end());
      Forecast f;
      ASSERT_TRUE(s.forecast(part, f));
      by_hand.insert(by_hand.end(), f.block.points.begin(), f.block.points.end());
      for (std::size_t h = 0; h < part.horizon; ++h) {
        std::vector<double> frame(predictor->channels());
        const auto order = predictor->order();
        for (std::size_t i = 0; i < order.size(); ++i) {
          const std::size_t step = first + h, t = predictor->targets();
          frame[order[i]] = i < t              ? f.block.point(h, i)
                            : i < t + observed ? request.observed[step * observed + i - t]
                                               : request.known[step * known + i - t - observed];
        }
        s.step({f.time_ns[h], frame});
      }
    }
    // A forecast that runs away beyond a million scales goes on from its own values; as frames those would be no measurements.
    if (s.report().restarts == 0 && s.report().unusable_values == 0) {
      EXPECT_EQ(bits(rolled.block.points), bits(by_hand));
      ++compared;
    }
  }
  EXPECT_GT(compared, cases(60) * 9 / 10);
}

// One channel, one step a block, x' = 0.5 x + noise: an autoregression whose forecast distribution is known in closed form.
ModelFile autoregression() {
  ModelFile m;
  m.config.parts = "shortcut";
  m.config.recent = 1;
  m.config.head.kind = "gaussian";
  m.schema = {{{"x", "", Role::kTarget}}, 1'000'000'000, ""};
  m.normalizer = Normalizer({0}, {1});
  still(m);
  m.weights.at("shortcut.recent.weight").values[0] = 0.5f;
  return m;
}

TEST(Forecast, PathsOfAnAutoregressionHaveItsVariance) {
  Session s = Session::prepare(predictor_of(autoregression()));
  s.step({0, std::vector<double>{8}});
  ForecastRequest request;
  request.horizon = 6;
  request.samples = 4000;
  request.levels = {0.025, 0.5, 0.975};
  Forecast f;
  ASSERT_TRUE(s.forecast(request, f));
  const double sigma = std::log(2.0) + 1e-4;
  double variance = 0;
  for (std::size_t h = 0; h < 6; ++h) {
    variance = 0.25 * variance + sigma * sigma;
    const double mean = 8 * std::pow(0.5, static_cast<double>(h + 1));
    double sum = 0, square = 0;
    for (std::size_t i = 0; i < request.samples; ++i) {
      sum += f.samples[i * 6 + h];
      square += f.samples[i * 6 + h] * f.samples[i * 6 + h];
    }
    sum /= 4000;
    EXPECT_NEAR(f.block.point(h, 0), mean, 1e-6);
    EXPECT_NEAR(sum, mean, 4 * std::sqrt(variance / 4000));
    EXPECT_NEAR(square / 4000 - sum * sum, variance, 4 * variance * std::sqrt(2.0 / 4000));
    // The standard error of the 2.5 % point of n normal values is 2.67 sigma / sqrt(n).
    EXPECT_NEAR(f.block.quantile(2, h, 0), mean + 1.96 * std::sqrt(variance), 4 * 2.67 * std::sqrt(variance / 4000));
    EXPECT_NEAR(f.block.quantile(0, h, 0), mean - 1.96 * std::sqrt(variance), 4 * 2.67 * std::sqrt(variance / 4000));
  }
}

TEST(Forecast, SamplesRepeatBySeedAndSpreadByTemperature) {
  Session s = Session::prepare(predictor_of(autoregression()));
  s.step({0, std::vector<double>{8}});
  ForecastRequest request;
  request.horizon = 4;
  request.samples = 50;
  Forecast a, b;
  ASSERT_TRUE(s.forecast(request, a));
  ASSERT_TRUE(s.forecast(request, b));
  EXPECT_EQ(a.samples, b.samples);
  request.seed = 2;
  ASSERT_TRUE(s.forecast(request, b));
  EXPECT_NE(a.samples, b.samples);
  EXPECT_EQ(a.block.points, b.block.points);
  request.temperature = 0;
  ASSERT_TRUE(s.forecast(request, b));
  for (std::size_t i = 0; i < 50; ++i) {
    for (std::size_t h = 0; h < 4; ++h) EXPECT_EQ(b.samples[i * 4 + h], b.block.point(h, 0));
  }
  // A path is the same whatever the number of paths.
  request.seed = 1;
  request.temperature = 1;
  request.samples = 3;
  ASSERT_TRUE(s.forecast(request, b));
  EXPECT_TRUE(std::equal(b.samples.begin(), b.samples.end(), a.samples.begin()));
}

// Within a block, steps of a path correlate as the copula says and keep their marginals.
TEST(Forecast, PathsWithinABlockAreTied) {
  ModelFile m = autoregression();
  m.config.horizon = 3;
  still(m);
  Session s = Session::prepare(predictor_of(m));
  s.step({0, std::vector<double>{8}});
  ForecastRequest request;
  request.horizon = 3;
  request.samples = 6000;
  request.path_correlation = 0.8;
  Forecast f;
  ASSERT_TRUE(s.forecast(request, f));
  const double sigma = std::log(2.0) + 1e-4;
  const auto moment = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < 6000; ++i) sum += f.samples[i * 3 + a] * f.samples[i * 3 + b];
    return sum / 6000 / (sigma * sigma);
  };
  EXPECT_NEAR(moment(0, 0), 1, 0.08);
  EXPECT_NEAR(moment(2, 2), 1, 0.08);
  EXPECT_NEAR(moment(0, 1), 0.8, 0.08);
  EXPECT_NEAR(moment(0, 2), 0.64, 0.08);
}

TEST(Forecast, SaysWhatItNeeds) {
  Rng rng(3);
  ModelFile m = autoregression();
  m.schema.channels.push_back({"wind", "", Role::kObserved});
  m.normalizer = Normalizer({0, 0}, {1, 1});
  m.weights = SignalModel::initial_weights(m.config, channel_counts(m.schema), Rng(1));
  Session s = Session::prepare(predictor_of(m));
  ForecastRequest request;
  Forecast f;
  const auto message = [&] {
    const auto done = s.forecast(request, f);
    return done ? std::string("done") : done.error().text();
  };
  EXPECT_NE(message().find("no frame was taken yet"), std::string::npos);
  s.step({0, std::vector<double>{1, 2}});
  EXPECT_EQ(message(), "done");
  request.horizon = 2;
  EXPECT_NE(message().find("the model needs wind, which it does not predict"), std::string::npos) << message();
  request.observed_plan = ObservedPlan::kHold;
  EXPECT_EQ(message(), "done");
  request.observed_plan = ObservedPlan::kGiven;
  EXPECT_NE(message().find("2 steps of 1 channels"), std::string::npos) << message();
  request.observed = {1, 2};
  EXPECT_EQ(message(), "done");
  request.known = {1};
  EXPECT_NE(message(), "done");
  request.known = {};
  request.horizon = 0;
  EXPECT_NE(message(), "done");
  request.horizon = std::size_t{1} << 60;
  EXPECT_NE(message(), "done");
  request.horizon = 2;
  request.samples = std::size_t{1} << 60;
  EXPECT_NE(message(), "done");
  request.samples = 0;
  request.levels = {0.9, 0.1};
  EXPECT_NE(message(), "done");
  request.levels = {};
  request.temperature = -1;
  EXPECT_NE(message(), "done");
}

TEST(Forecast, APointModelWithoutCalibrationClaimsNoIntervals) {
  ModelFile m = autoregression();
  m.config.head.kind = "point";
  m.weights = SignalModel::initial_weights(m.config, channel_counts(m.schema), Rng(1));
  Session s = Session::prepare(predictor_of(m));
  s.step({0, std::vector<double>{1}});
  ForecastRequest request;
  request.horizon = 3;
  Forecast f;
  ASSERT_TRUE(s.forecast(request, f));
  EXPECT_TRUE(f.block.levels.empty());
  request.levels = {0.5};
  EXPECT_FALSE(s.forecast(request, f));
}

}  // namespace
}  // namespace kizzasi
