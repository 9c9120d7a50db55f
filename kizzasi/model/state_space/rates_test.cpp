// A continuous system sampled at another rate is the same system.
#include <gtest/gtest.h>

#include <cmath>

#include "kizzasi/base/aligned.h"
#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

struct Stream {
  const Backbone& backbone;
  AlignedVector<std::byte> state;
  std::vector<float> scratch, out;
  explicit Stream(const Backbone& b)
      : backbone(b), state(b.layout().bytes()), scratch(b.scratch_floats(1)), out(static_cast<std::size_t>(b.config().d_model)) {
    b.reset(state);
  }
  void step(const std::vector<float>& in, float dt) {
    const Lane lane{state.data(), dt};
    backbone.step({&lane, 1}, MatrixView(in.data(), 1, in.size()), MatrixSpan(out.data(), 1, out.size()), scratch);
  }
  std::span<const float> field(const char* name) const {
    const StateField* at = backbone.layout().find(name);
    return {reinterpret_cast<const float*>(state.data() + at->offset), elements(at->shape)};
  }
};

std::unique_ptr<Backbone> made(const char* architecture, const char* rule) {
  BackboneConfig config;
  config.architecture = architecture;
  config.d_model = 20;
  config.n_layers = 1;
  config.head_dim = 10;
  config.discretization = rule;
  const auto found = find_architecture(architecture);
  auto backbone = (*found)->load(config, (*found)->initial_weights(config, Rng(3)));
  EXPECT_TRUE(backbone) << backbone.error().text();
  return std::move(*backbone);
}

std::vector<float> normal_row(Rng& rng, std::size_t count) {
  std::vector<float> row(count);
  for (float& value : row) value = static_cast<float>(rng.normal());
  return row;
}

// The largest difference of two spans over the largest value of the second.
double apart(std::span<const float> a, std::span<const float> b) {
  double most = 0, largest = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

struct Held {
  const char *architecture, *field;
  std::span<const float> of(const Stream& stream) const { return stream.field(field); }
};
class Rates : public testing::TestWithParam<Held> {};

TEST_P(Rates, OneStepOfTwoIsTwoOfOneAndFourOfAHalfWhereTheInputIsHeld) {
  const auto backbone = made(GetParam().architecture, "zoh");
  Stream coarse(*backbone), plain(*backbone), fine(*backbone);
  Rng rng(4);
  for (int t = 0; t < 60; ++t) {
    const std::vector<float> in = normal_row(rng, 20);
    coarse.step(in, 2);
    for (int i = 0; i < 2; ++i) plain.step(in, 1);
    for (int i = 0; i < 4; ++i) fine.step(in, 0.5f);
    ASSERT_LT(apart(GetParam().of(coarse), GetParam().of(plain)), 5e-5) << t;
    ASSERT_LT(apart(GetParam().of(fine), GetParam().of(plain)), 5e-5) << t;
    ASSERT_LT(apart(fine.out, plain.out), 1e-4) << t;
  }
}

// A rate that changes on the way: frames of two periods, of one and of a half, beside the stream that is stepped by ones.
TEST_P(Rates, ARateMayChangeMidStream) {
  const auto backbone = made(GetParam().architecture, "zoh");
  Stream changing(*backbone), plain(*backbone);
  Rng rng(6);
  for (int t = 0; t < 60; ++t) {
    const std::vector<float> in = normal_row(rng, 20);
    const int steps = 1 << rng.below(3);
    for (int i = 0; i < steps; ++i) changing.step(in, 2.0f / static_cast<float>(steps));
    for (int i = 0; i < 2; ++i) plain.step(in, 1);
    ASSERT_LT(apart(changing.out, plain.out), 1e-4) << t;
    ASSERT_LT(apart(GetParam().of(changing), GetParam().of(plain)), 5e-5) << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Rates,
                         testing::Values(Held{"lru", "layer0.h"}, Held{"s5", "layer0.h"}, Held{"dss", "layer0.ssm"},
                                         Held{"s4d", "layer0.ssm"}),
                         [](const auto& each) { return std::string(each.param.architecture); });

// The bilinear rule is exact to the second order: with steps of a half a quarter of the error, where the input is held over one period.
class BilinearRates : public testing::TestWithParam<Held> {};

TEST_P(BilinearRates, HalfTheStepIsAQuarterOfTheError) {
  const auto backbone = made(GetParam().architecture, "bilinear");
  Rng rng(5);
  const std::vector<float> in = normal_row(rng, 20);
  const auto after = [&](int steps) {
    Stream stream(*backbone);
    for (int t = 0; t < steps; ++t) stream.step(in, 1.0f / static_cast<float>(steps));
    const std::span<const float> reached = GetParam().of(stream);
    return std::vector<float>(reached.begin(), reached.end());
  };
  const std::vector<float> truth = after(64);
  const double ratio = apart(after(4), truth) / apart(after(8), truth);  // of the errors (1/16 - 1/4096) and (1/64 - 1/4096): 4.05
  EXPECT_GT(ratio, 3.2);
  EXPECT_LT(ratio, 4.8);
}

INSTANTIATE_TEST_SUITE_P(Each, BilinearRates, testing::Values(Held{"s4", "layer0.ssm"}, Held{"s4d", "layer0.ssm"}, Held{"s5", "layer0.h"}),
                         [](const auto& each) { return std::string(each.param.architecture); });

// A prepared step size is discretised for once; one that comes unannounced each time; the bits are the same. Of every backbone whose
// recurrence runs in time, steps and runs.
TEST(RateCache, APreparedRateIsComputedOnceToTheSameBits) {
  std::size_t keeping = 0;
  for (const Architecture& architecture : architectures()) {
    if (!architecture.in_time) continue;
    const std::string name(architecture.name);
    const auto prepared = made(name.c_str(), "zoh"), plain = made(name.c_str(), "zoh");
    for (const float dt : {0.5f, 1.0f, 3.0f}) prepared->prepare_rate(dt);
    Stream fast(*prepared), slow(*plain);
    Rng rng(8);
    std::size_t frames = 0;
    for (int t = 0; t < 40; ++t) {
      const float dt = t % 4 == 0 ? 3.0f : t % 4 == 1 ? 1.0f : 0.5f;
      frames += dt != 1.0f ? 1 : 0;
      const std::vector<float> in = normal_row(rng, 20);
      fast.step(in, dt);
      slow.step(in, dt);
      ASSERT_EQ(fast.out, slow.out) << name << " frame " << t;
      ASSERT_EQ(fast.state, slow.state) << name << " frame " << t;
    }
    EXPECT_EQ(prepared->rates_computed(), 0u) << name;
    const bool keeps = plain->rates_computed() > 0;  // Mamba's steps depend on the frame: there is nothing to keep
    keeping += keeps ? 1 : 0;
    if (keeps) {
      EXPECT_EQ(plain->rates_computed(), frames) << name;
    }
    const std::vector<float> in = normal_row(rng, 20);
    fast.step(in, 0.25f);  // never announced
    slow.step(in, 0.25f);
    EXPECT_EQ(fast.out, slow.out) << name;
    EXPECT_EQ(prepared->rates_computed(), keeps ? 1u : 0u) << name;
  }
  EXPECT_GE(keeping, 6u);  // s4d, s4, dss, s5, lru, h3
}

}  // namespace
}  // namespace kizzasi
