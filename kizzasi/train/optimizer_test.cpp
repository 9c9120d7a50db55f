#include "kizzasi/train/optimizer.h"

#include <gtest/gtest.h>

#include "kizzasi/base/rng.h"
#include "kizzasi/train/golden_test.h"

namespace kizzasi {
namespace {

OptimizerConfig named(const std::string& name, double rate, double decay = 0) {
  OptimizerConfig config;
  config.optimizer = name;
  config.learning_rate = rate;
  config.weight_decay = decay;
  config.momentum = 0;
  config.decay_vectors = true;
  return config;
}

// The runs of the reference file.
std::map<std::string, OptimizerConfig> published_runs() {
  std::map<std::string, OptimizerConfig> runs;
  runs["sgd"] = named("sgd", 0.1);
  runs["sgd_weight_decay"] = named("sgd", 0.1, 0.05);
  runs["sgd_momentum"] = named("sgd", 0.05);
  runs["sgd_momentum"].momentum = 0.9;
  runs["sgd_dampening"] = runs["sgd_momentum"];
  runs["sgd_dampening"].dampening = 0.5;
  runs["sgd_nesterov"] = named("sgd", 0.05, 0.01);
  runs["sgd_nesterov"].momentum = 0.9;
  runs["sgd_nesterov"].nesterov = true;
  runs["adam"] = named("adam", 0.05);
  runs["adam_l2"] = named("adam", 0.05, 0.1);
  runs["adam_l2"].beta1 = 0.8;
  runs["adam_l2"].beta2 = 0.95;
  runs["adam_l2"].epsilon = 1e-6;
  runs["adam_amsgrad"] = named("adam", 0.05);
  runs["adam_amsgrad"].amsgrad = true;
  runs["adamw"] = named("adamw", 0.05, 0.1);
  runs["adamw_eps"] = named("adamw", 0.05, 0.01);
  runs["adamw_eps"].epsilon = 1e-3;
  runs["adamw_eps"].beta2 = 0.99;
  runs["nadam"] = named("nadam", 0.05);
  runs["radam"] = named("radam", 0.05);
  runs["adamax"] = named("adamax", 0.05);
  runs["adadelta"] = named("adadelta", 1);
  runs["rmsprop"] = named("rmsprop", 0.02);
  runs["rmsprop_centered"] = named("rmsprop", 0.02);
  runs["rmsprop_centered"].alpha = 0.9;
  runs["rmsprop_centered"].centered = true;
  runs["rmsprop_centered"].momentum = 0.8;
  runs["adagrad"] = named("adagrad", 0.1);
  runs["adagrad_decay"] = named("adagrad", 0.1, 0.02);
  runs["adagrad_decay"].rate_decay = 0.05;
  runs["adagrad_decay"].initial_accumulator = 0.1;
  runs["lion"] = named("lion", 0.02, 0.1);
  runs["lion"].beta2 = 0.99;
  runs["lamb"] = named("lamb", 0.02, 0.05);
  runs["lamb_torch_optimizer"] = runs["lamb"];
  runs["lamb_torch_optimizer"].bias_correction = false;
  runs["adafactor_torch"] = named("adafactor", 0.05);
  runs["adafactor_hf"] = runs["adafactor_torch"];
  runs["adafactor_hf"].rate_form = "plain";
  runs["adafactor_hf"].scale_by_weights = false;
  runs["adafactor_hf_relative"] = runs["adafactor_torch"];
  runs["adafactor_hf_relative"].rate_form = "relative";
  runs["muon"] = named("muon", 0.05, 0.1);
  runs["muon"].momentum = 0.9;
  runs["muon"].nesterov = true;
  runs["muon_match_rms"] = named("muon", 0.05);
  runs["muon_match_rms"].momentum = 0.9;
  runs["muon_match_rms"].match_adamw = true;
  return runs;
}

std::vector<float> narrow(std::span<const double> values) { return {values.begin(), values.end()}; }

TEST(Optimizer, FollowsThePublishedRuns) {
  const Golden golden("optimizers");
  std::size_t followed = 0;
  for (const auto& [run, config] : published_runs()) {
    for (const std::string kind : {"vector", "matrix"}) {
      if (!golden.has(run + "." + kind)) continue;
      const auto &gradients = golden.values(kind + ".gradients"), &path = golden.values(run + "." + kind);
      NamedTensors weights{{"w", Tensor(golden.shape(kind + ".start"), narrow(golden.values(kind + ".start")))}};
      auto optimizer = Optimizer::of(config, ParameterLayout(weights));
      ASSERT_TRUE(optimizer) << optimizer.error().text();
      const std::size_t size = weights["w"].values.size();
      for (std::size_t step = 0; step < 12; ++step) {
        const auto gradient = narrow(std::span(gradients).subspan(step * size, size));
        optimizer->step(weights, gradient, config.learning_rate);
        const std::vector<double> expected(path.begin() + static_cast<std::ptrdiff_t>(step * size),
                                           path.begin() + static_cast<std::ptrdiff_t>((step + 1) * size));
        expect_near(std::span<const float>(weights["w"].values), expected, 1e-6, run + "." + kind);
        // Published in bfloat16, which alone moves the reference by 1.2e-3 of its largest value.
        const std::string rough = run + "_bfloat16." + kind;
        for (std::size_t i = 0; golden.has(rough) && i < size; ++i) {
          EXPECT_NEAR(weights["w"].values[i], golden.values(rough)[step * size + i], 5e-3) << rough << " step " << step;
        }
      }
      ++followed;
    }
  }
  EXPECT_EQ(followed, 33u);
}

// Weights of several shapes and names, and gradients for them.
NamedTensors some_weights(Rng& rng) {
  NamedTensors weights{{"a.weight", Tensor({5, 3})}, {"a.bias", Tensor({5})}, {"b.A_log", Tensor({4, 2})}, {"c.weight", Tensor({7, 1})}};
  for (auto& [name, tensor] : weights) {
    for (float& v : tensor.values) v = static_cast<float>(rng.normal());
  }
  return weights;
}

std::vector<float> some_gradient(std::size_t count, Rng& rng) {
  std::vector<float> gradient(count);
  for (float& v : gradient) v = static_cast<float>(rng.normal());
  return gradient;
}

std::vector<OptimizerConfig> every_optimizer() {
  std::vector<OptimizerConfig> all;
  for (const auto& [run, config] : published_runs()) all.push_back(config);
  return all;
}

TEST(Optimizer, ResumedIsUninterrupted) {
  for (const OptimizerConfig& config : every_optimizer()) {
    Rng rng(5);
    NamedTensors weights = some_weights(rng);
    const ParameterLayout layout(weights);
    auto whole = *Optimizer::of(config, layout);
    auto part = *Optimizer::of(config, layout);
    NamedTensors stopped;
    for (int step = 0; step < 20; ++step) {
      if (step == 9) {
        ASSERT_TRUE(part.restore(whole.state_tensors()));
        stopped = weights;
      }
      const auto gradient = some_gradient(layout.total(), rng);
      whole.step(weights, gradient, 0.01 * (1 + step));
      if (step >= 9) part.step(stopped, gradient, 0.01 * (1 + step));
    }
    EXPECT_EQ(stopped, weights) << config.optimizer;
    EXPECT_EQ(part.state_tensors(), whole.state_tensors());
    EXPECT_EQ(part.steps(), 20);
  }
}

TEST(Optimizer, StateOfAnotherModelIsRefusedAndChangesNothing) {
  Rng rng(6);
  NamedTensors weights = some_weights(rng), other = weights;
  other["c.weight"] = Tensor({8, 1});
  auto optimizer = *Optimizer::of({}, ParameterLayout(weights));
  optimizer.step(weights, some_gradient(ParameterLayout(weights).total(), rng), 0.1);
  const NamedTensors before = optimizer.state_tensors();
  const auto refused = optimizer.restore(Optimizer::of({}, ParameterLayout(other))->state_tensors());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().fault, Fault::kBroken);
  EXPECT_FALSE(optimizer.restore({}));
  EXPECT_EQ(optimizer.state_tensors(), before);
}

TEST(Optimizer, WeightDecaySparesVectorsAndNamedTensors) {
  // Without gradients only the decay moves anything.
  Rng rng(7);
  const NamedTensors start = some_weights(rng);
  for (const bool vectors : {false, true}) {
    OptimizerConfig config;
    config.weight_decay = 0.5;
    config.decay_vectors = vectors;
    NamedTensors weights = start;
    auto optimizer = *Optimizer::of(config, ParameterLayout(weights));
    optimizer.step(weights, std::vector<float>(ParameterLayout(weights).total(), 0.0f), 0.1);
    EXPECT_NE(weights["a.weight"], start.at("a.weight"));
    EXPECT_NE(weights["c.weight"], start.at("c.weight"));
    EXPECT_EQ(weights["b.A_log"], start.at("b.A_log"));
    EXPECT_EQ(weights["a.bias"] == start.at("a.bias"), !vectors);
  }
}

TEST(Optimizer, LeavesTensorsOutsideTheLayoutAlone) {
  Rng rng(8);
  const NamedTensors start = some_weights(rng);
  NamedTensors weights = start;
  const ParameterLayout layout(weights, [](std::string_view name) { return name.starts_with("a."); });
  EXPECT_EQ(layout.total(), 20u);
  auto optimizer = *Optimizer::of({}, layout);
  optimizer.step(weights, some_gradient(20, rng), 0.1);
  EXPECT_NE(weights["a.bias"], start.at("a.bias"));
  EXPECT_EQ(weights["b.A_log"], start.at("b.A_log"));
  EXPECT_EQ(weights["c.weight"], start.at("c.weight"));
}

TEST(Optimizer, AScheduledMomentumStandsForTheConfiguredOne) {
  Rng rng(9);
  NamedTensors a = some_weights(rng), b = a;
  const ParameterLayout layout(a);
  OptimizerConfig low, high;
  low.beta1 = 0.7;
  high.beta1 = 0.9;
  auto first = *Optimizer::of(low, layout);
  auto second = *Optimizer::of(high, layout);
  for (int step = 0; step < 5; ++step) {
    const auto gradient = some_gradient(layout.total(), rng);
    first.step(a, gradient, 0.1);
    second.step(b, gradient, 0.1, 0.7);
  }
  EXPECT_EQ(a, b);
}

TEST(Optimizer, MuonTakesOrthogonalStepsOfMatricesAndAdamsOfTheRest) {
  Rng rng(10);
  const NamedTensors start = some_weights(rng);
  const ParameterLayout layout(start);
  OptimizerConfig config = named("muon", 0.1), adamw = named("adamw", 0.1);
  for (const Shape& shape : {Shape{5, 3}, Shape{3, 5}, Shape{2, 4, 4}}) {
    // All singular values of a step lie where the five iterations of the quintic put those of [0.1, 1]: in (0.6, 1.3).
    NamedTensors weights{{"w", Tensor(shape)}};
    auto muon = *Optimizer::of(config, ParameterLayout(weights));
    muon.step(weights, some_gradient(weights["w"].values.size(), rng), 1);
    const std::size_t rows = shape[shape.size() - 2], cols = shape.back(), n = std::min(rows, cols);
    const double ratio = std::sqrt(std::max(1.0, static_cast<double>(rows) / static_cast<double>(cols)));
    for (std::size_t k = 0; k < weights["w"].values.size(); k += rows * cols) {
      double squares = 0;  // of the singular values
      for (std::size_t i = 0; i < rows * cols; ++i) squares += std::pow(static_cast<double>(weights["w"].values[k + i]) / ratio, 2);
      EXPECT_GT(squares, 0.36 * static_cast<double>(n));
      EXPECT_LT(squares, 1.69 * static_cast<double>(n));
    }
  }
  NamedTensors by_muon = start, by_adam = start;
  auto muon = *Optimizer::of(config, layout);
  auto adam = *Optimizer::of(adamw, layout);
  for (int step = 0; step < 5; ++step) {
    const auto gradient = some_gradient(layout.total(), rng);
    muon.step(by_muon, gradient, 0.1);
    adam.step(by_adam, gradient, 0.1);
  }
  EXPECT_EQ(by_muon["a.bias"], by_adam["a.bias"]);
  EXPECT_EQ(by_muon["c.weight"], by_adam["c.weight"]);  // one column
  EXPECT_NE(by_muon["a.weight"], by_adam["a.weight"]);
}

TEST(Optimizer, ZeroGradientsMoveNothing) {
  for (OptimizerConfig config : every_optimizer()) {
    config.weight_decay = 0;
    Rng rng(11);
    const NamedTensors start = some_weights(rng);
    NamedTensors weights = start;
    auto optimizer = *Optimizer::of(config, ParameterLayout(start));
    for (int step = 0; step < 3; ++step) optimizer.step(weights, std::vector<float>(ParameterLayout(start).total(), 0.0f), 0.1);
    EXPECT_EQ(weights, start) << config.optimizer;
  }
}

TEST(OptimizerConfig, RefusesWhatDoesNotGoTogether) {
  OptimizerConfig config;
  config.optimizer = "adamm";
  EXPECT_FALSE(Optimizer::of(config, {}));
  config.optimizer = "sgd";
  config.nesterov = true;
  config.momentum = 0;
  EXPECT_FALSE(Optimizer::of(config, {}));
  config.momentum = 0.9;
  EXPECT_TRUE(Optimizer::of(config, {}));
  config.dampening = 0.1;
  EXPECT_FALSE(Optimizer::of(config, {}));
}

TEST(Optimizer, ANameThatSparesNothingIsAMistake) {
  NamedTensors weights;
  weights["a.bias"].shape = {2};
  weights["a.bias"].values = {1, 2};
  weights["b.weight"] = weights["a.bias"];
  OptimizerConfig config;
  config.no_decay = {"A_log", "bias"};  // A_log is among the usual ones, whether or not a model has it
  EXPECT_TRUE(Optimizer::of(config, ParameterLayout(weights)));
  config.no_decay = {"wieght"};
  EXPECT_EQ(Optimizer::of(config, ParameterLayout(weights)).error().text(),
            "no_decay: no tensor's name ends in 'wieght' (expected some of bias, weight). Did you mean 'weight'?");
}

}  // namespace
}  // namespace kizzasi
