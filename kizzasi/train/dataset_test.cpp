#include "kizzasi/train/dataset.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>

#include "kizzasi/base/rng.h"

namespace kizzasi {
namespace {

struct Case {
  ModelConfig config;
  ChannelCounts counts;
};

template <typename T>
T pick(Rng& rng, std::initializer_list<T> choices) {
  return *(choices.begin() + rng.below(choices.size()));
}

Case random_case(Rng& rng) {
  Case c;
  ModelConfig& m = c.config;
  m.backbone.architecture =
      pick<const char*>(rng, {"mamba2", "mamba", "s4d", "s4", "dss", "s5", "lru", "h3", "mingru", "minlstm", "gru", "lstm"});
  m.backbone.d_model = pick<std::int64_t>(rng, {4, 8, 12});
  m.backbone.n_layers = 1 + static_cast<std::int64_t>(rng.below(2));
  m.backbone.d_state = pick<std::int64_t>(rng, {4, 8});
  m.backbone.head_dim = 4;
  m.windowed = rng.below(2) == 0;
  m.patch = m.windowed ? pick<std::int64_t>(rng, {1, 2, 3}) : 1;
  m.context = m.patch * static_cast<std::int64_t>(1 + rng.below(8));
  m.horizon = static_cast<std::int64_t>(1 + rng.below(6));
  m.window_norm = m.windowed ? pick<const char*>(rng, {"none", "last", "mean_std"}) : pick<const char*>(rng, {"none", "last"});
  m.channel_mode = pick<const char*>(rng, {"mixed", "independent"});
  m.parts = pick<const char*>(rng, {"both", "both", "shortcut", "backbone"});
  m.recent = static_cast<std::int64_t>(1 + rng.below(10));
  m.season = static_cast<std::int64_t>(rng.below(6));
  m.seasons = m.season == 0 ? 0 : static_cast<std::int64_t>(1 + rng.below(3));
  m.d_decoder = 8;
  m.head.kind = pick<const char*>(rng, {"point", "gaussian", "student_t", "mixture", "quantiles"});
  c.counts = {1 + rng.below(3), rng.below(3), rng.below(2)};
  return c;
}

NamedTensors random_weights(const Case& c, Rng& rng) {
  NamedTensors weights = SignalModel::initial_weights(c.config, c.counts, rng);
  for (auto& [name, tensor] : weights) {
    if (name.starts_with("backbone.")) continue;  // what keeps a backbone stable stays as it starts
    const bool positive = name == "head.scale";
    for (float& w : tensor.values) w = positive ? static_cast<float>(rng.uniform(0.1, 2)) : w + static_cast<float>(0.3 * rng.normal());
  }
  return weights;
}

Series random_series(const Case& c, std::size_t rows, Rng& rng) {
  Series series;
  const auto add = [&](std::size_t n, Role role, const char* stem) {
    for (std::size_t i = 0; i < n; ++i) series.schema.channels.push_back({stem + std::to_string(i), "", role});
  };
  add(c.counts.targets, Role::kTarget, "t");
  add(c.counts.observed, Role::kObserved, "o");
  add(c.counts.known, Role::kKnownFuture, "k");
  series.schema.step_ns = 1'000'000'000;
  for (std::size_t i = 0; i < rows * series.schema.size(); ++i) {
    series.values.push_back(rng.below(10) == 0 ? std::nan("") : 3 + 2 * rng.normal());
  }
  return series;
}

template <typename T>
WeightVars<T> leaves(autograd::Tape<T>& tape, const NamedTensors& weights) {
  WeightVars<T> vars;
  for (const auto& [name, tensor] : weights) {
    const std::vector<T> values(tensor.values.begin(), tensor.values.end());
    vars.add(name, tape.leaf(autograd::Dims(tensor.shape.begin(), tensor.shape.end()), values));
  }
  return vars;
}

// One law for the whole way from recorded rows to parameters: what training computes for an origin is what a stream predicts there.
TEST(Dataset, TrainingSeesWhatASessionSeesAndForwardEqualsPredict) {
  Rng rng(20);
  const int cases = 120;
  for (int trial = 0; trial < cases; ++trial) {
    SCOPED_TRACE(trial);
    const Case c = random_case(rng);
    SCOPED_TRACE(to_json(c.config).dump());
    const NamedTensors weights = random_weights(c, rng);
    const auto model = SignalModel::load(c.config, c.counts, weights);
    ASSERT_TRUE(model) << model.error().text();
    const SignalShape& s = model->shape();
    const std::size_t rows = s.lookback() + s.horizon + 12;
    const Series series = random_series(c, rows, rng);
    const auto normalizer = Normalizer::fit(series, Scaling::kStandard);
    ASSERT_TRUE(normalizer);
    std::vector<std::size_t> order(series.channels());
    std::iota(order.begin(), order.end(), 0u);
    const Dataset data(*model, {&series, 1}, *normalizer, order);

    // A window that begins with the stream, so that both start from reset state.
    const std::size_t newest = s.windowed || !s.has_backbone ? s.lookback() + rng.below(10) : s.context - 1;
    std::vector<Origin> windows;
    for (std::size_t lane = 0; lane < s.lanes; ++lane) windows.push_back({0, static_cast<std::uint32_t>(lane), newest});
    SignalBatch batch;
    Answers answers;
    const std::array<std::size_t, 1> here{0};
    const std::vector<RowRange> ranges(windows.size(), RowRange{0, 0, rows});
    data.fill(windows, here, ranges, batch, answers);
    autograd::Tape<double> tape;
    const auto trained = model->forward(tape, leaves(tape, weights), batch).value();
    std::vector<float> location(answers.values.size()), scale(s.horizon * s.targets);
    model->locate(batch, location, scale);

    std::vector<std::byte> state(model->layout().bytes());
    std::vector<float> scratch(model->scratch_floats());
    model->reset(state);
    std::vector<float> frame(order.size());
    for (std::size_t r = 0; r <= newest; ++r) {
      for (std::size_t i = 0; i < order.size(); ++i) frame[i] = normalizer->normalise(series.at(r, i), i);
      model->push(state, frame, 1.0f, scratch);
    }
    std::vector<float> known(s.horizon * s.known);
    for (std::size_t h = 0; h < s.horizon; ++h) {
      for (std::size_t f = 0; f < s.known; ++f) {
        const std::size_t channel = c.counts.targets + c.counts.observed + f;
        known[h * s.known + f] = normalizer->normalise(series.at(newest + 1 + h, channel), channel);
      }
    }
    std::vector<float> params(s.horizon * c.counts.targets * s.parameters), anchor(s.horizon * c.counts.targets),
        spread(s.horizon * c.counts.targets);
    model->predict(state, known, 0, s.horizon, params, anchor, spread, scratch);
    float largest = 1;
    for (const float p : params) largest = std::max(largest, std::abs(p));
    for (std::size_t lane = 0; lane < s.lanes; ++lane) {
      for (std::size_t h = 0; h < s.horizon; ++h) {
        for (std::size_t o = 0; o < s.targets; ++o) {
          const std::size_t target = s.lanes == 1 ? o : lane;
          const float own = answers.spread[lane * s.targets + o], at = location[(lane * s.horizon + h) * s.targets + o];
          EXPECT_EQ(at * own + answers.anchor[lane * s.targets + o], anchor[h * c.counts.targets + target]);
          EXPECT_EQ(scale[h * s.targets + o] * own, spread[h * c.counts.targets + target]);
          for (std::size_t q = 0; q < s.parameters; ++q) {
            const double expected = trained[((lane * s.horizon + h) * s.targets + o) * s.parameters + q];
            ASSERT_NEAR(params[(h * c.counts.targets + target) * s.parameters + q], expected, 2e-5 * largest);
          }
        }
      }
    }

    // A part of the steps alone has the bits of the whole.
    const std::size_t first = rng.below(s.horizon), count = 1 + rng.below(s.horizon - first), stride = c.counts.targets * s.parameters;
    std::vector<float> part(count * stride);
    model->predict(state, known, first, count, part, anchor, spread, scratch);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), params.begin() + static_cast<std::ptrdiff_t>(first * stride)));
  }
}

