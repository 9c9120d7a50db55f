// A model that learned a damped oscillation at 100 Hz forecasts it at 50, 200 and 400 Hz.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "kizzasi/forecast/learn.h"
#include "kizzasi/forecast/model_forecaster.h"

namespace kizzasi {
namespace {

constexpr std::int64_t kStep = 10'000'000;

// Struck at irregular moments, so that only the oscillation itself tells how it goes on.
double oscillation(double seconds) {
  const double beat = std::floor(seconds / 1.7), since = seconds - 1.7 * beat, strength = 1 + 0.5 * std::sin(7 * beat);
  return strength * std::exp(-since / 0.7) * std::sin(2 * std::numbers::pi * 2.3 * since);
}

Series recording(std::int64_t step_ns, double seconds) {
  Series series;
  series.schema.step_ns = step_ns;
  series.schema.channels = {{"x", "", Role::kTarget}};
  const auto rows = static_cast<std::size_t>(seconds * 1e9 / static_cast<double>(step_ns));
  for (std::size_t r = 0; r < rows; ++r) series.values.push_back(oscillation(static_cast<double>(r) * static_cast<double>(step_ns) * 1e-9));
  return series;
}

// Mean absolute error of forecasts of 0.4 s, made every 0.26 s from 10 s on, at the rows of the series.
double error_of(const std::shared_ptr<const Predictor>& predictor, const Series& series, std::int64_t true_step_ns) {
  const auto forecaster = model_forecaster("model", predictor);
  const auto rows_of = [&](double seconds) {
    return static_cast<std::size_t>(std::llround(seconds * 1e9 / static_cast<double>(true_step_ns)));
  };
  const std::size_t horizon = rows_of(0.4);
  double sum = 0;
  std::size_t count = 0;
  for (double at = 10; at < 30; at += 0.26) {
    const std::size_t origin = rows_of(at);
    ForecastBlock block;
    const auto done = forecaster->forecast(series, origin, horizon, block);
    EXPECT_TRUE(done) << done.error().text();
    for (std::size_t h = 0; h < horizon; ++h, ++count) sum += std::abs(block.point(h, 0) - series.at(origin + h, 0));
  }
  return sum / static_cast<double>(count);
}

TEST(SamplingOption, ALearnedOscillationIsForecastAtEveryRate) {
  for (const std::string architecture : {"s4d", "lru"}) {
    LearnOptions options;
    ModelConfig& c = options.model;
    c.backbone.architecture = architecture;
    c.backbone.d_model = 16;
    c.backbone.d_state = 8;
    c.backbone.n_layers = 1;
    c.head.kind = "point";
    c.horizon = 8;
    c.recent = 8;
    c.context = 128;
    c.d_decoder = 16;
    options.training.steps = 200;
    options.calibration_windows = 0;
    ThreadPool pool(1);
    const auto learned = learn({recording(kStep, 60)}, options, "", false, pool, SteadyClock(), {});
    ASSERT_TRUE(learned) << learned.error().text();
    const auto at = [&](Sampling sampling) {
      PredictorOptions use;
      use.sampling = sampling;
      auto predictor = Predictor::make(learned->file, use);
      EXPECT_TRUE(predictor);
      return *predictor;
    };
    const auto trained = at({});
    const double own = error_of(trained, recording(kStep, 31), kStep);
    EXPECT_LT(own, 0.08) << "of a signal of 0.2 on average";
    for (const Sampling sampling : {Sampling{2, 1}, {4, 1}, {1, 2}}) {
      const std::int64_t step = kStep * static_cast<std::int64_t>(sampling.slower) / static_cast<std::int64_t>(sampling.faster);
      const double with = error_of(at(sampling), recording(step, 31), step);
      Series counted = recording(step, 31);
      counted.schema.step_ns = kStep;
      const double without = error_of(trained, counted, step);
      EXPECT_LT(with, 0.5 * without) << architecture << " " << sampling.faster << "/" << sampling.slower;
    }
  }
}

}  // namespace
}  // namespace kizzasi
