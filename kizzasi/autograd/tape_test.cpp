#include "kizzasi/autograd/tape.h"

#include <gtest/gtest.h>

#include <memory>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/autograd/ops.h"
#include "tests/allocations/count.h"

namespace kizzasi::autograd {
namespace {

TEST(Tape, AddsUpTheGradientsOfEveryUse) {
  Tape<double> tape;
  const std::vector<double> three{3};
  const auto x = tape.leaf({1}, three);
  const auto y = mul(x, x);          // 2x
  const auto z = add(mul(y, x), x);  // x^3 + x
  tape.backward(add(z, add(y, y)));  // x^3 + 2x^2 + x
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], 3 * 9 + 4 * 3 + 1);
}

TEST(Tape, ConstantsGetNoGradientAndCostNoAdjoint) {
  Tape<double> tape;
  const std::vector<double> a{2}, b{5};
  const auto c = tape.constant({1}, a), d = tape.constant({1}, a), x = tape.leaf({1}, b);
  const auto fixed = mul(c, d);
  EXPECT_FALSE(tape.wants_gradient(fixed.id));
  EXPECT_TRUE(tape.flow(fixed.id).grad.empty());
  const auto y = mul(fixed, x);
  EXPECT_TRUE(tape.wants_gradient(y.id));
  tape.backward(y);
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], 4);
  tape.backward(fixed);  // nothing to do, and nothing done
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], 4);
}

TEST(Tape, AnUnusedLeafHasGradientZero) {
  Tape<double> tape;
  const std::vector<double> a{2}, b{5, 6};
  const auto x = tape.leaf({1}, a), unused = tape.leaf({2}, b);
  tape.backward(square(x));
  EXPECT_EQ(tape.grad(unused)[0], 0);
  EXPECT_EQ(tape.grad(unused)[1], 0);
}

TEST(Tape, ASeedScalesAndZeroGradsForgets) {
  Tape<double> tape;
  const std::vector<double> a{3};
  const auto x = tape.leaf({1}, a);
  const auto y = square(square(x));
  tape.backward(y, 0.5);
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], 0.5 * 4 * 27);
  tape.zero_grads();
  tape.backward(y);
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], 4 * 27);
}

TEST(Tape, BorrowedValuesAreReadInPlace) {
  Tape<double> tape;
  std::vector<double> weights{1, 2, 3};
  const auto w = tape.borrow({3}, weights);
  EXPECT_EQ(w.value().data(), weights.data());
  tape.backward(sum(square(w)));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(tape.grad(w)[i], 2 * weights[i]);
}

TEST(Tape, AnotherRecordingAfterClearDoesNotSeeTheFirst) {
  // Recordings of other shapes in turn: buffers shrink, grow and change their role; results are those of a fresh tape.
  Rng rng(1);
  Tape<double> kept;
  for (int i = 0; i < 200; ++i) {
    const std::size_t rows = 1 + rng.below(6), depth = 1 + rng.below(6), outputs = 1 + rng.below(6);
    const std::vector<CheckedInput> inputs{normal_input("x", {rows, depth}, rng), normal_input("w", {outputs, depth}, rng)};
    const auto build = [&](const auto& v) {
      auto y = linear(v[0], v[1]);
      if (i % 3 == 0) y = permute(tanh(y), {1, 0});
      if (i % 2 == 0) y = square(slice(y, 0, 0, 1));
      return sum_last(y);
    };
    Tape<double> fresh;
    const Evaluation a = evaluate(kept, inputs, build), b = evaluate(fresh, inputs, build);
    ASSERT_EQ(a.value, b.value);
    ASSERT_EQ(a.gradients, b.gradients);
  }
}

TEST(Tape, DestroysWhatAdjointsHold) {
  const auto held = std::make_shared<int>(1);
  const std::vector<double> a{2};
  {
    Tape<double> tape;
    const auto x = tape.leaf({1}, a);
    for (int i = 0; i < 1000; ++i) tape.record({1}, {x}, [held](Tape<double>&, std::size_t) {});
    EXPECT_EQ(held.use_count(), 1001);
    tape.clear();
    EXPECT_EQ(held.use_count(), 1);
    tape.record({1}, {tape.constant({1}, a)}, [held](Tape<double>&, std::size_t) {});
    EXPECT_EQ(held.use_count(), 1);  // no input wants a gradient: not kept
    tape.record({1}, {tape.leaf({1}, a)}, [held](Tape<double>&, std::size_t) {});
  }
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Tape, TakesNoMemoryOnceWarm) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  Rng rng(2);
  std::vector<float> input(8 * 12), first(16 * 12), gain(16, 1.0f), second(4 * 16);
  for (auto* values : {&input, &first, &second}) {
    for (float& v : *values) v = static_cast<float>(rng.normal());
  }
  Tape<float> tape;
  const auto step = [&] {
    tape.clear();
    const auto x = tape.constant({2, 4, 12}, input);
    const auto w1 = tape.borrow({16, 12}, first), g = tape.borrow({16}, gain), w2 = tape.borrow({4, 16}, second);
    auto y = rms_norm(silu(linear(x, w1)), g, 1e-5f);
    y = permute(reshape(y, {8, 2, 8}), {1, 0, 2});
    y = reshape(permute(y, {1, 0, 2}), {8, 16});
    y = softmax(linear(mul(y, slice(y, 1, 0, 16)), w2));
    tape.backward(mean(log(add_scalar(y, 0.1f))));
  };
  step();
  const std::size_t before = allocations_so_far(), nodes = tape.size();
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(allocations_so_far(), before);
  EXPECT_EQ(tape.size(), nodes);
}

TEST(Dims, BehavesAsAList) {
  const std::vector<std::size_t> list{2, 3, 4};
  Dims dims = list;
  EXPECT_EQ(dims, (Dims{2, 3, 4}));
  EXPECT_EQ(elements(dims), 24u);
  EXPECT_EQ(leading(dims), (Dims{2, 3}));
  dims.push_back(1);
  EXPECT_NE(dims, (Dims{2, 3, 4}));
  EXPECT_EQ(elements(Dims{}), 1u);
}

TEST(Arena, PiecesAreAlignedAndApart) {
  Arena arena;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::pair<std::byte*, std::size_t>> pieces;
    Rng rng(3);
    for (int i = 0; i < 500; ++i) {
      const std::size_t bytes = 1 + rng.below(i % 50 == 0 ? 40'000 : 200), alignment = std::size_t{1} << rng.below(5);
      auto* p = static_cast<std::byte*>(arena.take(bytes, alignment));
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % alignment, 0u);
      std::fill_n(p, bytes, static_cast<std::byte>(i));
      pieces.emplace_back(p, bytes);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      for (std::size_t k = 0; k < pieces[i].second; ++k) ASSERT_EQ(pieces[i].first[k], static_cast<std::byte>(i));
    }
    arena.clear();
  }
}

}  // namespace
}  // namespace kizzasi::autograd
