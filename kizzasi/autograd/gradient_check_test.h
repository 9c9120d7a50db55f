// Laws for differentiable functions, shared by the tests of every room: the gradient is what finite differences say, and f32 is f64
// rounded.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kizzasi/autograd/tape.h"
#include "kizzasi/base/rng.h"

namespace kizzasi::autograd {

struct CheckedInput {
  std::string name;  // for messages
  Dims dims;
  std::vector<double> values;
  bool wants_gradient = true;
};

inline CheckedInput uniform_input(std::string name, Dims dims, Rng& rng, double low, double high) {
  CheckedInput input{std::move(name), dims, std::vector<double>(elements(dims))};
  for (double& v : input.values) v = rng.uniform(low, high);
  return input;
}
inline CheckedInput normal_input(std::string name, Dims dims, Rng& rng, double scale = 1) {
  CheckedInput input{std::move(name), dims, std::vector<double>(elements(dims))};
  for (double& v : input.values) v = scale * rng.normal();
  return input;
}

// The value of a function and the gradients of sum(value * cotangent) by every input, the cotangent a fixed random one.
struct Evaluation {
  Dims dims;
  std::vector<double> value;
  std::vector<std::vector<double>> gradients;  // empty for inputs that want none
};

inline std::vector<double> cotangent_of(std::size_t count) {
  Rng rng(count + 12345);
  std::vector<double> values(count);
  for (double& v : values) v = rng.uniform(-1, 1);
  return values;
}

// build: (std::vector<Var<T>>) -> Var<T>, for both T.
template <typename T, typename Build>
Evaluation evaluate(Tape<T>& tape, const std::vector<CheckedInput>& inputs, const Build& build, bool backward = true) {
  tape.clear();
  std::vector<Var<T>> vars;
  for (const CheckedInput& input : inputs) {
    const std::vector<T> values(input.values.begin(), input.values.end());
    vars.push_back(tape.leaf(input.dims, values, input.wants_gradient));
  }
  const Var<T> y = build(vars);
  Evaluation result{y.dims(), {y.value().begin(), y.value().end()}, {}};
  EXPECT_EQ(elements(y.dims()), y.value().size());
  if (!backward) return result;
  const auto wide = cotangent_of(y.value().size());
  const std::vector<T> cotangent(wide.begin(), wide.end());
  tape.backward(y, std::span<const T>(cotangent));
  for (std::size_t i = 0; i < vars.size(); ++i) {
    result.gradients.emplace_back();
    if (!inputs[i].wants_gradient) continue;
    const auto g = tape.grad(vars[i]);
    result.gradients.back().assign(g.begin(), g.end());
  }
  return result;
}

// Every partial derivative (of at most `at_most` elements an input, spread over it) equals the five-point difference quotient of the f64
// form. `step` must keep all five points on one side of every kink.
template <typename Build>
void expect_gradients(const std::vector<CheckedInput>& inputs, const Build& build, double tolerance = 1e-8, double step = 1e-4,
                      std::size_t at_most = 40) {
  Tape<double> tape;
  const Evaluation at = evaluate(tape, inputs, build);
  const auto cotangent = cotangent_of(at.value.size());
  std::vector<CheckedInput> moved = inputs;
  const auto moved_by = [&](double& x, double by) {
    const double kept = x;
    x += by;
    const auto value = evaluate(tape, moved, build, false).value;
    x = kept;
    double total = 0;
    for (std::size_t i = 0; i < value.size(); ++i) total += (value[i] - at.value[i]) * cotangent[i];
    return total;
  };
  // A quotient has no more digits than the sum it is taken of: gradients far below the largest of all are held to that.
  double floor = 1e-6;
  for (const auto& gradient : at.gradients) {
    for (const double g : gradient) floor = std::max(floor, 1e-4 * std::abs(g));
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].wants_gradient) continue;
    double largest = floor;
    for (const double g : at.gradients[k]) largest = std::max(largest, std::abs(g));
    const std::size_t count = inputs[k].values.size(), stride = std::max<std::size_t>(1, count / at_most);
    for (std::size_t i = 0; i < count; i += stride) {
      double& x = moved[k].values[i];
      const double h = step * std::max(1.0, std::abs(x));
      const double quotient = (8 * (moved_by(x, h) - moved_by(x, -h)) - (moved_by(x, 2 * h) - moved_by(x, -2 * h))) / (12 * h);
      ASSERT_NEAR(at.gradients[k][i], quotient, tolerance * largest) << "input " << k << " " << inputs[k].name << "[" << i << "] at " << x;
    }
  }
}

// Value and gradients of the f32 form lie within `tolerance` of the f64 form, measured against the largest of each array, or against
// 0.1 where all are smaller (what is left after cancellation has few digits).
template <typename Build>
void expect_f32_near_f64(std::vector<CheckedInput> inputs, const Build& build, double tolerance = 2e-6) {
  for (CheckedInput& input : inputs) {
    for (double& v : input.values) v = static_cast<double>(static_cast<float>(v));
  }
  Tape<float> narrow;
  Tape<double> wide;
  const Evaluation a = evaluate(narrow, inputs, build), b = evaluate(wide, inputs, build);
  const auto expect_near = [&](const std::vector<double>& x, const std::vector<double>& y, const char* what, std::size_t k) {
    ASSERT_EQ(x.size(), y.size());
    double largest = 0.1;
    for (const double v : y) largest = std::max(largest, std::abs(v));
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], tolerance * largest) << what << " " << k << " element " << i;
  };
  EXPECT_EQ(a.dims, b.dims);
  expect_near(a.value, b.value, "value", 0);
  for (std::size_t k = 0; k < inputs.size(); ++k) expect_near(a.gradients[k], b.gradients[k], "gradient", k);
}

template <typename Build>
void expect_differentiable(const std::vector<CheckedInput>& inputs, const Build& build, double tolerance = 1e-8,
                           double f32_tolerance = 4e-6) {
  expect_gradients(inputs, build, tolerance);
  expect_f32_near_f64(inputs, build, f32_tolerance);
}

}  // namespace kizzasi::autograd
