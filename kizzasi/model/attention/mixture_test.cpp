// The mixture of experts of the published Mixtral by itself: whom the router chooses, with which weights, and what comes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "kizzasi/model/attention/feed_forward.h"
#include "kizzasi/model/attention/published.h"
#include "kizzasi/tensor/files.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

using kernels::MatrixSpan;
using kernels::MatrixView;

constexpr const char* kPrefix = "layers.0.ffn.";

struct PublishedCase {
  BackboneConfig config;
  NamedTensors weights;
  SafetensorsFile io;
  PublishedCase() {
    const std::string stem = KIZZASI_SOURCE_DIR "/tests/golden/backbones/mixtral/mixtral_a";
    const NamedTensors published = read_safetensors(stem + ".safetensors")->tensors;
    io = *read_safetensors(stem + ".io.safetensors");
    const auto model = published_llama(published, *parse_python_json(*read_file(stem + ".json"), stem)->find("config"), stem);
    EXPECT_TRUE(model) << model.error().text();
    config = model->config;
    weights = taken_over(published, model->ours64);
  }
  const std::vector<float>& of(const char* name) const { return io.tensors.at(name).values; }

  std::vector<float> outputs(const NamedTensors& of_weights) const {
    StateLayout layout;
    const auto layer = kMixtureOfExperts.make(config, {of_weights, kPrefix}, "layer0", layout);
    const auto d = static_cast<std::size_t>(config.d_model);
    const std::vector<float>& in = of("moe0.input");
    std::vector<float> out(in.size()), scratch(layer->scratch_floats(in.size() / d)), state(1);
    const Lane lane{reinterpret_cast<std::byte*>(state.data()), 1.0f};
    layer->advance({&lane, 1}, MatrixView(in.data(), in.size() / d, d), MatrixSpan(out.data(), in.size() / d, d), scratch);
    return out;
  }
};

TEST(MixtureOfExperts, GivesThePublishedOutputs) {
  const PublishedCase published;
  const std::vector<float>&truth = published.of("moe0.output"), ours = published.outputs(published.weights);
  ASSERT_EQ(ours.size(), truth.size());
  double largest = 0;
  for (const float v : truth) largest = std::max(largest, std::abs(static_cast<double>(v)));
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(ours[i], truth[i], 2.6e-6 * largest) << i;
}

TEST(MixtureOfExperts, ChoosesWhomThePublishedRouterChoosesWithItsWeights) {
  const PublishedCase published;
  // Each expert speaks into channels of its own, so what is heard there is its share of what it says.
  const auto experts = static_cast<std::size_t>(published.config.n_experts), d = static_cast<std::size_t>(published.config.d_model);
  const std::size_t own = d / experts, inner = static_cast<std::size_t>(published.config.d_ffn), used = 2;
  NamedTensors weights = published.weights;
  const auto name = [](std::size_t e, const char* part) {
    return std::string(kPrefix) + "experts." + std::to_string(e) + "." + part + ".weight";
  };
  for (std::size_t e = 0; e < experts; ++e) {
    std::vector<float>& down = weights.at(name(e, "w2")).values;
    for (std::size_t o = 0; o < d; ++o) {
      if (o / own != e) std::fill_n(down.begin() + static_cast<std::ptrdiff_t>(o * inner), inner, 0.0f);
    }
  }
  const std::vector<float> heard = published.outputs(weights), &in = published.of("moe0.input"),
                           &router = published.of("moe0.router_logits");
  const std::vector<float>& gate = weights.at(std::string(kPrefix) + "gate.weight").values;
  const auto times = [&](const std::vector<float>& w, std::size_t row, const double* x, std::size_t n) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += static_cast<double>(w[row * n + i]) * x[i];
    return sum;
  };
  for (std::size_t row = 0; row < in.size() / d; ++row) {
    const std::vector<double> x(in.begin() + static_cast<std::ptrdiff_t>(row * d), in.begin() + static_cast<std::ptrdiff_t>((row + 1) * d));
    std::vector<double> share(experts);
    for (std::size_t e = 0; e < experts; ++e) {
      EXPECT_NEAR(times(gate, e, x.data(), d), router[row * experts + e], 1e-5);
      std::vector<double> inside(inner);
      for (std::size_t i = 0; i < inner; ++i) {
        const double raw = times(weights.at(name(e, "w1")).values, i, x.data(), d);
        inside[i] = raw / (1 + std::exp(-raw)) * times(weights.at(name(e, "w3")).values, i, x.data(), d);
      }
      double both = 0, alone = 0;
      for (std::size_t o = e * own; o < (e + 1) * own; ++o) {
        const double says = times(weights.at(name(e, "w2")).values, o, inside.data(), inner);
        both += says * static_cast<double>(heard[row * d + o]);
        alone += says * says;
      }
      share[e] = both / alone;
    }
    std::set<std::size_t> chosen;
    for (std::size_t i = 0; i < used; ++i) {
      const auto e = static_cast<std::size_t>(published.io.wide.at("moe0.top2_index")[row * used + i]);
      chosen.insert(e);
      EXPECT_NEAR(share[e], published.of("moe0.top2_weight")[row * used + i], 1e-5) << row;
    }
    for (std::size_t e = 0; e < experts; ++e) {
      EXPECT_TRUE(share[e] == 0 || chosen.count(e) != 0) << row;
    }
  }
}

