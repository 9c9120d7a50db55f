#include "kizzasi/forecast/model_forecaster.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

ModelFile small_model() {
  ModelFile m;
  m.config.backbone.d_model = 16;
  m.config.backbone.head_dim = 4;
  m.config.backbone.n_layers = 1;
  m.config.context = 12;
  m.config.recent = 6;
  m.config.horizon = 4;
  m.schema = {{{"flow", "", Role::kTarget}, {"hour", "", Role::kKnownFuture}, {"valve", "", Role::kObserved}}, 1'000'000'000, ""};
  m.normalizer = Normalizer({1, 2, 3}, {2, 1, 1});
  m.weights = SignalModel::initial_weights(m.config, channel_counts(m.schema), Rng(3));
  Rng rng(4);
  for (auto& [name, tensor] : m.weights) {
    if (name.starts_with("decoder") || name.starts_with("shortcut")) {
      for (float& w : tensor.values) w += static_cast<float>(0.2 * rng.normal());
    }
  }
  m.constraints = {{"floor", "flow >= 0"}};
  return m;
}

Series recording(std::size_t rows) {
  Series s;
  s.schema = small_model().schema;
  Rng rng(6);
  for (std::size_t r = 0; r < rows * 3; ++r) s.values.push_back(2 * rng.normal());
  return s;
}

TEST(ModelForecaster, IsASessionFromResetState) {
  const auto predictor = Predictor::make(small_model()).value();
  const auto forecaster = model_forecaster("mine", predictor);
  const Series series = recording(80);
  ASSERT_TRUE(forecaster->fit(series));
  EXPECT_EQ(forecaster->name(), "mine");
  for (const std::size_t origin : {5u, 30u, 79u}) {
    for (const std::size_t horizon : {1u, 4u, 9u}) {
      ForecastBlock block;
      ASSERT_TRUE(forecaster->forecast(series, origin, horizon, block));
      Session session = Session::prepare(predictor);
      for (std::size_t r = origin - std::min(origin, predictor->lookback()); r < origin; ++r) session.step(series.frame(r));
      ForecastRequest request;
      request.horizon = horizon;
      request.observed_plan = ObservedPlan::kHold;
      for (std::size_t r = origin; r < std::min<std::size_t>(origin + horizon, 80); ++r) request.known.push_back(series.at(r, 1));
      Forecast by_hand;
      ASSERT_TRUE(session.forecast(request, by_hand));
      EXPECT_EQ(block.points, by_hand.block.points);
      EXPECT_EQ(block.quantiles, by_hand.block.quantiles);
      for (const double q : block.quantiles) EXPECT_GE(q, 0) << "within its limits";
    }
  }
}

TEST(ModelForecaster, SeesNothingOfTheFutureButWhatIsKnownAhead) {
  const auto forecaster = model_forecaster("model", Predictor::make(small_model()).value());
  Series series = recording(60);
  ForecastBlock before, after;
  ASSERT_TRUE(forecaster->forecast(series, 40, 10, before));
  for (std::size_t r = 40; r < 60; ++r) series.row(r)[0] = series.row(r)[2] = 1e4;
  ASSERT_TRUE(forecaster->forecast(series, 40, 10, after));
  EXPECT_EQ(before.points, after.points);
  for (std::size_t r = 40; r < 60; ++r) series.row(r)[1] = -4;
  ASSERT_TRUE(forecaster->forecast(series, 40, 10, after));
  EXPECT_NE(before.points, after.points);
}

TEST(ModelForecaster, RefusesASeriesOfOtherChannels) {
  const auto forecaster = model_forecaster("model", Predictor::make(small_model()).value());
  Series series = recording(60);
  series.schema.channels[1].name = "hours";
  ForecastBlock block;
  const auto done = forecaster->forecast(series, 30, 2, block);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text().find("the model's channel 'hour' is not in the data"), std::string::npos) << done.error().text();
}

}  // namespace
}  // namespace kizzasi
