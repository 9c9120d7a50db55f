// A step allocates nothing, whatever the backbone, its size, the head and the constraints.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/engine/allocation_count_test.h"
#include "kizzasi/engine/random_model_test.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/presets.h"

namespace kizzasi {
namespace {

std::size_t allocations_of_steps(const std::shared_ptr<const Predictor>& predictor, const Series& series, std::size_t steps) {
  Session session = Session::prepare(predictor);
  const std::size_t before = allocations_so_far();
  for (std::size_t i = 0; i < steps; ++i) session.step({series.time_ns(i), series.row(i % series.rows())});
  return allocations_so_far() - before;
}

TEST(RealTime, TheCountSeesAllocations) {
  const std::size_t before = allocations_so_far();
  const std::vector<double> some(10);
  EXPECT_EQ(allocations_so_far(), before + 1);
}

void expect_no_allocations(ModelConfig config, std::size_t steps, std::string_view what) {
  ModelFile model;
  model.config = std::move(config);
  model.schema = {{{"a", "", Role::kTarget}, {"b", "", Role::kTarget}, {"c", "", Role::kObserved}}, 1'000'000'000, ""};
  model.normalizer = Normalizer({0, 0, 0}, {1, 1, 1});
  model.weights = SignalModel::initial_weights(model.config, channel_counts(model.schema), Rng(1));
  Rng rng(2);
  const Series series = random_series(model, 100, 0.1, rng);
  const auto predictor = predictor_of(std::move(model), {{"range", "-1 <= a <= 1"}, {"slew", "abs(rate(b)) <= 0.5 [1/s]"}});
  EXPECT_EQ(allocations_of_steps(predictor, series, steps), 0u) << what;
}

TEST(RealTime, TenThousandStepsOfEveryBackboneAllocateNothing) {
  for (const Architecture& architecture : architectures()) {
    for (const auto& [size, steps] : {std::pair{"tiny", 10'000}, {"small", 200}, {"base", 10}}) {
      ModelConfig config;
      config.backbone = sized(architecture.name, size).value();
      config.season = 24;
      config.seasons = 2;
      expect_no_allocations(config, static_cast<std::size_t>(steps), fmt::format("{} {}", architecture.name, size));
    }
  }
}

TEST(RealTime, TenThousandStepsOfThePresetsAllocateNothing) {
  for (const std::string_view name : preset_names()) {
    const ModelConfig config = preset(name).value();
    const bool small = config.backbone.d_model <= 128;
    expect_no_allocations(config, small ? 10'000 : 500, name);
  }
}

TEST(RealTime, StepsOfRandomModelsAllocateNothing) {
  for (std::uint64_t seed = 0; seed < cases(150); ++seed) {
    Rng rng(seed);
    ModelFile model = random_model(rng, 1 + rng.normal() * rng.normal());
    const std::string text = text_of(model);
    const Series series = random_series(model, 50, 0.1, rng);
    const std::string first = model.schema.channels[model.schema.with_role(Role::kTarget)[0]].name;
    const auto predictor = predictor_of(std::move(model), {{"range", fmt::format("-1 <= {} <= 1", first)},
                                                           {"no", fmt::format("{} <= 0.5", first), seed % 2 == 0 ? "reject" : "hold"}});
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
