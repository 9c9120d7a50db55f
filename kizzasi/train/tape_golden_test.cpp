// The tape's activations and norms against published implementations.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kizzasi/autograd/channel_norms.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/pointwise.h"
#include "kizzasi/train/golden_test.h"

namespace kizzasi {
namespace {

using autograd::Dims;
using autograd::Tape;
using autograd::Var;

template <typename T>
std::vector<T> as(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// Within `tolerance` of max(1, the size of the expected value); equal where infinite.
template <typename T>
void expect_close(std::span<const T> got, const std::vector<double>& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double want = static_cast<double>(static_cast<T>(expected[i])), have = static_cast<double>(got[i]);
    if (std::isinf(want)) {
      EXPECT_EQ(have, want) << what << "[" << i << "]";
    } else {
      EXPECT_NEAR(have, want, tolerance * std::max(1.0, std::abs(want))) << what << "[" << i << "]";
    }
  }
}

class Activations : public ::testing::Test {
 protected:
  const Golden golden_{"activations"};

  // f64 against the published value and derivative of every point, f32 against those points that f32 holds.
  template <typename F>
  void expect_published(const std::string& name, const F& f, double tolerance = 1e-13) {
    check<double>(name, f, tolerance);
    check<float>(name, f, 1e-6);
  }

