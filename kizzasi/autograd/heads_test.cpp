#include "kizzasi/autograd/heads.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi::autograd {
namespace {

TEST(Heads, OuterAndContractionAreTheirSums) {
  Rng rng(1);
  for (const auto& [rows, heads, width] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {3, 5, 1}, {4, 2, 3}, {2, 1, 6}}) {
    const std::size_t w = width, d = heads * width;
    const std::vector<CheckedInput> two{normal_input("a", {rows, d}, rng), normal_input("b", {rows, d}, rng)};
    const std::vector<CheckedInput> query{normal_input("q", {rows, d}, rng), normal_input("m", {rows, d * width}, rng)};
    const auto outer = [w](const auto& v) { return head_outer(v[0], v[1], w); };
    const auto contract = [w](const auto& v) { return head_contract(v[0], v[1], w); };
    Tape<double> tape;
    const auto product = evaluate(tape, two, outer).value;
    const auto read = evaluate(tape, query, contract).value;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t j = 0; j < width; ++j) {
          double sum = 0;
          for (std::size_t i = 0; i < width; ++i) {
            const std::size_t at = r * d + h * width + i;
            EXPECT_EQ(product[at * width + j], two[0].values[at] * two[1].values[r * d + h * width + j]);
            sum += query[0].values[at] * query[1].values[at * width + j];
          }
          EXPECT_NEAR(read[r * d + h * width + j], sum, 1e-14);
        }
      }
    }
    expect_differentiable(two, outer);
    expect_differentiable(query, contract);
  }
}

TEST(Heads, MapsOfHeadsOntoThemselvesAreTheirSums) {
  Rng rng(2);
  for (const auto& [time, heads, width] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {7, 3, 4}, {5, 2, 9}}) {
    const std::vector<CheckedInput> inputs{normal_input("x", {2, time, heads * width}, rng), normal_input("w", {heads, width, width}, rng)};
    const auto op = [](const auto& v) { return headwise_linear(v[0], v[1]); };
    Tape<double> tape;
    const auto y = evaluate(tape, inputs, op).value;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t head = i / width % heads, row = i / width;
      double sum = 0;
      for (std::size_t k = 0; k < width; ++k) {
        sum += inputs[1].values[(head * width + i % width) * width + k] * inputs[0].values[row * width + k];
      }
      EXPECT_NEAR(y[i], sum, 1e-13);
    }
    expect_differentiable(inputs, op);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
