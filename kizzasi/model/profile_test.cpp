// What the profiler says against what is known: bytes of every tensor counted once, times of a clock that the test turns.
#include <gtest/gtest.h>

#include <set>

#include "kizzasi/model/architectures.h"
#include "kizzasi/model/signal_model.h"
#include "kizzasi/tensor/quantized.h"

namespace kizzasi {
namespace {

// Every look at it is a microsecond later than the one before.
class TurningClock final : public Clock {
 public:
  double seconds() const override { return static_cast<double>(looks_++) * 1e-6; }

 private:
  mutable int looks_ = 0;
};

TEST(Profile, CountsEveryTensorStateAndProductOnce) {
  for (const Architecture& architecture : architectures()) {
    SCOPED_TRACE(architecture.name);
    const auto config = sized(architecture.name, "tiny");
    ASSERT_TRUE(config);
    const NamedTensors weights = architecture.initial_weights(*config, Rng(1));
    const auto backbone = architecture.load(*config, weights);
    ASSERT_TRUE(backbone);
    const TurningClock clock;
    std::size_t weight_bytes = 0, state_bytes = 0, products = 0, norms = 0, all = 0, packed = 0;
    std::set<std::string> names;
    for (const LayerCost& cost : (*backbone)->profile(clock, 5)) {
      weight_bytes += cost.weight_bytes;
      state_bytes += cost.state_bytes;
      products += cost.multiply_adds;
      EXPECT_NEAR(cost.seconds, 1e-6, 1e-12) << cost.name;
      EXPECT_NEAR(cost.slow_seconds, 1e-6, 1e-12) << cost.name;
      EXPECT_TRUE(names.insert(cost.name).second) << cost.name;
    }
    for (const auto& [name, tensor] : weights) {
      all += stored_bytes(tensor);
      if ((*backbone)->packed().count(name) != 0) packed += tensor.values.size();
      bool inside = name.starts_with("norm_f.");
      for (const std::string& layer : names) inside |= name.starts_with(layer + ".");
      if (!inside) norms += stored_bytes(tensor);  // the norms before the layers
      if (name == "norm_f.bias") norms += stored_bytes(tensor);
    }
    EXPECT_EQ(weight_bytes + norms, all);
    EXPECT_EQ(products, packed);
    EXPECT_LE(state_bytes, (*backbone)->layout().bytes());
    EXPECT_GT(state_bytes, 0u);
  }
}

// The whole model around it, of every kind of channels and with several targets: what it writes has its room.
TEST(Profile, TakesWholeModelsApart) {
  for (const char* mode : {"mixed", "independent"}) {
    for (const bool windowed : {false, true}) {
      for (const char* parts : {"both", "shortcut", "backbone"}) {
        SCOPED_TRACE(std::string(mode) + (windowed ? " windowed " : " ") + parts);
        ModelConfig config;
        config.channel_mode = mode;
        config.windowed = windowed;
        config.parts = parts;
        config.horizon = 3;
        config.context = 8;
        config.recent = 4;
        config.backbone.d_model = 8;
        config.backbone.head_dim = 4;
        const ChannelCounts counts{3, std::string_view(mode) == "mixed" ? 2u : 0u, 1};
        const auto model = SignalModel::load(config, counts, SignalModel::initial_weights(config, counts, Rng(1)));
        ASSERT_TRUE(model) << model.error().text();
        const TurningClock clock;
        const std::vector<LayerCost> costs = model->profile(clock, 3);
        ASSERT_FALSE(costs.empty());
        EXPECT_EQ(costs.back().name, "around it");
        std::size_t weight_bytes = 0;
        for (const LayerCost& cost : costs) weight_bytes += cost.weight_bytes;
        EXPECT_EQ(weight_bytes, model->weight_bytes());
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
