// A step of a backbone takes no memory from the system.
#include <gtest/gtest.h>

#include "kizzasi/base/aligned.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/presets.h"
#include "tests/allocations/count.h"

namespace kizzasi {
namespace {

// 10,000 steps of one stream; then blocks, batches of lanes and another sampling rate.
void expect_none(const BackboneConfig& config) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  SCOPED_TRACE(config.architecture);
  const auto architecture = find_architecture(config.architecture);
  const auto backbone = (*architecture)->load(config, (*architecture)->initial_weights(config, Rng(1)));
  ASSERT_TRUE(backbone) << backbone.error().text();
  constexpr std::size_t kRows = 8;
  const auto d = static_cast<std::size_t>(config.d_model);
  std::vector<AlignedVector<std::byte>> states(kRows, AlignedVector<std::byte>((*backbone)->layout().bytes()));
  std::vector<Lane> lanes;
  for (auto& state : states) lanes.push_back({state.data(), 1.0f});
  std::vector<float> in(kRows * d, 0.5f), out(kRows * d), scratch((*backbone)->scratch_floats(kRows));
  const kernels::MatrixView one(in.data(), 1, d), all(in.data(), kRows, d);
  const kernels::MatrixSpan one_out(out.data(), 1, d), all_out(out.data(), kRows, d);

  const std::size_t before = allocations_so_far();
  (*backbone)->reset(states[0]);
  const std::size_t steps = !kEveryAccessIsChecked ? 10'000 : config.d_model > 128 ? 100 : 1'000;
  for (std::size_t i = 0; i < steps; ++i) (*backbone)->step({lanes.data(), 1}, one, one_out, scratch);
  lanes[1].dt = 2;
  for (std::size_t i = 0; i < 20; ++i) {
    (*backbone)->step({lanes.data(), 1}, one, one_out, scratch);
    (*backbone)->step(lanes, all, all_out, scratch);
    (*backbone)->run(lanes[1], all, all_out, scratch);
  }
  EXPECT_EQ(allocations_so_far() - before, 0u);
}

TEST(Allocations, TheCounterCounts) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  const std::size_t before = allocations_so_far();
  const std::vector<int> some(3);
  const AlignedVector<float> aligned(3);
  EXPECT_EQ(allocations_so_far() - before, 2u);
}

TEST(Allocations, NoneInTenThousandStepsOfEachBackbone) {
  for (const Architecture& architecture : architectures()) {
    BackboneConfig config;
    config.architecture = std::string(architecture.name);
    expect_none(config);
  }
}

// Each preset a test of its own, so that they run side by side.
class PresetAllocations : public testing::TestWithParam<std::string_view> {};

TEST_P(PresetAllocations, NoneInTenThousandSteps) { expect_none(preset(GetParam())->backbone); }

INSTANTIATE_TEST_SUITE_P(Each, PresetAllocations, testing::ValuesIn(preset_names().begin(), preset_names().end()),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace kizzasi
