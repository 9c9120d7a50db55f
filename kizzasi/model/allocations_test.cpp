// A step takes no memory from the system: counted by the operators new of this whole test program.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "kizzasi/base/aligned.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/presets.h"

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<std::size_t>(alignment)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace kizzasi {
namespace {

// 10,000 steps of streams: one alone, or where the weights are many eight in company; then blocks, batches and another sampling rate.
void expect_none(const BackboneConfig& config) {
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

  const std::size_t before = allocations.load();
  (*backbone)->reset(states[0]);
  const bool large = config.d_model > 128;
  for (std::size_t i = 0; i < (large ? 10'000 / kRows : 10'000); ++i) {
    if (large) {
      (*backbone)->step(lanes, all, all_out, scratch);
    } else {
      (*backbone)->step({lanes.data(), 1}, one, one_out, scratch);
    }
  }
  lanes[1].dt = 2;
  for (std::size_t i = 0; i < 20; ++i) {
    (*backbone)->step({lanes.data(), 1}, one, one_out, scratch);
    (*backbone)->step(lanes, all, all_out, scratch);
    (*backbone)->run(lanes[1], all, all_out, scratch);
  }
  EXPECT_EQ(allocations.load() - before, 0u);
}

TEST(Allocations, TheCounterCounts) {
  const std::size_t before = allocations.load();
  const std::vector<int> some(3);
  EXPECT_GE(allocations.load() - before, 1u);
}

TEST(Allocations, NoneInTenThousandStepsOfEachBackbone) {
  for (const Architecture& architecture : architectures()) {
    BackboneConfig config;
    config.architecture = std::string(architecture.name);
    expect_none(config);
  }
}

TEST(Allocations, NoneInTheStepsOfEachPreset) {
  for (const std::string_view name : preset_names()) {
    const auto config = preset(name);
    ASSERT_TRUE(config);
    expect_none(config->backbone);
  }
}

}  // namespace
}  // namespace kizzasi