 private:
  template <typename T, typename F>
  void check(const std::string& name, const F& f, double tolerance) {
    std::vector<T> points;
    std::vector<double> values, derivatives;
    const auto& x = golden_.values("x");
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (static_cast<double>(static_cast<T>(x[i])) != x[i]) continue;
      points.push_back(static_cast<T>(x[i]));
      values.push_back(golden_.values(name + ".value")[i]);
      derivatives.push_back(golden_.values(name + ".derivative")[i]);
    }
    EXPECT_GT(points.size(), 20u);
    Tape<T> tape;
    const Var<T> leaf = tape.leaf({points.size()}, points);
    const Var<T> y = f(leaf);
    const std::vector<T> ones(points.size(), T{1});
    tape.backward(y, std::span<const T>(ones));
    expect_close(y.value(), values, tolerance, name);
    expect_close(tape.grad(leaf), derivatives, tolerance, name + " derivative");
  }
};

TEST_F(Activations, HaveThePublishedValuesAndDerivatives) {
  expect_published("sigmoid", [](auto x) { return autograd::sigmoid(x); });
  expect_published("tanh", [](auto x) { return autograd::tanh(x); });
  expect_published("silu", [](auto x) { return autograd::silu(x); });
  expect_published("gelu", [](auto x) { return autograd::gelu(x); });
  expect_published("relu", [](auto x) { return autograd::relu(x); });
  expect_published("softplus", [](auto x) { return autograd::softplus(x); });
  expect_published("exp", [](auto x) { return autograd::exp(x); });
}

TEST_F(Activations, OfTheOtherKindsHaveThePublishedValuesAndDerivatives) {
  expect_published("expm1", [](auto x) { return autograd::expm1(x); });
  expect_published("erf", [](auto x) { return autograd::erf(x); });
  expect_published("leaky_relu_0.01", [](auto x) { return autograd::leaky_relu(x); });
  expect_published("elu", [](auto x) { return autograd::elu(x); });
  expect_published("selu", [](auto x) { return autograd::selu(x); });
  expect_published("mish", [](auto x) { return autograd::mish(x); });
  expect_published("softplus_beta2_threshold5", [](auto x) {
    using T = std::decay_t<decltype(x.value()[0])>;
    return autograd::softplus(x, T{2}, T{5});
  });
  expect_published("logsigmoid", [](auto x) { return autograd::log_sigmoid(x); });
  expect_published("softsign", [](auto x) { return autograd::softsign(x); });
  expect_published("relu6", [](auto x) { return autograd::relu6(x); });
  expect_published("hardtanh", [](auto x) { return autograd::hard_tanh(x); });
  expect_published("hardsigmoid", [](auto x) { return autograd::hard_sigmoid(x); }, 1e-8);  // its slope is a float of 1 / 6
  expect_published("hardswish", [](auto x) { return autograd::hard_swish(x); });
  expect_published("gelu_tanh", [](auto x) { return autograd::gelu_tanh(x); });
  expect_published("hf_gelu_new", [](auto x) { return autograd::gelu_tanh(x); });
  expect_published("hf_gelu_fast", [](auto x) { return autograd::gelu_tanh(x); }, 1e-10);  // its constant has ten digits
  expect_published("hf_quick_gelu", [](auto x) { return autograd::quick_gelu(x); });
  expect_published("hf_relu2", [](auto x) { return autograd::relu_squared(x); });
}

// The float32 columns are the runs of another implementation: ours differ by no more than the rounding of both, and overflow where the
// exact value does. Some of theirs overflow on the way to a value that f32 holds (gelu and hardswish at 3e38); ours give it.
TEST_F(Activations, InFloatAreThePublishedRunsAndOverflowNowhereElse) {
  const auto same = [&](const std::string& name, const auto& f) {
    const std::vector<double>&x = golden_.values("x"), &exact = golden_.values(name + ".value");
    const std::vector<float>& reference = golden_.narrow(name + ".value.f32");
    Tape<float> tape;
    const Var<float> y = f(tape.leaf({x.size()}, as<float>(x)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double theirs = static_cast<double>(reference[i]), ours = static_cast<double>(y.value()[i]);
      const double truth = static_cast<double>(static_cast<float>(exact[i])), wanted = std::isfinite(theirs) ? theirs : truth;
      if (std::isinf(wanted)) {
        EXPECT_EQ(ours, wanted) << name << "(" << x[i] << ")";
      } else {
        EXPECT_NEAR(ours, wanted, 2e-6 * std::max(1.0, std::abs(wanted))) << name << "(" << x[i] << ")";
      }
    }
  };
  same("exp", [](auto v) { return autograd::exp(v); });
  same("expm1", [](auto v) { return autograd::expm1(v); });
  same("erf", [](auto v) { return autograd::erf(v); });
  same("sigmoid", [](auto v) { return autograd::sigmoid(v); });
  same("tanh", [](auto v) { return autograd::tanh(v); });
  same("silu", [](auto v) { return autograd::silu(v); });
  same("gelu", [](auto v) { return autograd::gelu(v); });
  same("gelu_tanh", [](auto v) { return autograd::gelu_tanh(v); });
  same("hf_gelu_new", [](auto v) { return autograd::gelu_tanh(v); });
  same("hf_gelu_fast", [](auto v) { return autograd::gelu_tanh(v); });
  same("hf_quick_gelu", [](auto v) { return autograd::quick_gelu(v); });
  same("hf_relu2", [](auto v) { return autograd::relu_squared(v); });
  same("relu", [](auto v) { return autograd::relu(v); });
  same("relu6", [](auto v) { return autograd::relu6(v); });
  same("leaky_relu_0.01", [](auto v) { return autograd::leaky_relu(v); });
  same("elu", [](auto v) { return autograd::elu(v); });
  same("selu", [](auto v) { return autograd::selu(v); });
  same("mish", [](auto v) { return autograd::mish(v); });
  same("softplus", [](auto v) { return autograd::softplus(v); });
  same("softplus_beta2_threshold5", [](auto v) { return autograd::softplus(v, 2.0f, 5.0f); });
  same("logsigmoid", [](auto v) { return autograd::log_sigmoid(v); });
  same("softsign", [](auto v) { return autograd::softsign(v); });
  same("hardtanh", [](auto v) { return autograd::hard_tanh(v); });
  same("hardsigmoid", [](auto v) { return autograd::hard_sigmoid(v); });
  same("hardswish", [](auto v) { return autograd::hard_swish(v); });
}

template <typename T, typename F>
void expect_rows(const Golden& golden, const std::string& name, double tolerance, const F& f) {
  Tape<T> tape;
  const Var<T> x = tape.leaf({4, 12}, as<T>(golden.values("pairs")));
  const Var<T> y = f(x);
  const std::vector<T> cotangent = as<T>(golden.values(name + ".cotangent"));
  tape.backward(y, std::span<const T>(cotangent));
  expect_near(y.value(), golden.values(name + ".value"), tolerance, name);
  expect_near(tape.grad(x), golden.values(name + ".grad"), tolerance, name + " gradient");
}

template <typename T>
void expect_row_functions(const Golden& golden, double tolerance) {
  const auto half = [](Var<T> x, std::size_t k) { return autograd::slice(x, 1, 6 * k, 6 * k + 6); };
  expect_rows<T>(golden, "softmax", tolerance, [](Var<T> x) { return autograd::softmax(x); });
  expect_rows<T>(golden, "log_softmax", tolerance, [](Var<T> x) { return autograd::log_softmax(x); });
  expect_rows<T>(golden, "cumlogsumexp", tolerance, [](Var<T> x) { return autograd::cumulative_log_sum_exp(x); });
  expect_rows<T>(golden, "logsumexp", tolerance, [](Var<T> x) { return autograd::log_sum_exp(x); });
  expect_rows<T>(golden, "softmax_x300", 200 * tolerance, [](Var<T> x) { return autograd::softmax(autograd::scale(x, T(300))); });
  expect_rows<T>(golden, "swiglu", tolerance, [&](Var<T> x) { return autograd::mul(autograd::silu(half(x, 0)), half(x, 1)); });
  expect_rows<T>(golden, "geglu", tolerance, [&](Var<T> x) { return autograd::mul(autograd::gelu(half(x, 0)), half(x, 1)); });
  expect_rows<T>(golden, "glu", tolerance, [&](Var<T> x) { return autograd::mul(half(x, 0), autograd::sigmoid(half(x, 1))); });
}

TEST_F(Activations, OfRowsHaveThePublishedValuesAndGradients) {
  expect_row_functions<double>(golden_, 1e-12);
  expect_row_functions<float>(golden_, 2e-6);
}

// Norms of x (3, 12, 10); `suffix` chooses the ordinary or the hard input.
template <typename T, typename F>
void expect_norm(const Golden& golden, const std::string& name, const std::string& suffix, double tolerance, const F& f) {
  Tape<T> tape;
  const std::size_t width = golden.shape(name + ".weight")[0];
  const Var<T> x = tape.leaf({3, 12, 10}, as<T>(golden.values("x" + suffix))),
               gain = tape.leaf({width}, as<T>(golden.values(name + ".weight")));
  const bool biased = golden.has(name + ".bias");
  const Var<T> bias = biased ? tape.leaf({width}, as<T>(golden.values(name + ".bias"))) : Var<T>{};
  const Var<T> y = f(x, gain, bias);
  const std::vector<T> cotangent = as<T>(golden.values("cotangent"));
  tape.backward(y, std::span<const T>(cotangent));
  const std::string what = name + suffix;
  expect_near(y.value(), golden.values(name + ".value" + suffix), tolerance, what);
  // The rows of the hard input that are constant have gradients of up to 1 / sqrt(epsilon).
  expect_near(tape.grad(x), golden.values(name + ".grad.x" + suffix), tolerance, what + " gradient");
  expect_near(tape.grad(gain), golden.values(name + ".grad.weight" + suffix), 4 * tolerance, what + " gradient of gain");
  if (biased) expect_near(tape.grad(bias), golden.values(name + ".grad.bias" + suffix), 4 * tolerance, what + " gradient of bias");
}

template <typename T>
void expect_norms(const Golden& golden, const std::string& suffix, double tolerance) {
  for (const double epsilon : {1e-5, 1e-3}) {
    expect_norm<T>(golden, epsilon == 1e-5 ? "layer_norm" : "layer_norm_eps1e-3", suffix, tolerance,
                   [epsilon](Var<T> x, Var<T> gain, Var<T> bias) { return autograd::layer_norm(x, gain, bias, static_cast<T>(epsilon)); });
  }
  expect_norm<T>(golden, "rms_norm", suffix, tolerance, [](Var<T> x, Var<T> gain, Var<T>) { return autograd::rms_norm(x, gain, T(1e-6)); });
  expect_norm<T>(golden, "rms_norm_default_eps", suffix, tolerance,
                 [](Var<T> x, Var<T> gain, Var<T>) { return autograd::rms_norm(x, gain, T(std::numeric_limits<double>::epsilon())); });
  for (const auto& [name, groups] : {std::pair{"group_norm_1", 1u}, {"group_norm_4", 4u}, {"group_norm_12", 12u}, {"instance_norm", 12u}}) {
    expect_norm<T>(golden, name, suffix, tolerance,
                   [count = groups](Var<T> x, Var<T> gain, Var<T> bias) { return autograd::group_norm(x, count, gain, bias, T(1e-5)); });
  }
  expect_norm<T>(golden, "batch_norm_train", suffix, tolerance,
                 [](Var<T> x, Var<T> gain, Var<T> bias) { return autograd::batch_norm(x, gain, bias, T(1e-5)); });
  autograd::RunningMoments moments(12);
  moments.mean = golden.values("batch_norm_eval.running_mean"), moments.variance = golden.values("batch_norm_eval.running_var");
  expect_norm<T>(golden, "batch_norm_eval", suffix, tolerance,
                 [&](Var<T> x, Var<T> gain, Var<T> bias) { return autograd::batch_norm(x, moments, gain, bias, T(1e-5)); });
}

TEST(Norms, HaveThePublishedValuesAndGradients) {
  const Golden golden("norms");
  expect_norms<double>(golden, "", 1e-12);
  expect_norms<double>(golden, "_hard", 1e-9);
  expect_norms<float>(golden, "", 2e-6);
  // The mean is taken in double: what is left is the rounding of the result, over the constant rows times 1 / sqrt(epsilon).
  expect_norms<float>(golden, "_hard", 1e-5);
}

TEST(Norms, RememberTheMomentsOfTheirBatches) {
  const Golden golden("norms");
  Tape<double> tape;
  autograd::RunningMoments moments(12);
  moments.observe(tape.leaf({3, 12, 10}, golden.values("x")));
  expect_near(std::span<const double>(moments.mean), golden.values("batch_norm_train.running_mean_after"), 1e-12, "mean");
  expect_near(std::span<const double>(moments.variance), golden.values("batch_norm_train.running_var_after"), 1e-12, "variance");
}

}  // namespace
}  // namespace kizzasi
