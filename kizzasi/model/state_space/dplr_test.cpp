// The discretised diagonal-plus-low-rank system beside annotated-s4's dense one, and its differentiable form beside the plain one.
#include "kizzasi/model/state_space/dplr.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kizzasi/autograd/gradient_check_test.h"
#include "kizzasi/tensor/safetensors.h"

namespace kizzasi {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> numbers(const SafetensorsFile& file, const char* name) {
  std::vector<Complex> out;
  const std::vector<double>& values = file.wide.at(name);
  for (std::size_t i = 0; i < values.size(); i += 2) out.emplace_back(values[i], values[i + 1]);
  return out;
}

// The tables hold both conjugate halves, by rising imaginary part; eigenvectors have a phase of their own, so the second half of every
// vector is `phase` times the conjugates of the first.
TEST(Dplr, IsTheDenseSystemOfTheReference) {
  for (const char* name : {"dplr_kernel_a", "dplr_kernel_b"}) {
    SCOPED_TRACE(name);
    const auto file = read_safetensors(std::string(KIZZASI_SOURCE_DIR "/tests/golden/backbones/s4/") + name + ".io.safetensors");
    ASSERT_TRUE(file) << file.error().text();
    const std::vector<Complex> lambda = numbers(*file, "Lambda"), p = numbers(*file, "P"), b = numbers(*file, "B"),
                               c = numbers(*file, "Cb"), a_bar = numbers(*file, "Ab"), b_bar = numbers(*file, "Bb"),
                               state = numbers(*file, "state");
    const std::vector<double>&u = file->wide.at("u"), &output = file->wide.at("output"), &kernel = file->wide.at("kernel");
    const std::size_t all = lambda.size(), half = all / 2;
    std::vector<Complex> phase, read;
    for (std::size_t n = 0; n < half; ++n) {
      ASSERT_NEAR(std::abs(lambda[all - 1 - n] - std::conj(lambda[n])), 0, 1e-12);
      phase.push_back(p[all - 1 - n] / std::conj(p[n]));
      ASSERT_NEAR(std::abs(b[all - 1 - n] - phase[n] * std::conj(b[n])), 0, 1e-12);
      read.push_back(0.5 * (c[n] + std::conj(c[all - 1 - n] * phase[n])));
    }
    std::vector<DplrElement> x(half);
    const auto first = [half](const std::vector<Complex>& v) { return std::span(v).first(half); };
    discretize_dplr({first(lambda), first(p), first(b), read}, 1 / static_cast<double>(u.size()), x);
    for (std::size_t n = 0; n < half; ++n) {
      EXPECT_NEAR(std::abs(x[n].b - b_bar[n]), 0, 1e-12);
      for (std::size_t m = 0; m < half; ++m) {
        const Complex rank_one = 0.5 * x[n].r * x[m].shared, other = 0.5 * x[n].r * std::conj(phase[m] * x[m].shared);
        EXPECT_NEAR(std::abs((n == m ? x[n].a : 0.0) + rank_one - a_bar[n * all + m]), 0, 1e-12);
        EXPECT_NEAR(std::abs(other - a_bar[n * all + all - 1 - m]), 0, 1e-12);
      }
    }
    // The answers to an impulse and to u.
    const auto answers = [&](auto input, const std::vector<double>& truth) {
      std::vector<Complex> h(half);
      for (std::size_t t = 0; t < truth.size(); ++t) {
        double shared = 0, y = 0;
        for (std::size_t n = 0; n < half; ++n) shared += (x[n].shared * h[n]).real();
        for (std::size_t n = 0; n < half; ++n) {
          h[n] = x[n].a * h[n] + x[n].b * input(t) + x[n].r * shared;
          y += (x[n].c * h[n]).real();
        }
        EXPECT_NEAR(y, truth[t], 1e-12) << t;
      }
      return h;
    };
    answers([](std::size_t t) { return t == 0 ? 1.0 : 0.0; }, kernel);
    const std::vector<Complex> last = answers([&](std::size_t t) { return u[t]; }, output);
    for (std::size_t n = 0; n < half; ++n) EXPECT_NEAR(std::abs(last[n] - state[n]), 0, 1e-12);
  }
}

std::vector<autograd::CheckedInput> random_system(std::size_t channels, std::size_t states, Rng& rng) {
  return {autograd::uniform_input("log_dt", {channels}, rng, -5, -1),   autograd::uniform_input("a_real", {channels, states}, rng, -2, 1),
          autograd::normal_input("a_imag", {channels, states}, rng, 5), autograd::normal_input("p", {channels, states, 2}, rng),
          autograd::normal_input("b", {channels, states, 2}, rng),      autograd::normal_input("c", {channels, states, 2}, rng)};
}

TEST(Dplr, ThePlainAndTheDifferentiableFormAgreeAndGradientsAreThoseOfDifferences) {
  Rng rng(1);
  const std::size_t channels = 3, states = 4;
  const auto inputs = random_system(channels, states, rng);
  const auto build = [](const auto& v) { return discretize_dplr(v[0], v[1], v[2], v[3], v[4], v[5]); };
  autograd::Tape<double> tape;
  const auto planes = autograd::evaluate(tape, inputs, build).value;
  for (std::size_t e = 0; e < channels; ++e) {
    std::vector<Complex> lambda, p, b, c;
    for (std::size_t i = e * states; i < (e + 1) * states; ++i) {
      const auto number = [&](std::size_t k) { return Complex(inputs[k].values[2 * i], inputs[k].values[2 * i + 1]); };
      lambda.emplace_back(-std::exp(inputs[1].values[i]), -inputs[2].values[i]);
      p.push_back(number(3)), b.push_back(number(4)), c.push_back(number(5));
    }
    std::vector<DplrElement> column(states);
    discretize_dplr({lambda, p, b, c}, std::exp(inputs[0].values[e]), column);
    for (std::size_t n = 0; n < states; ++n) {
      const Complex truth[] = {column[n].a, column[n].b, column[n].c, column[n].shared, column[n].r};
      for (std::size_t i = 0; i < 5; ++i) {
        const std::size_t at = (2 * i * states + n) * channels + e;
        EXPECT_NEAR(planes[at], truth[i].real(), 1e-13);
        EXPECT_NEAR(planes[at + states * channels], truth[i].imag(), 1e-13);
      }
    }
  }
  autograd::expect_gradients(inputs, build, 1e-7);
  autograd::expect_f32_near_f64(inputs, build, 1e-6);
}

// Second order, and stable for any step: what the bilinear rule is taken for.
TEST(Dplr, HalvingTheStepCutsTheErrorFourTimes) {
  Rng rng(2);
  const auto in = random_system(1, 3, rng);
  std::vector<Complex> lambda, p, b, c;
  for (std::size_t i = 0; i < 3; ++i) {
    lambda.emplace_back(-std::exp(in[1].values[i]), 0.3 * in[2].values[i]);
    p.emplace_back(in[3].values[2 * i], in[3].values[2 * i + 1]);
    b.emplace_back(in[4].values[2 * i], in[4].values[2 * i + 1]);
    c.emplace_back(in[5].values[2 * i], in[5].values[2 * i + 1]);
  }
  // The state after one unit of time with the input held at 1.
  const auto after = [&](int steps) {
    std::vector<DplrElement> x(3);
    discretize_dplr({lambda, p, b, c}, 1.0 / steps, x);
    std::vector<Complex> h(3);
    for (int t = 0; t < steps; ++t) {
      double shared = 0;
      for (std::size_t n = 0; n < 3; ++n) shared += (x[n].shared * h[n]).real();
      for (std::size_t n = 0; n < 3; ++n) h[n] = x[n].a * h[n] + x[n].b + x[n].r * shared;
    }
    return h;
  };
  const auto truth = after(1 << 14);
  const auto error = [&](int steps) {
    double most = 0;
    const auto h = after(steps);
    for (std::size_t n = 0; n < 3; ++n) most = std::max(most, std::abs(h[n] - truth[n]));
    return most;
  };
  for (int steps = 64; steps <= 256; steps *= 2) EXPECT_NEAR(error(steps) / error(2 * steps), 4, 0.15);
}

}  // namespace
}  // namespace kizzasi
