// Gates of mLSTM far outside of what training reaches: exponentials of them must neither overflow nor end as what is no number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/model/architectures.h"
#include "kizzasi/model/layer.h"

namespace kizzasi {
namespace {

TEST(Mlstm, GatesHoweverFarShutOrOpenGiveNumbersAndGradients) {
  BackboneConfig config;
  config.d_model = 16;
  config.head_dim = 8;
  for (const char* name : {"xlstm", "mlstm", "slstm"}) {
    config.architecture = name;
    const auto architecture = find_architecture(name);
    for (const float enter : {-1000.0f, -90.0f, 0.0f, 90.0f, 1000.0f}) {
      for (const float keep : {-1000.0f, -90.0f, 1000.0f}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(enter) + " " + std::to_string(keep));
        NamedTensors weights = (*architecture)->initial_weights(config, Rng(3));
        for (auto& [weight, tensor] : weights) {
          std::vector<float>& v = tensor.values;
          const std::size_t d = v.size() / 4;
          if (weight.ends_with("_bias_")) {  // slots i, f, z, o
            std::fill_n(v.begin(), d, enter);
            std::fill_n(v.begin() + static_cast<std::ptrdiff_t>(d), d, keep);
          }
          if (weight.find("igate") != weight.npos && weight.ends_with(".bias")) std::fill(v.begin(), v.end(), enter);
          if (weight.find("fgate") != weight.npos && weight.ends_with(".bias")) std::fill(v.begin(), v.end(), keep);
        }
        const auto backbone = (*architecture)->load(config, weights);
        ASSERT_TRUE(backbone) << backbone.error().text();
        constexpr std::size_t kFrames = 30;
        Rng rng(4);
        std::vector<float> in(kFrames * 16), out(in.size()), scratch((*backbone)->scratch_floats(kFrames));
        for (float& v : in) v = static_cast<float>(rng.normal());
        AlignedVector<std::byte> state((*backbone)->layout().bytes());
        (*backbone)->reset(state);
        (*backbone)->run({state.data(), 1.0f}, {in.data(), kFrames, 16}, {out.data(), kFrames, 16}, scratch);

        autograd::Tape<float> tape;
        WeightVars<float> vars;
        for (const auto& [weight, tensor] : weights) vars.add(weight, tape.leaf(tensor.shape, std::span<const float>(tensor.values)));
        const auto y = (*backbone)->forward(vars, tape.constant({1, kFrames, 16}, std::span<const float>(in)));
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(y.value()[i], out[i], 2e-3) << i;  // also that neither is no number
        const std::vector<float> ones(out.size(), 1.0f);
        tape.backward(y, std::span<const float>(ones));
        for (const auto& [weight, var] : vars.all()) {
          for (const float g : tape.grad(var)) ASSERT_TRUE(std::isfinite(g)) << weight;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
