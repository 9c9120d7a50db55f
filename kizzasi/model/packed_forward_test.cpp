#include "kizzasi/model/packed_forward.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/model/architectures.h"

namespace kizzasi {
namespace {

using autograd::Lengths;
using autograd::Var;

const Lengths kLengths{5, 1, 0, 12, 9};

// A backbone with every gradient of one loss.
struct Model {
  BackboneConfig config;
  NamedTensors weights;
  std::unique_ptr<Backbone> backbone;

  explicit Model(const Architecture& architecture) {
    config.architecture = std::string(architecture.name);
    config.d_model = 16;
    config.head_dim = 4;
    config.d_state = 4;
    config.window = 6;
    config.chunk = 4;
    Rng rng(3);
    weights = architecture.initial_weights(config, rng);
    for (auto& [name, tensor] : weights) {
      for (float& value : tensor.values) value += 0.1f * static_cast<float>(rng.normal());
    }
    auto loaded = architecture.load(config, weights);
    EXPECT_TRUE(loaded) << loaded.error().text();
    backbone = std::move(*loaded);
  }

  WeightVars<double> leaves(autograd::Tape<double>& tape) const {
    WeightVars<double> vars;
    for (const auto& [name, tensor] : weights) {
      const std::vector<double> values(tensor.values.begin(), tensor.values.end());
      vars.add(name, tape.leaf(tensor.shape, std::span<const double>(values)));
    }
    return vars;
  }
};

// Gradients by name, those of the input as "".
using Gradients = std::map<std::string, std::vector<double>>;

void add(Gradients& to, autograd::Tape<double>& tape, const WeightVars<double>& vars) {
  for (const auto& [name, var] : vars.all()) {
    std::vector<double>& sum = to[name];
    const auto g = tape.grad(var);
    sum.resize(g.size());
    for (std::size_t i = 0; i < g.size(); ++i) sum[i] += g[i];
  }
}

void expect_equal(const Gradients& got, const Gradients& truth) {
  ASSERT_EQ(got.size(), truth.size());
  double largest = 0;
  for (const auto& [name, values] : truth) {
    for (const double v : values) largest = std::max(largest, std::abs(v));
  }
  for (const auto& [name, values] : truth) {
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(got.at(name)[i], values[i], 1e-12 * largest) << name << "[" << i << "]";
  }
}

// sum over rows of y . cotangent, whose rows belong to the packed rows.
Var<double> loss(Var<double> y, std::span<const double> cotangent) {
  return autograd::sum(autograd::mul(y, y.tape->constant(y.dims(), cotangent)));
}

TEST(UnequalLengths, MaskedAndPackedBatchesHaveTheValuesAndGradientsOfTheirSequencesAlone) {
  for (const Architecture& architecture : architectures()) {
    SCOPED_TRACE(std::string(architecture.name));
    const Model model(architecture);
    const std::size_t d = 16, rows = autograd::total(kLengths), time = autograd::longest(kLengths);
    Rng rng(5);
    std::vector<double> x(rows * d), cotangent(rows * d);
    for (double& v : x) v = rng.normal();
    for (double& v : cotangent) v = rng.normal();

    std::vector<double> values;  // of each sequence alone, and the sum of its gradients
    Gradients truth;
    for (std::size_t i = 0, at = 0; i < kLengths.size(); at += kLengths[i++] * d) {
      if (kLengths[i] == 0) continue;
      const std::size_t size = kLengths[i] * d;
      autograd::Tape<double> tape;
      const auto vars = model.leaves(tape);
      const Var<double> in = tape.leaf({1, kLengths[i], d}, std::span<const double>(x).subspan(at, size));
      const Var<double> y = model.backbone->forward(vars, in);
      values.insert(values.end(), y.value().begin(), y.value().end());
      tape.backward(loss(y, std::span<const double>(cotangent).subspan(at, size)));
      add(truth, tape, vars);
      const auto g = tape.grad(in);
      truth[""].insert(truth[""].end(), g.begin(), g.end());
    }
    const auto expect_values = [&](Var<double> y) {
      for (std::size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(y.value()[i], values[i], 1e-12) << i;
    };

    {
      autograd::Tape<double> tape;
      const auto vars = model.leaves(tape);
      const Var<double> in = tape.leaf({rows, d}, std::span<const double>(x));
      const Var<double> y = packed_forward(*model.backbone, vars, in, kLengths);
      expect_values(y);
      tape.backward(loss(y, cotangent));
      Gradients got;
      add(got, tape, vars);
      got[""] = {tape.grad(in).begin(), tape.grad(in).end()};
      expect_equal(got, truth);
    }
    {  // Padded by the caller, with NaN.
      std::vector<double> padded(kLengths.size() * time * d, std::numeric_limits<double>::quiet_NaN());
      for (std::size_t i = 0, at = 0; i < kLengths.size(); at += kLengths[i++] * d) {
        std::copy_n(x.begin() + static_cast<std::ptrdiff_t>(at), kLengths[i] * d,
                    padded.begin() + static_cast<std::ptrdiff_t>(i * time * d));
      }
      autograd::Tape<double> tape;
      const auto vars = model.leaves(tape);
      const Var<double> in = tape.leaf({kLengths.size(), time, d}, std::span<const double>(padded));
      const Var<double> y = autograd::pack(model.backbone->forward(vars, autograd::without_padding(in, kLengths)), kLengths);
      expect_values(y);
      tape.backward(loss(y, cotangent));
      Gradients got;
      add(got, tape, vars);
      const auto g = tape.grad(in);
      const auto valid = autograd::mask(kLengths, time);
      for (std::size_t i = 0; i < g.size(); ++i) {
        if (valid[i / d] != 0) {
          got[""].push_back(g[i]);
        } else {
          ASSERT_EQ(g[i], 0);
        }
      }
      expect_equal(got, truth);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace kizzasi
