#include "kizzasi/train/losses.h"

#include <gtest/gtest.h>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/decode/standard_laws.h"
#include "kizzasi/train/gamma_function.h"
#include "kizzasi/train/golden_test.h"

namespace kizzasi {
namespace {

using autograd::Dims;
using autograd::expect_gradients;
using autograd::Tape;
using autograd::uniform_input;
using autograd::Var;

class Losses : public ::testing::Test {
 protected:
  const Golden golden_{"losses"};

  // The loss `name` of the arguments, built by `build` from leaves of both types, has the published value and gradients.
  template <typename Build>
  void expect_published(const std::string& name, const std::vector<std::string>& arguments, const Build& build,
                        double f32_tolerance = 2e-6) {
    SCOPED_TRACE(name);
    expect_published_as<double>(name, arguments, build, 1e-12);
    expect_published_as<float>(name, arguments, build, f32_tolerance);
  }

 private:
  template <typename T, typename Build>
  void expect_published_as(const std::string& name, const std::vector<std::string>& arguments, const Build& build, double tolerance) {
    Tape<T> tape;
    std::vector<Var<T>> leaves;
    for (const std::string& argument : arguments) {
      const std::string key = name + "." + argument;
      const std::vector<T> values(golden_.values(key).begin(), golden_.values(key).end());
      leaves.push_back(tape.leaf(Dims(golden_.shape(key)), values));
    }
    const Var<T> loss = build(leaves);
    expect_near(loss.value(), golden_.values(name + ".value"), tolerance, name);
    tape.backward(autograd::sum(loss));
    std::size_t compared = 0;
    for (std::size_t k = 0; k < arguments.size(); ++k) {
      const std::string key = name + ".grad." + arguments[k];
      if (!golden_.has(key)) continue;
      expect_near(tape.grad(Var<T>(leaves[k])), golden_.values(key), tolerance, key);
      ++compared;
    }
    EXPECT_GT(compared, 0u);
  }
};

TEST_F(Losses, OfAValueAndItsTarget) {
  const std::vector<std::string> both{"input", "target"};
  expect_published("mse", both, [](const auto& v) { return losses::mse(v[0], v[1]); });
  expect_published("mae", both, [](const auto& v) { return losses::mae(v[0], v[1]); });
  expect_published("huber_0.7", both, [](const auto& v) { return autograd::mean(losses::huber(v[0], v[1], 0.7)); });
  expect_published("smooth_l1_0.7", both, [](const auto& v) { return autograd::mean(losses::smooth_l1(v[0], v[1], 0.7)); });
  for (const double level : {0.1, 0.5, 0.9}) {
    expect_published("pinball_0." + std::to_string(std::lround(level * 10)), both,
                     [level](const auto& v) { return losses::pinball(v[0], v[1], level); });
  }
}

TEST_F(Losses, NegativeLogLikelihoods) {
  const std::vector<std::string> with_variance{"input", "target", "var"}, with_scale{"loc", "scale", "target"};
  expect_published("gaussian_nll", with_variance, [](const auto& v) { return losses::gaussian_nll(v[0], v[1], v[2]); });
  expect_published("gaussian_nll_full", with_variance, [](const auto& v) { return losses::gaussian_nll(v[0], v[1], v[2], true); });
  expect_published("gaussian_nll_tiny_variance", with_variance, [](const auto& v) { return losses::gaussian_nll(v[0], v[1], v[2]); });
  expect_published("normal_log_prob", with_scale, [](const auto& v) { return losses::normal_nll(v[0], v[1], v[2]); });
  expect_published("laplace_nll", with_scale, [](const auto& v) { return losses::laplace_nll(v[0], v[1], v[2]); });
  expect_published("student_t_nll", {"df", "loc", "scale", "target"},
                   [](const auto& v) { return losses::student_t_nll(v[0], v[1], v[2], v[3]); });
  expect_published("poisson_nll", {"input", "target"}, [](const auto& v) { return losses::poisson_nll(v[0], v[1]); });
  expect_published("negative_binomial_nll", {"total_count", "logits", "target"},
                   [](const auto& v) { return losses::negative_binomial_nll(v[0], v[1], v[2]); });
  const std::vector<std::string> mixture{"logits", "loc", "scale", "target"};
  const auto mixture_nll = [](const auto& v) { return losses::mixture_nll(v[0], v[1], v[2], v[3]); };
  expect_published("gaussian_mixture_nll", mixture, mixture_nll);
  expect_published("gaussian_mixture_nll_far", mixture, mixture_nll);
}

TEST_F(Losses, RankedProbabilityScores) {
  expect_published("crps_gaussian", {"loc", "scale", "target"}, [](const auto& v) { return losses::crps_gaussian(v[0], v[1], v[2]); });
  const std::vector<std::string> arguments{"ensemble", "target"};
  for (const std::string biased : {"nrg", "qd"}) {
    expect_published("crps_ensemble_" + biased, arguments, [](const auto& v) { return losses::crps_ensemble(v[0], v[1], false); });
  }
  for (const std::string unbiased : {"fair", "pwm"}) {
    expect_published("crps_ensemble_" + unbiased, arguments, [](const auto& v) { return losses::crps_ensemble(v[0], v[1], true); });
  }
}

TEST_F(Losses, OfClasses) {
  const auto targets = [&](const std::string& name) {
    const auto& values = golden_.values(name + ".target");
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  for (const std::string name : {"cross_entropy", "cross_entropy_extreme"}) {
    expect_published(name, {"logits"}, [t = targets(name)](const auto& v) { return losses::cross_entropy(v[0], std::span(t)); });
  }
  expect_published("cross_entropy_smooth_0.1", {"logits"}, [t = targets("cross_entropy_smooth_0.1")](const auto& v) {
    return losses::cross_entropy_mean(v[0], std::span(t), {.smoothing = 0.1});
  });
  const std::string weighted = "cross_entropy_weighted_ignore_smooth";
  expect_published(weighted, {"logits"}, [&, t = targets(weighted)](const auto& v) {
    return losses::cross_entropy_mean(v[0], std::span(t), {.smoothing = 0.2, .weights = golden_.values(weighted + ".weight")});
  });
  expect_published("bce_logits", {"logits", "target"}, [](const auto& v) { return losses::bce_with_logits(v[0], v[1]); });
  expect_published("kl_div", {"input", "target"}, [](const auto& v) {
    using T = std::decay_t<decltype(v[0].value()[0])>;
    const auto p = autograd::softmax(v[1]);
    return autograd::scale(autograd::sum(losses::kl_divergence(v[0], p)), T(1.0 / 6));
  });
  expect_published("cosine", {"x1", "x2"}, [](const auto& v) { return losses::cosine_distance(v[0], v[1]); });
}

TEST_F(Losses, OfWholeSignals) {
  for (const auto& [name, gamma] : {std::pair{"soft_dtw_0.1", 0.1}, {"soft_dtw_1.0", 1.0}}) {
    expect_published(name, {"x", "y"}, [gamma](const auto& v) { return losses::soft_dtw(v[0], v[1], gamma); });
  }
  const std::vector<std::string> both{"input", "target"};
  const std::vector<losses::Spectrogram> one{{64, 16, 64}}, three{{64, 16, 48}, {128, 32, 100}, {32, 8, 24}};
  expect_published("stft_64", both, [&](const auto& v) { return losses::stft(v[0], v[1], std::span(one)); });
  expect_published("multi_resolution_stft", both, [&](const auto& v) { return losses::stft(v[0], v[1], std::span(three)); });
}

TEST(LossGradients, AreTheirDifferencesFarFromTheReferenceInputs) {
  Rng rng(1);
  for (int i = 0; i < 10; ++i) {
    const auto location = uniform_input("location", {3, 2}, rng, -4, 4), target = uniform_input("target", {3, 2}, rng, -4, 4);
    const auto scale = uniform_input("scale", {3, 2}, rng, 0.3, 3), freedom = uniform_input("freedom", {3, 2}, rng, 0.5, 80);
    const auto count = uniform_input("count", {3, 2}, rng, 0.5, 40);
    expect_gradients({freedom, location, scale, target}, [](const auto& v) { return losses::student_t_nll(v[0], v[1], v[2], v[3]); });
    expect_gradients({freedom, location, count}, [](const auto& v) { return losses::negative_binomial_nll(v[0], v[1], v[2]); });
    expect_gradients({location, scale, target}, [](const auto& v) { return losses::crps_gaussian(v[0], v[1], v[2]); });
    expect_gradients({location, target}, [](const auto& v) { return losses::cosine_distance(v[0], v[1]); });
    const auto path = uniform_input("path", {2, 5, 3}, rng, -2, 2), slower = uniform_input("slower", {2, 7, 3}, rng, -2, 2);
    expect_gradients({path, slower}, [](const auto& v) { return losses::soft_dtw(v[0], v[1], 0.5); });
    const auto row = uniform_input("target", {3}, rng, -4, 4);
    expect_gradients({location, location, scale, row}, [](const auto& v) { return losses::mixture_nll(v[0], v[1], v[2], v[3]); });
  }
}

TEST(LossGradients, AtEqualityAreTheMeanOfBothSides) {
  Tape<double> tape;
  const std::vector<double> one{1};
  const auto x = tape.leaf({1}, one), t = tape.constant({1}, one);
  tape.backward(losses::pinball(x, t, 0.9));
  EXPECT_DOUBLE_EQ(tape.grad(x)[0], -0.4);
  tape.zero_grads();
  tape.backward(losses::absolute_error(x, t));
  EXPECT_EQ(tape.grad(x)[0], 0);
}

TEST(GammaFunction, DerivativesAreThoseOfTheLogarithm) {
  for (double x = 0.05; x < 3e3; x *= 1.17) {
    const double h = 1e-3 * x;
    const auto slope = [&](auto f) { return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h); };
    EXPECT_NEAR(digamma(x), slope(log_gamma), 2e-11 * (1 + 1 / x + std::abs(std::log(x)))) << x;
    EXPECT_NEAR(digamma_half_step(x), slope(log_gamma_half_step), 1e-10 / x) << x;
    EXPECT_NEAR(log_gamma_half_step(x), log_gamma(x + 0.5) - log_gamma(x), 1e-14 * (20 + x * std::log1p(x))) << x;
  }
  EXPECT_NEAR(digamma(1), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(digamma(0.5), -1.9635100260214235, 1e-14);
  EXPECT_NEAR(log_gamma_half_step(1e30), 0.5 * std::log(1e30), 1e-13);
}

}  // namespace
}  // namespace kizzasi