// All three forms as plain double loops over their names, in steps and in training.
TEST(MixtureOfExperts, IsItsSumInEveryForm) {
  struct Form {
    const LayerKind& kind;
    const char *router, *gate, *down, *up;
    bool sums_to_one, shared;
  };
  const Form forms[] = {{kMixtureOfExperts, "gate", "w1", "w2", "w3", true, false},
                        {kJambaExperts, "router", "gate_proj", "down_proj", "up_proj", false, false},
                        {kQwenExperts, "gate", "gate_proj", "down_proj", "up_proj", true, true}};
  BackboneConfig config;
  config.d_model = 7;
  config.n_experts = 5;
  config.experts_used = 2;
  config.d_expert = 9;
  config.d_shared_expert = 4;
  for (const Form& form : forms) {
    Rng rng(8);
    NamedTensors weights;
    autograd::Tape<double> tape;
    WeightVars<double> vars;
    for (const auto& [name, shape] : form.kind.shapes(config)) {
      Tensor tensor(shape);
      for (float& v : tensor.values) v = static_cast<float>(0.7 * rng.normal());
      const std::vector<double> values(tensor.values.begin(), tensor.values.end());
      vars.add(name, tape.constant(shape, std::span<const double>(values)));
      weights[name] = std::move(tensor);
    }
    constexpr std::size_t kRows = 11, kD = 7;
    std::vector<float> in(kRows * kD), out(in.size());
    for (float& v : in) v = static_cast<float>(rng.normal());
    StateLayout layout;
    const auto layer = form.kind.make(config, {weights, ""}, "layer0", layout);
    std::vector<float> scratch(layer->scratch_floats(kRows)), state(1);
    const Lane lane{reinterpret_cast<std::byte*>(state.data()), 1.0f};
    layer->advance({&lane, 1}, MatrixView(in.data(), kRows, kD), MatrixSpan(out.data(), kRows, kD), scratch);
    const std::vector<double> wide(in.begin(), in.end());
    const auto y = form.kind.forward64(config, vars, "", tape.constant({1, kRows, kD}, std::span<const double>(wide)));

    const auto times = [&](const std::string& name, const std::vector<double>& x) {
      const Tensor& w = weights.at(name + ".weight");
      std::vector<double> product(w.shape[0]);
      for (std::size_t i = 0; i < w.values.size(); ++i) product[i / x.size()] += static_cast<double>(w.values[i]) * x[i % x.size()];
      return product;
    };
    const auto expert = [&](const std::string& at, const std::vector<double>& x) {
      const std::vector<double> gate = times(at + form.gate, x);
      std::vector<double> up = times(at + form.up, x);
      for (std::size_t i = 0; i < up.size(); ++i) up[i] *= gate[i] / (1 + std::exp(-gate[i]));
      return times(at + form.down, up);
    };
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::vector<double> x(wide.begin() + static_cast<std::ptrdiff_t>(r * kD),
                                  wide.begin() + static_cast<std::ptrdiff_t>((r + 1) * kD));
      std::vector<double> share = times(form.router, x), sum(kD);
      double all = 0, kept = 0;
      for (double& v : share) all += v = std::exp(v);
      std::vector<double> sorted = share;
      std::sort(sorted.rbegin(), sorted.rend());
      for (double& v : share) kept += v = v >= sorted[1] ? v / all : 0;
      for (std::size_t e = 0; e < share.size(); ++e) {
        const std::vector<double> says = expert("experts." + std::to_string(e) + ".", x);
        for (std::size_t i = 0; i < kD; ++i) sum[i] += says[i] * share[e] / (form.sums_to_one ? kept : 1);
      }
      if (form.shared) {
        const std::vector<double> says = expert("shared_expert.", x);
        for (std::size_t i = 0; i < kD; ++i) sum[i] += says[i] / (1 + std::exp(-times("shared_expert_gate", x)[0]));
      }
      for (std::size_t i = 0; i < kD; ++i) {
        EXPECT_NEAR(out[r * kD + i], sum[i], 1e-5) << form.router << r;
        EXPECT_NEAR(y.value()[r * kD + i], sum[i], 1e-12) << form.router << r;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi
