// Models at another sampling rate than they were trained at, on a signal where it matters: a damped oscillation that is struck again and
// again. Forecasts made at the same moments agree with those of the rate of training, and do not where the option is left out.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"

namespace kizzasi {
namespace {

constexpr std::int64_t kStep = 10'000'000;  // 100 Hz

// 1.5 Hz, struck every 2 s.
double oscillation(double seconds) {
  const double since = std::fmod(seconds, 2.0);
  return (1 - std::exp(-since / 0.05)) * std::exp(-since / 0.8) * std::sin(2 * std::numbers::pi * 1.5 * since);
}

Series recording(const Schema& schema, std::int64_t step_ns, double seconds) {
  Series series;
  series.schema = schema;
  series.schema.step_ns = step_ns;
  const auto rows = static_cast<std::size_t>(seconds * 1e9 / static_cast<double>(step_ns)) + 1;
  for (std::size_t r = 0; r < rows; ++r) series.values.push_back(oscillation(static_cast<double>(r) * static_cast<double>(step_ns) * 1e-9));
  return series;
}

ModelFile model_of(const std::string& architecture, std::uint64_t seed) {
  ModelFile m;
  ModelConfig& c = m.config;
  c.backbone.architecture = architecture;
  c.backbone.d_model = 16;
  c.backbone.n_layers = 2;
  c.backbone.d_state = 8;
  c.backbone.head_dim = 8;
  c.head.kind = "gaussian";
  c.horizon = 4;
  c.recent = 3;
  c.season = c.seasons = 0;
  c.windowed = false;
  c.patch = 1;
  c.d_decoder = 16;
  m.schema.step_ns = kStep;
  m.schema.channels = {{"x", "", Role::kTarget}};
  m.normalizer = Normalizer({0.0}, {1.0});
  Rng rng(seed);
  m.weights = SignalModel::initial_weights(c, channel_counts(m.schema), rng.named("weights"));
  for (auto& [name, tensor] : m.weights) {
    // A decoder that shows what the backbone knows, and a short-cut of the last three frames.
    if (name.starts_with("backbone.")) continue;
    for (float& w : tensor.values) w = name == "head.scale" ? 1.0f : w + 0.2f * static_cast<float>(rng.normal());
  }
  return m;
}

// Medians of four steps from each moment.
std::vector<double> medians(const std::shared_ptr<const Predictor>& predictor, const Series& series, std::size_t rows_a_moment,
                            std::size_t horizon = 4) {
  std::vector<double> all;
  Session session = Session::prepare(predictor);
  ForecastRequest request;
  request.horizon = horizon;
  Forecast forecast;
  std::size_t done = 0;
  for (std::size_t row = rows_a_moment; row < series.rows(); row += rows_a_moment) {
    session.prefill(series, done, row + 1);
    done = row + 1;
    EXPECT_TRUE(session.forecast(request, forecast));
    all.insert(all.end(), forecast.block.points.begin(), forecast.block.points.end());
  }
  return all;
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

struct Apart {
  double with, without;
};

// How far forecasts at another rate are from those at the rate of training, with the option and as if the frames were those of training.
Apart apart_at(const ModelFile& model, Sampling sampling, std::size_t horizon) {
  const auto trained = predictor_of(model);
  const auto truth = medians(trained, recording(model.schema, kStep, 6), 20, horizon);
  const std::int64_t step = kStep * static_cast<std::int64_t>(sampling.slower) / static_cast<std::int64_t>(sampling.faster);
  PredictorOptions options;
  options.sampling = sampling;
  const auto predictor = predictor_of(model, {}, options);
  EXPECT_EQ(predictor->frame_ns(), step);
  const std::size_t moment = 20 * sampling.faster / sampling.slower;
  const Series series = recording(model.schema, step, 6);
  Series counted = series;
  counted.schema.step_ns = kStep;
  return {apart(medians(predictor, series, moment, horizon), truth), apart(medians(trained, counted, moment, horizon), truth)};
}

// Convolutions count frames whatever the rate: here they pass the newest one.
ModelFile without_convolutions(ModelFile model) {
  for (auto& [name, tensor] : model.weights) {
    if (!name.ends_with("conv1d.weight")) continue;
    for (std::size_t i = 0; i < tensor.values.size(); ++i) tensor.values[i] = (i + 1) % tensor.shape.back() == 0 ? 1.0f : 0.0f;
  }
  return model;
}

TEST(SamplingOption, ForecastsAgreeWithThoseAtTheRateOfTraining) {
  for (const std::string architecture : {"s4d", "s4", "dss", "s5", "lru", "h3", "mamba", "falcon_mamba", "mamba2"}) {
    for (const std::uint64_t seed : {1u, 2u}) {
      const ModelFile model = without_convolutions(model_of(architecture, seed));
      for (const Sampling sampling : {Sampling{2, 1}, {1, 2}}) {
        const Apart a = apart_at(model, sampling, 4);
        EXPECT_LT(a.with, 0.6 * a.without) << architecture << " " << sampling.faster << "/" << sampling.slower;
      }
    }
  }
}

TEST(SamplingOption, WindowsAreReadInPeriods) {
  for (const std::int64_t patch : {1, 4}) {
    ModelFile model = model_of("mamba2", 1);
    model.config.windowed = true;
    model.config.patch = patch;
    model.config.context = 32;
    Rng rng(2);
    model.weights = SignalModel::initial_weights(model.config, channel_counts(model.schema), rng);
    for (auto& [name, tensor] : model.weights) {
      for (float& w : tensor.values)
        w += name.starts_with("decoder.") || name.starts_with("shortcut.") ? 0.2f * static_cast<float>(rng.normal()) : 0.0f;
    }
    const Apart faster = apart_at(model, {2, 1}, 4), slower = apart_at(model, {1, 2}, 4);
    EXPECT_LT(faster.with, 1e-6) << "the very frames of training";
    EXPECT_LT(slower.with, 0.3 * slower.without);
  }
}

TEST(SamplingOption, IsRefusedWithItsReason) {
  PredictorOptions options;
  options.sampling = {2, 1};
  const auto refused = Predictor::make(model_of("gru", 1), options, "m.kz");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("gru counts frames"), std::string::npos) << refused.error().text();
  // A forecast that would have to be fed back between two frames.
  options.sampling = {1, 3};
  const auto slow = predictor_of(model_of("s4d", 1), {}, options);
  Session session = Session::prepare(slow);
  session.prefill(recording(slow->schema(), slow->frame_ns(), 1), 0, 10);
  Forecast forecast;
  ForecastRequest request;
  request.horizon = 5;
  const auto done = session.forecast(request, forecast);
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().text().find("end between two frames"), std::string::npos);
  request.horizon = 4;
  EXPECT_TRUE(session.forecast(request, forecast));
  EXPECT_EQ(forecast.time_ns[1] - forecast.time_ns[0], kStep);
  // A snapshot of another rate means something else.
  EXPECT_FALSE(Session::prepare(predictor_of(model_of("s4d", 1))).restore(session.state()));
}

TEST(SamplingOption, GapsAreCountedInFramesOfTheStream) {
  PredictorOptions options;
  options.sampling = {2, 1};
  const auto predictor = predictor_of(model_of("s4d", 1), {}, options);
  Session session = Session::prepare(predictor);
  const double value[] = {1.0};
  session.step({0, value});
  const Prediction& next = session.step({kStep / 2, value});
  EXPECT_EQ(session.report().gap_frames, 0u);
  EXPECT_EQ(next.time_ns, kStep / 2 + kStep);  // one period of the training data ahead
  session.step({2 * kStep, value});
  EXPECT_EQ(session.report().gap_frames, 2u);
}

}  // namespace
}  // namespace kizzasi
