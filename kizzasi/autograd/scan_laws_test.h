// Tests only: what the tests of fused recurrences share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kizzasi/autograd/gradient_check_test.h"

namespace kizzasi::autograd {

using Values = std::vector<double>;

template <typename T>
std::vector<Var<T>> leaves(Tape<T>& tape, const std::vector<CheckedInput>& inputs) {
  std::vector<Var<T>> all;
  for (const CheckedInput& input : inputs) {
    const std::vector<T> values(input.values.begin(), input.values.end());
    all.push_back(tape.leaf(input.dims, values));
  }
  return all;
}

template <typename T>
void expect_values(Var<T> y, const Values& truth, double tolerance) {
  ASSERT_EQ(y.value().size(), truth.size());
  double largest = 1e-6;
  for (const double v : truth) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < truth.size(); ++i) ASSERT_NEAR(static_cast<double>(y.value()[i]), truth[i], tolerance * largest) << i;
}

// f32 against f64: values and every gradient.
template <typename Op>
void expect_f32_follows_f64(const Op& op, const std::vector<CheckedInput>& inputs, double tolerance) {
  Tape<float> narrow;
  Tape<double> wide;
  const auto narrow_leaves = leaves(narrow, inputs);
  const auto wide_leaves = leaves(wide, inputs);
  const Var<float> y32 = op(narrow_leaves);
  const Var<double> y64 = op(wide_leaves);
  expect_values(y32, Values(y64.value().begin(), y64.value().end()), tolerance);
  Rng rng(5);
  std::vector<float> cotangent32(y32.value().size());
  for (float& v : cotangent32) v = static_cast<float>(rng.normal());
  const std::vector<double> cotangent64(cotangent32.begin(), cotangent32.end());
  narrow.backward(y32, std::span<const float>(cotangent32));
  wide.backward(y64, std::span<const double>(cotangent64));
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto g32 = narrow.grad(narrow_leaves[k].id);
    const auto g64 = wide.grad(wide_leaves[k].id);
    double largest = 1e-6;
    for (const double v : g64) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < g64.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(g32[i]), g64[i], tolerance * largest) << inputs[k].name << "[" << i << "]";
    }
  }
}

}  // namespace kizzasi::autograd
