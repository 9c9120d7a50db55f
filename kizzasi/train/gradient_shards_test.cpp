#include "kizzasi/train/gradient_shards.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/train/losses.h"
#include "kizzasi/train/optimizer.h"

namespace kizzasi {
namespace {

using autograd::Tape;
using autograd::Var;

// A small network on random data, its batch cut into shards.
struct Problem {
  static constexpr std::size_t kInputs = 12, kWidth = 24, kRows = 64;
  NamedTensors weights;
  std::vector<float> x, y;

  explicit Problem(std::uint64_t seed) {
    Rng rng(seed);
    weights = {{"frozen", Tensor({kInputs})},
               {"in.bias", Tensor({kWidth})},
               {"in.weight", Tensor({kWidth, kInputs})},
               {"out.weight", Tensor({1, kWidth})}};
    x.resize(kRows * kInputs);
    y.resize(kRows);
    for (auto& [name, tensor] : weights) {
      for (float& v : tensor.values) v = static_cast<float>(rng.normal() * 0.3);
    }
    for (float& v : x) v = static_cast<float>(rng.normal());
    for (float& v : y) v = static_cast<float>(rng.normal());
  }

  ParameterLayout layout() const {
    return ParameterLayout(weights, [](std::string_view name) { return name != "frozen"; });
  }

  double loss(std::size_t shard, std::size_t shards, Tape<float>& tape, const WeightVars<float>& vars) const {
    const std::size_t rows = kRows / shards, begin = shard * rows;
    const auto in = tape.constant({rows, kInputs}, std::span(x).subspan(begin * kInputs, rows * kInputs));
    const auto target = tape.constant({rows, 1}, std::span(y).subspan(begin, rows));
    const auto hidden = autograd::silu(autograd::linear(autograd::mul(in, vars.at("frozen")), vars.at("in.weight"), vars.at("in.bias")));
    const auto part = autograd::scale(autograd::sum(losses::squared_error(autograd::linear(hidden, vars.at("out.weight")), target)),
                                      1.0f / static_cast<float>(kRows));
    tape.backward(part);
    return static_cast<double>(part.value()[0]);
  }
};

TEST(GradientShards, TrainingHasTheSameBitsOnAnyNumberOfThreads) {
  const auto train = [](std::size_t threads) {
    Problem problem(1);
    ThreadPool pool(threads);
    GradientShards shards(problem.layout(), 4);
    auto optimizer = *Optimizer::of({}, problem.layout());
    std::vector<double> path;
    for (int step = 0; step < 30; ++step) {
      path.push_back(shards.run(pool, problem.weights, [&](std::size_t shard, Tape<float>& tape, const WeightVars<float>& vars) {
        return problem.loss(shard, 4, tape, vars);
      }));
      optimizer.step(problem.weights, shards.gradient(), 0.03);
    }
    return std::pair{problem.weights, path};
  };
  const auto alone = train(1);
  EXPECT_LT(alone.second.back(), 0.7 * alone.second.front());
  for (const std::size_t threads : {2u, 3u, 4u}) EXPECT_EQ(train(threads), alone) << threads;
}

TEST(GradientShards, TheSumIsTheGradientOfTheWholeBatch) {
  const Problem problem(2);
  ThreadPool pool(2);
  std::vector<float> whole;
  for (const std::size_t count : {1u, 2u, 8u, 64u}) {
    GradientShards shards(problem.layout(), count);
    for (int again = 0; again < 2; ++again) {  // the second run reuses tapes and buffers
      shards.run(pool, problem.weights, [&](std::size_t shard, Tape<float>& tape, const WeightVars<float>& vars) {
        EXPECT_FALSE(tape.wants_gradient(vars.at("frozen").id));
        return problem.loss(shard, count, tape, vars);
      });
      const auto gradient = shards.gradient();
      ASSERT_EQ(gradient.size(), problem.layout().total());
      if (whole.empty()) whole.assign(gradient.begin(), gradient.end());
      for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(gradient[i], whole[i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace kizzasi
