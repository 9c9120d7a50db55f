// Tests only: adjoints against central differences, in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/rng.h"

namespace kizzasi::autograd {

struct CheckedInput {
  std::string name;
  Dims dims;
  std::vector<double> values;
};

inline CheckedInput normal_input(std::string name, Dims dims, Rng& rng, double scale = 1.0) {
  CheckedInput input{std::move(name), std::move(dims), {}};
  input.values.resize(elements(input.dims));
  for (double& v : input.values) v = scale * rng.normal();
  return input;
}
inline CheckedInput uniform_input(std::string name, Dims dims, Rng& rng, double low, double high) {
  CheckedInput input{std::move(name), std::move(dims), {}};
  input.values.resize(elements(input.dims));
  for (double& v : input.values) v = rng.uniform(low, high);
  return input;
}

using CheckedOp = std::function<Var<double>(Tape<double>&, const std::vector<Var<double>>&)>;

// The law: for random cotangents w, d(sum w f(inputs))/d(each element of each input) equals its central difference of half width `step`
// to `tolerance`, measured against the largest difference of that input (at least 1e-3). Long inputs are checked at 64 random places.
inline void expect_gradients(const CheckedOp& op, std::vector<CheckedInput> inputs, double tolerance = 1e-6, double step = 1e-5) {
  Rng rng(99);
  Tape<double> tape;
  const auto record = [&] {
    tape.clear();
    std::vector<Var<double>> leaves;
    for (const CheckedInput& input : inputs) leaves.push_back(tape.leaf(input.dims, input.values));
    return std::pair{op(tape, leaves), leaves};
  };
  const auto [y, leaves] = record();
  std::vector<double> cotangent(y.value().size());
  for (double& v : cotangent) v = rng.normal();
  tape.backward(y, std::span<const double>(cotangent));
  std::vector<std::vector<double>> gradients;
  for (const Var<double> leaf : leaves) gradients.emplace_back(tape.grad(leaf.id).begin(), tape.grad(leaf.id).end());

  const auto value = [&] {
    const std::span<const double> out = record().first.value();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += cotangent[i] * out[i];
    return sum;
  };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::size_t size = inputs[k].values.size();
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < std::min<std::size_t>(size, 64); ++i) places.push_back(size <= 64 ? i : rng.below(size));
    std::vector<double> differences;
    double largest = 1e-3;
    for (const std::size_t i : places) {
      double& v = inputs[k].values[i];
      const double kept = v;
      v = kept + step;
      const double above = value();
      v = kept - step;
      const double below = value();
      v = kept;
      differences.push_back((above - below) / (2 * step));
      largest = std::max(largest, std::abs(differences.back()));
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      EXPECT_NEAR(gradients[k][places[i]], differences[i], tolerance * largest) << inputs[k].name << "[" << places[i] << "]";
    }
  }
}

}  // namespace kizzasi::autograd
