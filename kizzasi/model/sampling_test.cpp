#include "kizzasi/model/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/base/rng.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/signal_model.h"

namespace kizzasi {
namespace {

BackboneConfig small(std::string_view architecture) {
  BackboneConfig c;
  c.architecture = std::string(architecture);
  c.d_model = 16;
  c.head_dim = 4;
  c.d_state = 4;
  c.n_layers = 2;
  return c;
}

TEST(Sampling, OfARatioIsAWholeMultipleOrPart) {
  EXPECT_EQ(*sampling_of(1, ""), (Sampling{1, 1}));
  EXPECT_EQ(*sampling_of(2, ""), (Sampling{2, 1}));
  EXPECT_EQ(*sampling_of(0.5, ""), (Sampling{1, 2}));
  EXPECT_EQ(*sampling_of(0.333333333, ""), (Sampling{1, 3}));
  for (const double bad : {0.0, -1.0, 1.5, 0.4, 1001.0, 1e-9, std::nan("")}) {
    EXPECT_FALSE(sampling_of(bad, "--sampling")) << bad;
  }
  EXPECT_NE(sampling_of(1.5, "--sampling").error().text().find("--sampling: 1.5 frames"), std::string::npos);
}

TEST(Sampling, TheTableSaysWhoseRecurrenceRunsInTime) {
  for (const Architecture& architecture : architectures()) {
    const BackboneConfig config = small(architecture.name);
    const auto backbone = architecture.load(config, architecture.initial_weights(config, Rng(3)));
    ASSERT_TRUE(backbone) << backbone.error().text();
    const std::size_t rows = 12, d = 16;
    std::vector<float> in(rows * d), scratch((*backbone)->scratch_floats(rows));
    Rng rng(4);
    for (float& v : in) v = static_cast<float>(rng.normal());
    const auto run = [&](float dt) {
      std::vector<float> out(rows * d);
      AlignedVector<std::byte> state((*backbone)->layout().bytes());
      (*backbone)->reset(state);
      (*backbone)->run({state.data(), dt}, {in.data(), rows, d}, {out.data(), rows, d}, scratch);
      return out;
    };
    // Mixtures run in time in some blocks only, which is no more than not at all.
    const bool partly = architecture.name == "jamba" || architecture.name == "bamba";
    EXPECT_EQ(run(1) != run(2), architecture.in_time || partly) << architecture.name;
    EXPECT_FALSE(architecture.in_time && partly);
  }
}

ModelConfig signal_config(std::string_view architecture) {
  ModelConfig c;
  c.backbone = small(architecture);
  c.horizon = 3;
  c.recent = 5;
  c.season = 6;
  c.seasons = 2;
  c.windowed = false;
  c.patch = 1;
  c.d_decoder = 8;
  return c;
}

TEST(Sampling, IsRefusedWhereAModelCountsFrames) {
  const ChannelCounts counts{1, 0, 0};
  const auto load = [&](ModelConfig c, ChannelCounts n) {
    return SignalModel::load(c, n, SignalModel::initial_weights(c, n, Rng(1)), Sampling{2, 1});
  };
  for (const Architecture& architecture : architectures()) {
    const auto model = load(signal_config(architecture.name), counts);
    EXPECT_EQ(model.has_value(), architecture.in_time) << architecture.name;
    if (!model) {
      EXPECT_NE(model.error().text().find("counts frames"), std::string::npos) << model.error().text();
    }
  }
  ModelConfig alone = signal_config("s4d");
  alone.parts = "shortcut";
  EXPECT_NE(load(alone, counts).error().text().find("short-cut alone"), std::string::npos);
  EXPECT_NE(load(signal_config("s4d"), {1, 0, 1}).error().text().find("known-future"), std::string::npos);
}

// What a model sees of its past, by its short-cut: with weights of the recent past and the seasons alone, a stream of another rate gives
// the prediction of the stream as trained, exactly where its frames hold the values, and for a straight line between them.
TEST(Sampling, ThePastIsLookedUpInPeriods) {
  for (const std::size_t targets : {1u, 2u}) {
    const ChannelCounts counts{targets, 1, 0};
    ModelConfig config = signal_config("s4d");
    NamedTensors weights = SignalModel::initial_weights(config, counts, Rng(1));
    Rng rng(2);
    for (auto& [name, tensor] : weights) {
      const bool seen = name.starts_with("shortcut.");
      for (float& v : tensor.values) v = name == "head.scale" ? 1.0f : seen ? static_cast<float>(rng.normal()) : 0.0f;
    }
    const auto value = [](double t, std::size_t c) { return static_cast<float>((0.3 + 0.1 * static_cast<double>(c)) * t - 4); };
    const auto anchors = [&](Sampling sampling) {
      const auto model = SignalModel::load(config, counts, weights, sampling);
      EXPECT_TRUE(model);
      AlignedVector<std::byte> state(model->layout().bytes());
      AlignedVector<float> scratch(model->scratch_floats());
      model->reset(state);
      const std::size_t frames = 48 * sampling.faster / sampling.slower + 1;
      for (std::size_t i = 0; i < frames; ++i) {
        std::vector<float> frame;
        for (std::size_t c = 0; c < counts.inputs(); ++c) frame.push_back(value(static_cast<double>(i) * sampling.period(), c));
        model->push(state, frame, sampling.period(), scratch);
      }
      const std::size_t n = 3 * targets;
      std::vector<float> params(n * model->config().head.parameters()), anchor(n), spread(n);
      model->predict(state, {}, 0, 3, params, anchor, spread, scratch);
      return anchor;
    };
    const auto truth = anchors({});
    for (const Sampling sampling : {Sampling{2, 1}, {5, 1}, {1, 2}, {1, 3}, {1, 4}}) {
      const auto ours = anchors(sampling);
      for (std::size_t i = 0; i < truth.size(); ++i) {
        EXPECT_NEAR(ours[i], truth[i], 1e-4 * std::max(1.0f, std::abs(truth[i]))) << sampling.faster << "/" << sampling.slower;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
