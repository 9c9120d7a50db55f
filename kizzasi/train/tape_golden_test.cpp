// The tape's activations and norms against published implementations.
#include <gtest/gtest.h>

#include <limits>

#include "kizzasi/autograd/ops.h"
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
  void expect_published(const std::string& name, const F& f) {
    check<double>(name, f, 1e-13);
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

// Norms over the last dimension (10) of x (3, 12, 10); `suffix` chooses the ordinary or the hard input.
template <typename T, typename F>
void expect_norm(const Golden& golden, const std::string& name, const std::string& suffix, double tolerance, const F& f) {
  Tape<T> tape;
  const Var<T> x = tape.leaf({3, 12, 10}, as<T>(golden.values("x" + suffix))),
               gain = tape.leaf({10}, as<T>(golden.values(name + ".weight")));
  const bool biased = golden.has(name + ".bias");
  const Var<T> bias = biased ? tape.leaf({10}, as<T>(golden.values(name + ".bias"))) : Var<T>{};
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
}

TEST(Norms, HaveThePublishedValuesAndGradients) {
  const Golden golden("norms");
  expect_norms<double>(golden, "", 1e-12);
  expect_norms<double>(golden, "_hard", 1e-9);
  expect_norms<float>(golden, "", 2e-6);
}

}  // namespace
}  // namespace kizzasi