TEST(Dataset, AnySplitOfTheRowsGivesTheSameState) {
  Rng rng(21);
  for (int trial = 0; trial < 100; ++trial) {
    SCOPED_TRACE(trial);
    const Case c = random_case(rng);
    const auto model = SignalModel::load(c.config, c.counts, random_weights(c, rng));
    ASSERT_TRUE(model) << model.error().text();
    const std::size_t rows = 1 + rng.below(200), inputs = c.counts.inputs();
    std::vector<float> frames(rows * inputs);
    for (float& x : frames) x = rng.below(12) == 0 ? NAN : static_cast<float>(rng.normal());
    std::vector<float> scratch(model->scratch_floats());
    std::vector<std::byte> one(model->layout().bytes()), many(one.size());
    model->reset(one);
    model->reset(many);
    for (std::size_t r = 0; r < rows; ++r) model->push(one, std::span(frames).subspan(r * inputs, inputs), 1.0f, scratch);
    for (std::size_t r = 0; r < rows;) {
      const std::size_t n = std::min(rows - r, 1 + rng.below(90));
      model->push_rows(many, {frames.data() + r * inputs, n, inputs}, 1.0f, scratch);
      r += n;
    }
    EXPECT_EQ(one, many);
  }
}

// In seasonal units every answer weighs what one of its window's units is in mean seasonal changes, counted by hand; missing ones nothing.
TEST(Dataset, SeasonalUnitsAreThoseOfMase) {
  ModelConfig config;
  config.context = 30;
  config.recent = 3;
  config.season = 6;
  config.seasons = 1;
  config.horizon = 4;
  config.windowed = true;
  config.head.kind = "point";
  Rng rng(31);
  for (const char* norm : {"none", "last", "mean_std"}) {
    config.window_norm = norm;
    const NamedTensors weights = SignalModel::initial_weights(config, {1, 0, 0}, Rng(1));
    const auto model = SignalModel::load(config, {1, 0, 0}, weights);
    ASSERT_TRUE(model) << model.error().text();
    Series series;
    series.schema.channels = {{"x", "", Role::kTarget}};
    for (int r = 0; r < 200; ++r) series.values.push_back(r < 100 ? 3 * rng.normal() : (r % 6 == 0 ? 5.0 : 1.0));
    series.values[60] = NAN;
    const auto normalizer = Normalizer::fit(series, Scaling::kStandard);
    const std::vector<std::size_t> order{0};
    const Dataset data(*model, {&series, 1}, *normalizer, order, LossUnit::kSeasonal);
    SignalBatch batch;
    Answers answers;
    for (const std::size_t newest : {58u, 90u, 150u}) {
      const Origin origin{0, 0, newest};
      const RowRange range{0, 0, 200};
      data.fill({&origin, 1}, std::array<std::size_t, 1>{0}, {&range, 1}, batch, answers);
      double change = 0;
      for (std::size_t back = 0; back < 24; ++back) {
        change += std::abs(series.values[newest - back] - series.values[newest - back - 6]) / normalizer->scale(0) / 24;
      }
      const double expected = std::min(50.0, static_cast<double>(answers.spread[0]) / std::max(change, 1e-9));
      for (std::size_t h = 0; h < 4; ++h) {
        const bool missing = newest + 1 + h == 60;
        if (newest != 90) {
          EXPECT_NEAR(answers.weight[h], missing ? 0 : expected, 1e-5 * expected) << norm << " " << newest;
        }
        EXPECT_EQ(answers.weight[h] > 0, !missing);
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
