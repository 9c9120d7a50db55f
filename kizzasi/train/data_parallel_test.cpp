// The pattern of data-parallel training: one tape a shard, gradients added in the order of the shards.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/model/backbone.h"
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

// The gradient of the whole batch in the order of the layout, and its loss.
struct Shards {
  std::vector<std::unique_ptr<Tape<float>>> tapes;
  std::vector<float> gradient;

  explicit Shards(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) tapes.push_back(std::make_unique<Tape<float>>());
  }

  double run(ThreadPool& pool, const Problem& problem) {
    const ParameterLayout layout = problem.layout();
    std::vector<WeightVars<float>> vars(tapes.size());
    std::vector<double> losses(tapes.size());
    pool.run(tapes.size(), [&](std::size_t i) {
      tapes[i]->clear();
      for (const auto& [name, tensor] : problem.weights) {
        vars[i].add(name, tapes[i]->borrow(autograd::Dims(tensor.shape), tensor.values, name != "frozen"));
      }
      losses[i] = problem.loss(i, tapes.size(), *tapes[i], vars[i]);
    });
    gradient.assign(layout.total(), 0);
    for (std::size_t i = 0; i < tapes.size(); ++i) {
      for (const auto& entry : layout.entries()) {
        const auto part = tapes[i]->grad(vars[i].at(entry.name));
        for (std::size_t k = 0; k < part.size(); ++k) gradient[entry.offset + k] += part[k];
      }
    }
    return std::accumulate(losses.begin(), losses.end(), 0.0);
  }
};

TEST(DataParallel, TrainingHasTheSameBitsOnAnyNumberOfThreads) {
  const auto train = [](std::size_t threads) {
    Problem problem(1);
    ThreadPool pool(threads);
    Shards shards(4);
    auto optimizer = *Optimizer::of({}, problem.layout());
    std::vector<double> path;
    for (int step = 0; step < 30; ++step) {
      path.push_back(shards.run(pool, problem));
      optimizer.step(problem.weights, shards.gradient, 0.03);
    }
    return std::pair{problem.weights, path};
  };
  const auto alone = train(1);
  EXPECT_LT(alone.second.back(), 0.7 * alone.second.front());
  for (const std::size_t threads : {2u, 3u, 4u}) EXPECT_EQ(train(threads), alone) << threads;
}

TEST(DataParallel, TheSumIsTheGradientOfTheWholeBatch) {
  const Problem problem(2);
  ThreadPool pool(2);
  std::vector<float> whole;
  for (const std::size_t count : {1u, 2u, 8u, 64u}) {
    Shards shards(count);
    for (int again = 0; again < 2; ++again) {  // the second run reuses the tapes
      shards.run(pool, problem);
      if (whole.empty()) whole = shards.gradient;
      ASSERT_EQ(shards.gradient.size(), whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(shards.gradient[i], whole[i], 1e-5);
    }
  }
}

}  // namespace
}  // namespace kizzasi
