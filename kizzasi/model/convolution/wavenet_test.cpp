#include "kizzasi/model/convolution/wavenet.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kizzasi/base/aligned.h"
#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

using Rows = std::vector<std::vector<double>>;

struct Model {
  BackboneConfig config;
  NamedTensors weights;
  std::unique_ptr<Backbone> backbone;

  Model(std::int64_t blocks, std::int64_t taps, std::int64_t inner) {
    config.architecture = "wavenet";
    config.d_model = 6;
    config.n_layers = blocks;
    config.d_conv = taps;
    config.d_inner = inner;
    const Architecture& architecture = **find_architecture("wavenet");
    Rng rng(1);
    weights = architecture.initial_weights(config, rng);
    for (auto& [name, tensor] : weights) {
      for (float& value : tensor.values) value += 0.2f * static_cast<float>(rng.normal());
    }
    backbone = std::move(*architecture.load(config, weights));
  }

  Rows run(const Rows& x) const {
    AlignedVector<std::byte> state(backbone->layout().bytes());
    backbone->reset(state);
    std::vector<float> rows, out(x.size() * 6), scratch(backbone->scratch_floats(x.size()));
    for (const auto& row : x) rows.insert(rows.end(), row.begin(), row.end());
    backbone->run({state.data(), 1}, {rows.data(), x.size(), 6}, {out.data(), x.size(), 6}, scratch);
    Rows y;
    for (std::size_t t = 0; t < x.size(); ++t)
      y.emplace_back(out.begin() + static_cast<std::ptrdiff_t>(t * 6), out.begin() + static_cast<std::ptrdiff_t>(t * 6 + 6));
    return y;
  }

  std::vector<double> normed(const std::string& gain, const std::vector<double>& x) const {
    double square = 0;
    for (const double v : x) square += v * v / static_cast<double>(x.size());
    std::vector<double> y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(x[i] / std::sqrt(square + config.norm_eps) * weights.at(gain).values[i]);
    return y;
  }
  std::vector<double> times(const std::string& matrix, const std::vector<double>& x) const {
    const Tensor& w = weights.at(matrix);
    std::vector<double> y(w.shape[0]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      for (std::size_t j = 0; j < x.size(); ++j) y[i] += w.values[i * x.size() + j] * x[j];
    }
    return y;
  }

  // As the paper has it, frame by frame in double.
  Rows defined(Rows x) const {
    Rows skip(x.size(), std::vector<double>(6));
    for (std::int64_t i = 0; i < config.n_layers; ++i) {
      const std::string block = "layers." + std::to_string(i) + ".", mixer = block + "mixer.";
      Rows seen;
      for (const auto& row : x) seen.push_back(normed(block + "norm.weight", row));
      for (std::size_t t = 0; t < x.size(); ++t) {
        std::vector<double> window;
        for (std::size_t lag = static_cast<std::size_t>(config.d_conv); lag-- > 0;) {
          const std::size_t back = lag << i;
          const std::vector<double> row = back <= t ? seen[t - back] : std::vector<double>(6);
          window.insert(window.end(), row.begin(), row.end());
        }
        const std::vector<double> both = times(mixer + "conv.weight", window);
        const std::vector<float>& bias = weights.at(mixer + "conv.bias").values;
        std::vector<double> z;
        for (std::size_t e = 0, inner = both.size() / 2; e < inner; ++e) {
          z.push_back(std::tanh(both[e] + bias[e]) / (1 + std::exp(-both[inner + e] - bias[inner + e])));
        }
        const std::vector<double> part = times(mixer + "skip_out.weight", z);
        for (std::size_t c = 0; c < 6; ++c) skip[t][c] += part[c];
        std::vector<double> positive = skip[t];
        for (double& v : positive) v = std::max(v, 0.0);
        const bool last = i + 1 == config.n_layers;
        const std::vector<double> term = last ? times(mixer + "mix.weight", positive) : times(mixer + "residual_out.weight", z);
        for (std::size_t c = 0; c < 6; ++c) x[t][c] += term[c];
      }
    }
    for (auto& row : x) row = normed("norm_f.weight", row);
    return x;
  }
};

Rows normal_rows(std::size_t count, Rng& rng) {
  Rows x(count, std::vector<double>(6));
  for (auto& row : x) {
    for (double& v : row) v = static_cast<double>(static_cast<float>(rng.normal()));
  }
  return x;
}

TEST(WaveNet, IsItsDefinition) {
  Rng rng(2);
  for (const std::int64_t blocks : {1, 2, 4}) {
    for (const std::int64_t taps : {1, 2, 3}) {
      for (const std::int64_t inner : {0, 5}) {
        const Model model(blocks, taps, inner);
        const Rows x = normal_rows(40, rng), y = model.run(x), truth = model.defined(x);
        for (std::size_t t = 0; t < x.size(); ++t) {
          for (std::size_t c = 0; c < 6; ++c) ASSERT_NEAR(y[t][c], truth[t][c], 2e-5) << blocks << " blocks, frame " << t;
        }
      }
    }
  }
}

// n blocks of K taps see 1 + (K - 1)(2^n - 1) frames, the present one among them, and not one more; taps begin anew after ten blocks.
TEST(WaveNet, SeesAsFarAsItsTapsReach) {
  Rng rng(3);
  const Model model(4, 2, 0);
  const Rows x = normal_rows(60, rng), y = model.run(x);
  Rows moved = x;
  moved[20][3] += 1;
  const Rows other = model.run(moved);
  for (std::size_t t = 0; t < x.size(); ++t) EXPECT_EQ(other[t] != y[t], t >= 20 && t <= 20 + 15) << t;
  const Model deep(12, 2, 0);
  EXPECT_EQ(deep.backbone->layout().find("layer9.history")->shape, (Shape{512, 6}));
  EXPECT_EQ(deep.backbone->layout().find("layer10.history")->shape, (Shape{1, 6}));
}

}  // namespace
}  // namespace kizzasi
