// A step allocates nothing, whatever the backbone, its size, the head and the constraints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/presets.h"
#include "tests/allocations/count.h"

namespace kizzasi {
namespace {

std::size_t allocations_of_steps(const std::shared_ptr<const Predictor>& predictor, const Series& series, std::size_t steps) {
  Session session = Session::prepare(predictor);
  const std::size_t before = allocations_so_far();
  for (std::size_t i = 0; i < steps; ++i) session.step({series.time_ns(i), series.row(i % series.rows())});
  return allocations_so_far() - before;
}

TEST(RealTime, TheCountSeesAllocations) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  const std::size_t before = allocations_so_far();
  const std::vector<double> some(10);
  EXPECT_EQ(allocations_so_far(), before + 1);
}

// The initial weights of six layers, the last three over again in those after them: drawing those of the largest size takes longer than its
// steps, the first layer may be of another kind, and hybrids repeat after three.
NamedTensors weights_of(const ModelConfig& config, ChannelCounts counts) {
  ModelConfig few = config;
  few.backbone.n_layers = std::min<std::int64_t>(6, config.backbone.n_layers);
  NamedTensors weights = SignalModel::initial_weights(few, counts, Rng(1));
  for (std::int64_t layer = 6; layer < config.backbone.n_layers; ++layer) {
    const std::string like = fmt::format("backbone.layers.{}.", 3 + layer % 3);
    std::vector<std::string> names;
    for (const auto& [name, tensor] : weights) {
      if (name.starts_with(like)) names.push_back(name);
    }
    for (const std::string& name : names) {
      weights.emplace(fmt::format("backbone.layers.{}.{}", layer, name.substr(like.size())), weights.at(name));
    }
  }
  return weights;
}

// One stream.
void expect_no_allocations(ModelConfig config, std::size_t steps, std::string_view what) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  ModelFile model;
  model.config = std::move(config);
  model.schema = {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}, {"c", "", Role::kObserved}}, 1'000'000'000, ""};
  model.normalizer = Normalizer({0, 0, 0}, {1, 1, 1});
  model.weights = weights_of(model.config, channel_counts(model.schema));
  Rng rng(2);
  const Series series = random_series(model, 100, 0.1, rng);
  const auto predictor = predictor_of(std::move(model), {{"range", "-1 <= a <= 1"}, {"slew", "abs(rate(b)) <= 0.5 [1/s]"}});
  EXPECT_EQ(allocations_of_steps(predictor, series, steps), 0u) << what;
}

// 10,000 steps in the long checks, which set KIZZASI_STEPS; fewer where those would take minutes.
std::size_t steps_or(std::size_t usual) {
  const char* wanted = std::getenv("KIZZASI_STEPS");
  return wanted == nullptr ? usual : static_cast<std::size_t>(std::strtoull(wanted, nullptr, 10));
}

// Each preset a test of its own, so that they run side by side.
class PresetSteps : public testing::TestWithParam<std::string_view> {};

TEST_P(PresetSteps, TenThousandAllocateNothing) {
  const ModelConfig config = preset(GetParam()).value();
  expect_no_allocations(config, kEveryAccessIsChecked && config.backbone.d_model > 128 ? 100 : 10'000, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Each, PresetSteps, testing::ValuesIn(preset_names().begin(), preset_names().end()),
                         [](const auto& each) { return std::string(each.param); });

class SizeSteps : public testing::TestWithParam<std::string_view> {
 protected:
  static void expect_none(std::string_view size, std::size_t steps) {
    ModelConfig config;
    config.backbone = sized(GetParam(), size).value();
    config.season = 24;
    config.seasons = 2;
    expect_no_allocations(config, steps, fmt::format("{} {}", GetParam(), size));
  }
};

TEST_P(SizeSteps, TenThousandOfTinyAllocateNothing) { expect_none("tiny", 10'000); }

// A step of base reads 20 to 150 MB of weights, one of large up to 1.5 GB: that only of the default one.
TEST_P(SizeSteps, ManyOfTheLargerOnesAllocateNothing) {
  const bool usual = GetParam() == BackboneConfig{}.architecture;
  expect_none("small", kEveryAccessIsChecked ? 100 : steps_or(usual ? 10'000 : 1'000));
  expect_none("base", kEveryAccessIsChecked ? 10 : std::min<std::size_t>(steps_or(100), usual ? 2'000 : 500));
  if (!kEveryAccessIsChecked && usual) expect_none("large", 100);
}

INSTANTIATE_TEST_SUITE_P(Each, SizeSteps, testing::ValuesIn([] {
                           std::vector<std::string_view> names;
                           for (const Architecture& architecture : architectures()) names.push_back(architecture.name);
                           return names;
                         }()),
                         [](const auto& each) { return std::string(each.param); });

// A step reads up to 2.5 GB of weights, which lie there twice: one architecture after the other, and only the default one where
// KIZZASI_CASES asks for no long run: drawing the weights of all takes minutes.
TEST(RealTime, StepsOfTheLargestSizeAllocateNothing) {
  if (kEveryAccessIsChecked) GTEST_SKIP() << "twice its memory";
  const std::string usual = BackboneConfig{}.architecture;
  for (const Architecture& architecture : architectures()) {
    if (std::getenv("KIZZASI_CASES") == nullptr && architecture.name != usual) continue;
    ModelConfig config;
    config.backbone = sized(architecture.name, "xlarge").value();
    expect_no_allocations(config, 10, fmt::format("{} xlarge", architecture.name));
  }
}

TEST(RealTime, StepsOfRandomModelsAllocateNothing) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  for (std::uint64_t seed = 0; seed < cases(150); ++seed) {
    Rng rng(seed);
    ModelFile model = random_model(rng, 1 + rng.normal() * rng.normal());
    const std::string text = text_of(model);
    const Series series = random_series(model, 50, 0.1, rng);
    const std::string first = model.schema.channels[model.schema.with_role(Role::kTarget)[0]].name;
    PredictorOptions options;
    options.monitors = {
        {.name = "m", .that = fmt::format("always ({0} > 0 -> eventually[0, 3] mean({0}, 4 [samples]) < 0)", first), .where = "test"}};
    const auto predictor = predictor_of(
        std::move(model),
        {{"range", fmt::format("-1 <= {} <= 1", first)}, {"no", fmt::format("{} <= 0.5", first), seed % 2 == 0 ? "reject" : "hold"}},
        options);
    EXPECT_EQ(allocations_of_steps(predictor, series, 50), 0u) << text;
    // A prefill, a copy of the state back and a reset are as free.
    Session session = Session::prepare(predictor);
    const auto saved = session.snapshot();
    const std::size_t before = allocations_so_far();
    session.prefill(series, 0, series.rows());
    ASSERT_TRUE(session.restore(saved));
    session.reset();
    EXPECT_EQ(allocations_so_far(), before) << text;
  }
}

}  // namespace
}  // namespace kizzasi
