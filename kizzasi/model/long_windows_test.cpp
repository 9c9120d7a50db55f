// Long windows of training, where linear, time-invariant layers become convolutions: what is trained is what runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/causal_convolution.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

TEST(LongWindows, ForwardEqualsRun) {
  for (const std::string name : {"s4d", "dss", "s4"}) {
    for (const std::size_t time : {256u, 1000u, 4096u}) {
      BackboneConfig c;
      c.architecture = name;
      c.d_model = 12;
      c.d_state = 64;
      c.n_layers = 2;
      const auto architecture = *find_architecture(name);
      const NamedTensors weights = architecture->initial_weights(c, Rng(1));
      const auto backbone = architecture->load(c, weights);
      ASSERT_TRUE(backbone) << backbone.error().text();
      const std::size_t batch = 4, d = 12, row = time * d;
      const double state = name == "s4" ? autograd::kDplrState : autograd::kDiagonalState;
      ASSERT_TRUE(autograd::convolution_pays(batch, time, 32, state)) << "or this tests the scan";
      Rng rng(2);
      std::vector<float> in(batch * row);
      for (float& v : in) v = static_cast<float>(rng.normal());
      autograd::Tape<float> tape;
      WeightVars<float> vars;
      for (const auto& [key, tensor] : weights) vars.add(key, tape.constant(tensor.shape, std::span<const float>(tensor.values)));
      const auto forward = (*backbone)->forward(vars, tape.constant({batch, time, d}, std::span<const float>(in)));
      std::vector<float> out(row), scratch((*backbone)->scratch_floats(time));
      for (std::size_t b = 0; b < batch; ++b) {
        AlignedVector<std::byte> at((*backbone)->layout().bytes());
        (*backbone)->reset(at);
        (*backbone)->run({at.data(), 1.0f}, {in.data() + b * row, time, d}, {out.data(), time, d}, scratch);
        float largest = 0, apart = 0;
        for (std::size_t i = 0; i < row; ++i) {
          largest = std::max(largest, std::abs(out[i]));
          apart = std::max(apart, std::abs(out[i] - forward.value()[b * row + i]));
        }
        EXPECT_LE(apart, 1e-5f * largest) << name << " " << time;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
