#include "kizzasi/autograd/scans.h"
#include "kizzasi/autograd/in_double.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/recurrent.h"

#include <gtest/gtest.h>

#include <complex>
#include <functional>

#include "kizzasi/autograd/scan_laws_test.h"

namespace kizzasi::autograd {
namespace {

// ---- conv1d

const auto conv1d_op = [](const auto& v) { return conv1d(v[0], v[1], v[2]); };

std::vector<CheckedInput> conv1d_inputs(std::size_t batch, std::size_t time, std::size_t channels, std::size_t taps, Rng& rng) {
  return {normal_input("x", {batch, time, channels}, rng), normal_input("w", {channels, 1, taps}, rng),
          normal_input("bias", {channels}, rng)};
}

Values conv1d_truth(const std::vector<CheckedInput>& in) {
  const Dims& d = in[0].dims;
  const std::size_t taps = in[1].dims[2];
  Values y;
  for (std::size_t b = 0; b < d[0]; ++b) {
    for (std::size_t t = 0; t < d[1]; ++t) {
      for (std::size_t e = 0; e < d[2]; ++e) {
        double sum = in[2].values[e];
        for (std::size_t lag = 0; lag < taps && lag <= t; ++lag) {
          sum += in[1].values[e * taps + taps - 1 - lag] * in[0].values[(b * d[1] + t - lag) * d[2] + e];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(Conv1dOp, IsTheCausalSumAndItsGradientsAreThoseOfDifferences) {
  Rng rng(1);
  for (const auto& [time, channels, taps] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{1, 3, 4}, {3, 1, 4}, {9, 5, 4}, {40, 33, 2}, {7, 4, 1}}) {
    const auto inputs = conv1d_inputs(2, time, channels, taps, rng);
    Tape<double> tape;
    expect_values(conv1d_op(leaves(tape, inputs)), conv1d_truth(inputs), 1e-13);
    expect_gradients(inputs, conv1d_op);
    expect_f32_follows_f64(conv1d_op, inputs, 3e-6);
  }
}

TEST(Conv1dOp, NeedsNoBias) {
  Rng rng(2);
  auto inputs = conv1d_inputs(2, 11, 6, 4, rng);
  inputs.pop_back();
  expect_gradients(inputs, [](const auto& v) { return conv1d(v[0], v[1], Var<double>{}); });
  Tape<double> tape;
  const auto v = leaves(tape, inputs);
  const Var<double> y = conv1d(v[0], v[1], Var<double>{});
  inputs.push_back({"bias", {6}, Values(6, 0.0)});
  expect_values(y, conv1d_truth(inputs), 1e-13);
}

// x (batch, time, channels), w (outputs, channels, K), bias (outputs) -> the causal sums, taps `dilation` apart; depthwise where w has one
// channel.
Values dilated_truth(const std::vector<CheckedInput>& in, std::size_t dilation) {
  const std::size_t batch = in[0].dims[0], time = in[0].dims[1], channels = in[0].dims[2];
  const std::size_t outputs = in[1].dims[0], each = in[1].dims[1], taps = in[1].dims[2];
  Values y;
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t o = 0; o < outputs; ++o) {
        double sum = in[2].values[o];
        for (std::size_t c = 0; c < each; ++c) {
          for (std::size_t j = 0; j < taps; ++j) {
            const std::size_t lag = (taps - 1 - j) * dilation, channel = each == 1 ? o : c;
            if (lag <= t) sum += in[1].values[(o * each + c) * taps + j] * in[0].values[(i * time + t - lag) * channels + channel];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(Conv1dOp, WithDilationIsTheCausalSumAndItsGradientsAreThoseOfDifferences) {
  Rng rng(3);
  for (const std::size_t dilation : {1, 2, 3, 8, 50}) {
    for (const auto& [time, channels, taps] :
         {std::tuple<std::size_t, std::size_t, std::size_t>{1, 3, 4}, {9, 5, 3}, {40, 33, 2}, {21, 4, 1}}) {
      const auto op = [=, dilation = dilation](const auto& v) { return conv1d(v[0], v[1], v[2], dilation); };
      const auto inputs = conv1d_inputs(2, time, channels, taps, rng);
      Tape<double> tape;
      expect_values(op(leaves(tape, inputs)), dilated_truth(inputs, dilation), 1e-13);
      expect_gradients(inputs, op);
      expect_f32_follows_f64(op, inputs, 3e-6);
    }
  }
}

TEST(CausalConvOp, IsTheCausalSumOverAllChannelsAndItsGradientsAreThoseOfDifferences) {
  Rng rng(4);
  for (const std::size_t dilation : {1, 2, 8, 50}) {
    for (const auto& [time, channels, outputs, taps] :
         {std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>{1, 3, 2, 4}, {9, 5, 7, 3}, {40, 6, 3, 2}, {12, 1, 4, 1}}) {
      const std::vector<CheckedInput> inputs{normal_input("x", {2, time, channels}, rng), normal_input("w", {outputs, channels, taps}, rng),
                                             normal_input("bias", {outputs}, rng)};
      const auto op = [=, dilation = dilation](const auto& v) { return causal_conv(v[0], v[1], v[2], dilation); };
      Tape<double> tape;
      const Var<double> y = op(leaves(tape, inputs));
      EXPECT_EQ(y.dims(), (Dims{2, time, outputs}));
      // One channel in would be read as depthwise by the truth: it has one output then too.
      if (channels > 1) expect_values(y, dilated_truth(inputs, dilation), 1e-13);
      expect_gradients(inputs, op);
      expect_f32_follows_f64(op, inputs, 3e-6);
    }
  }
}

// ---- selective_scan

const auto selective_op = [](const auto& v) { return selective_scan(v[0], v[1], v[2], v[3], v[4], v[5]); };

std::vector<CheckedInput> selective_inputs(std::size_t batch, std::size_t time, std::size_t channels, std::size_t states, Rng& rng,
                                           double most_delta = 0.5) {
  return {normal_input("x", {batch, time, channels}, rng),        uniform_input("delta", {batch, time, channels}, rng, 1e-3, most_delta),
          uniform_input("a", {channels, states}, rng, -4, -0.02), normal_input("b", {batch, time, states}, rng),
          normal_input("c", {batch, time, states}, rng),          normal_input("d", {channels}, rng)};
}

// y[t] = d x[t] + sum_{s <= t} sum_n c[t][n] exp(a (delta[s+1] + ... + delta[t])) delta[s] b[s][n] x[s]: the convolution that the scan
// unrolls to.
Values selective_truth(const std::vector<CheckedInput>& in) {
  const std::size_t batch = in[0].dims[0], time = in[0].dims[1], channels = in[0].dims[2], states = in[2].dims[1];
  Values y;
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t e = 0; e < channels; ++e) {
        double sum = in[5].values[e] * in[0].values[(i * time + t) * channels + e], lag = 0;
        for (std::size_t s = t + 1; s-- > 0;) {
          const std::size_t at = (i * time + s) * channels + e;
          for (std::size_t n = 0; n < states; ++n) {
            sum += in[4].values[(i * time + t) * states + n] * std::exp(in[2].values[e * states + n] * lag) * in[1].values[at] *
                   in[3].values[(i * time + s) * states + n] * in[0].values[at];
          }
          lag += in[1].values[at];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(SelectiveScanOp, IsTheUnrolledSumAndItsGradientsAreThoseOfDifferences) {
  Rng rng(3);
  for (const auto& [time, channels, states] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {5, 3, 2}, {33, 9, 4}, {70, 5, 3}}) {
    const auto inputs = selective_inputs(2, time, channels, states, rng);
    Tape<double> tape;
    expect_values(selective_op(leaves(tape, inputs)), selective_truth(inputs), 1e-12);
    expect_gradients(inputs, selective_op);
  }
}

TEST(SelectiveScanOp, FollowsItsDoubleFormInF32) {
  Rng rng(4);
  for (const std::size_t channels : {1, 2, 7, 8, 9, 16, 31, 40}) {
    for (const std::size_t time : {1, 2, 31, 32, 33, 64, 100}) {
      for (const std::size_t states : {1, 4, 16, 19}) {
        SCOPED_TRACE(testing::Message() << "channels " << channels << " time " << time << " states " << states);
        expect_f32_follows_f64(selective_op, selective_inputs(2, time, channels, states, rng), 1e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(SelectiveScanOp, StaysFiniteWhereDecaysVanish) {
  Rng rng(5);
  auto inputs = selective_inputs(1, 80, 9, 4, rng, 60.0);
  for (double& a : inputs[2].values) a *= 100;
  expect_f32_follows_f64(selective_op, inputs, 1e-5);
}

// ---- ssd

auto ssd_op(std::size_t chunk) {
  return [chunk](const auto& v) { return ssd(v[0], v[1], v[2], v[3], v[4], v[5], chunk); };
}

struct SsdSizes {
  std::size_t batch, time, heads, head_dim, groups, states;
};

std::vector<CheckedInput> ssd_inputs(const SsdSizes& s, Rng& rng, double most_delta = 0.5, bool wide_skip = false) {
  return {normal_input("x", {s.batch, s.time, s.heads, s.head_dim}, rng),
          uniform_input("delta", {s.batch, s.time, s.heads}, rng, 1e-3, most_delta),
          uniform_input("a", {s.heads}, rng, -8, -0.02),
          normal_input("b", {s.batch, s.time, s.groups, s.states}, rng),
          normal_input("c", {s.batch, s.time, s.groups, s.states}, rng),
          normal_input("d", wide_skip ? Dims{s.heads, s.head_dim} : Dims{s.heads}, rng)};
}

// y[t] = d x[t] + sum_{s <= t} (c[t] . b[s]) exp(a (delta[s+1] + ... + delta[t])) delta[s] x[s]: the attention that the scan is dual to.
Values ssd_truth(const SsdSizes& s, const std::vector<CheckedInput>& in) {
  Values y;
  for (std::size_t i = 0; i < s.batch; ++i) {
    for (std::size_t t = 0; t < s.time; ++t) {
      for (std::size_t h = 0; h < s.heads; ++h) {
        const std::size_t group = h / (s.heads / s.groups);
        for (std::size_t p = 0; p < s.head_dim; ++p) {
          const auto x = [&](std::size_t row) { return in[0].values[((i * s.time + row) * s.heads + h) * s.head_dim + p]; };
          double sum = in[5].values[in[5].dims.size() == 2 ? h * s.head_dim + p : h] * x(t), lag = 0;
          for (std::size_t row = t + 1; row-- > 0;) {
            double score = 0;
            for (std::size_t n = 0; n < s.states; ++n) {
              score += in[4].values[((i * s.time + t) * s.groups + group) * s.states + n] *
                       in[3].values[((i * s.time + row) * s.groups + group) * s.states + n];
            }
            const double delta = in[1].values[(i * s.time + row) * s.heads + h];
            sum += score * std::exp(in[2].values[h] * lag) * delta * x(row);
            lag += delta;
          }
          y.push_back(sum);
        }
      }
    }
  }
  return y;
}

TEST(SsdOp, IsTheDualAttentionAndItsGradientsAreThoseOfDifferences) {
  Rng rng(6);
  for (const SsdSizes& s : {SsdSizes{1, 1, 1, 1, 1, 1}, {2, 5, 2, 3, 1, 2}, {2, 21, 4, 2, 2, 3}, {1, 40, 3, 4, 3, 5}}) {
    for (const bool wide_skip : {false, true}) {
      const auto inputs = ssd_inputs(s, rng, 0.5, wide_skip);
      Tape<double> tape;
      expect_values(ssd_op(8)(leaves(tape, inputs)), ssd_truth(s, inputs), 1e-12);
      expect_gradients(inputs, ssd_op(8));
    }
  }
}

TEST(SsdOp, FollowsItsDoubleFormInF32ForEveryChunk) {
  Rng rng(7);
  for (const SsdSizes& s :
       {SsdSizes{2, 1, 1, 1, 1, 1}, {1, 17, 2, 8, 1, 16}, {2, 64, 4, 16, 2, 16}, {1, 65, 3, 5, 1, 7}, {1, 130, 2, 64, 1, 32}}) {
    for (const std::size_t chunk : {1, 16, 64, 256}) {
      for (const bool wide_skip : {false, true}) {
        SCOPED_TRACE(testing::Message() << "time " << s.time << " heads " << s.heads << " chunk " << chunk);
        expect_f32_follows_f64(ssd_op(chunk), ssd_inputs(s, rng, 0.5, wide_skip), 1e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(SsdOp, StaysFiniteWhereDecaysVanish) {
  Rng rng(8);
  auto inputs = ssd_inputs({1, 150, 2, 8, 1, 8}, rng, 60.0);
  for (double& a : inputs[2].values) a *= 100;
  for (const std::size_t chunk : {16, 64}) expect_f32_follows_f64(ssd_op(chunk), inputs, 1e-5);
}

// ---- diagonal_scan

const auto diagonal_op = [](const auto& v) { return diagonal_scan(v[0], v[1], v[2], v[3]); };

std::vector<CheckedInput> diagonal_inputs(std::size_t batch, std::size_t time, std::size_t channels, std::size_t states, Rng& rng) {
  std::vector<CheckedInput> inputs = {normal_input("x", {batch, time, channels}, rng), normal_input("a", {2, states, channels}, rng),
                                      normal_input("c", {2, states, channels}, rng), normal_input("d", {channels}, rng)};
  for (std::size_t i = 0; i < states * channels; ++i) {
    const std::complex<double> pole = std::polar(rng.uniform(0.5, 0.99), rng.uniform(-3.1, 3.1));
    inputs[1].values[i] = pole.real();
    inputs[1].values[states * channels + i] = pole.imag();
  }
  return inputs;
}

// y[t] = d x[t] + sum_lag Re(sum_n c_n a_n^lag) x[t - lag]: the convolution with the Vandermonde kernel.
Values diagonal_truth(const std::vector<CheckedInput>& in) {
  const std::size_t batch = in[0].dims[0], time = in[0].dims[1], channels = in[0].dims[2], states = in[1].dims[1];
  const std::size_t plane = states * channels;
  Values y;
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t e = 0; e < channels; ++e) {
        double sum = in[3].values[e] * in[0].values[(i * time + t) * channels + e];
        for (std::size_t n = 0; n < states; ++n) {
          const std::size_t at = n * channels + e;
          const std::complex<double> a(in[1].values[at], in[1].values[plane + at]), c(in[2].values[at], in[2].values[plane + at]);
          for (std::size_t lag = 0; lag <= t; ++lag) {
            sum += (c * std::pow(a, static_cast<double>(lag))).real() * in[0].values[(i * time + t - lag) * channels + e];
          }
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(DiagonalScanOp, IsTheConvolutionWithItsKernelAndItsGradientsAreThoseOfDifferences) {
  Rng rng(9);
  for (const auto& [time, channels, states] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {6, 3, 2}, {35, 9, 4}}) {
    const auto inputs = diagonal_inputs(2, time, channels, states, rng);
    Tape<double> tape;
    expect_values(diagonal_op(leaves(tape, inputs)), diagonal_truth(inputs), 1e-12);
    expect_gradients(inputs, diagonal_op);
  }
}

TEST(DiagonalScanOp, FollowsItsDoubleFormInF32) {
  Rng rng(10);
  for (const std::size_t channels : {1, 5, 8, 17, 32}) {
    for (const std::size_t time : {1, 31, 32, 33, 100}) {
      for (const std::size_t states : {1, 3, 16}) {
        SCOPED_TRACE(testing::Message() << "channels " << channels << " time " << time << " states " << states);
        expect_f32_follows_f64(diagonal_op, diagonal_inputs(2, time, channels, states, rng), 1e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// ---- gated_scan

const auto gated_op = [](const auto& v) { return gated_scan(v[0], v[1]); };

std::vector<CheckedInput> gated_inputs(std::size_t batch, std::size_t time, std::size_t channels, Rng& rng) {
  return {uniform_input("a", {batch, time, channels}, rng, -1, 1), normal_input("x", {batch, time, channels}, rng)};
}

// Without a recurrence: y[t] = sum over s <= t of x[s] times the product of a after s.
Values gated_truth(const std::vector<CheckedInput>& in) {
  const Dims& d = in[0].dims;
  Values y;
  for (std::size_t b = 0; b < d[0]; ++b) {
    for (std::size_t t = 0; t < d[1]; ++t) {
      for (std::size_t e = 0; e < d[2]; ++e) {
        double sum = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double term = in[1].values[(b * d[1] + s) * d[2] + e];
          for (std::size_t k = s + 1; k <= t; ++k) term *= in[0].values[(b * d[1] + k) * d[2] + e];
          sum += term;
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

TEST(GatedScanOp, IsTheSumOfDecayedInputsAndItsGradientsAreThoseOfDifferences) {
  Rng rng(11);
  for (const auto& [time, channels] : {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {40, 19}, {5, 70}}) {
    const auto inputs = gated_inputs(2, time, channels, rng);
    Tape<double> tape;
    expect_values(gated_op(leaves(tape, inputs)), gated_truth(inputs), 1e-13);
    expect_gradients(inputs, gated_op);
    expect_f32_follows_f64(gated_op, inputs, 3e-6);
  }
}

// ---- complex_scan

const auto complex_op = [](const auto& v) { return complex_scan(v[0], v[1], v[2]); };

std::vector<CheckedInput> complex_inputs(std::size_t batch, std::size_t time, std::size_t states, Rng& rng) {
  std::vector<CheckedInput> inputs{normal_input("x", {batch, time, 2 * states}, rng), normal_input("a", {2, states}, rng),
                                   normal_input("b", {2, states}, rng)};
  for (std::size_t n = 0; n < states; ++n) {
    const std::complex<double> pole = std::polar(rng.uniform(0.5, 0.99), rng.uniform(-3.1, 3.1));
    inputs[1].values[n] = pole.real();
    inputs[1].values[states + n] = pole.imag();
  }
  return inputs;
}

// Without a recurrence: h[t] = sum over s <= t of a^(t - s) b x[s].
Values complex_truth(const std::vector<CheckedInput>& in) {
  const std::size_t batch = in[0].dims[0], time = in[0].dims[1], width = in[0].dims[2], states = width / 2;
  Values y(batch * time * width);
  const auto number = [states](const double* row, std::size_t n) { return std::complex<double>(row[n], row[states + n]); };
  for (std::size_t i = 0; i < batch; ++i) {
    for (std::size_t t = 0; t < time; ++t) {
      for (std::size_t n = 0; n < states; ++n) {
        std::complex<double> sum = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          sum += std::pow(number(in[1].values.data(), n), static_cast<double>(t - s)) * number(&in[0].values[(i * time + s) * width], n);
        }
        sum *= number(in[2].values.data(), n);
        y[(i * time + t) * width + n] = sum.real();
        y[(i * time + t) * width + states + n] = sum.imag();
      }
    }
  }
  return y;
}

TEST(ComplexScanOp, IsTheSumOfTurnedInputsAndItsGradientsAreThoseOfDifferences) {
  Rng rng(13);
  for (const auto& [time, states] : {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {40, 19}, {130, 5}}) {
    const auto inputs = complex_inputs(2, time, states, rng);
    Tape<double> tape;
    expect_values(complex_op(leaves(tape, inputs)), complex_truth(inputs), 1e-12);
    expect_gradients(inputs, complex_op);
  }
}

TEST(ComplexScanOp, FollowsItsDoubleFormInF32) {
  Rng rng(14);
  for (const std::size_t states : {1, 2, 7, 8, 16, 17, 33, 70}) {
    for (const std::size_t time : {1, 2, 63, 64, 65, 200}) {
      SCOPED_TRACE(testing::Message() << "states " << states << " time " << time);
      expect_f32_follows_f64(complex_op, complex_inputs(2, time, states, rng), 1e-5);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- dplr_scan

const auto dplr_op = [](const auto& v) {
  using T = std::remove_const_t<std::remove_reference_t<decltype(v[0].value()[0])>>;
  return dplr_scan(v[0], DplrCoefficients<T>{v[1], v[2], v[3], v[4], v[5], v[6]});
};

std::vector<CheckedInput> dplr_inputs(std::size_t batch, std::size_t time, std::size_t channels, std::size_t states, Rng& rng) {
  const Dims planes{2, states, channels};
  std::vector<CheckedInput> inputs{normal_input("x", {batch, time, channels}, rng),
                                   normal_input("a", planes, rng),
                                   normal_input("b", planes, rng),
                                   normal_input("c", planes, rng),
                                   normal_input("p", planes, rng, 0.4),
                                   normal_input("r", planes, rng, 0.4 / static_cast<double>(states)),
                                   normal_input("d", {channels}, rng)};
  for (std::size_t i = 0; i < states * channels; ++i) {
    const std::complex<double> pole = std::polar(rng.uniform(0.3, 0.8), rng.uniform(-3.1, 3.1));
    inputs[1].values[i] = pole.real();
    inputs[1].values[states * channels + i] = pole.imag();
  }
  return inputs;
}

// Each channel as a dense real recurrence of 2 N numbers: s = (diag(a) + r p^T) s + b x, y = c^T s + d x.
Values dplr_truth(const std::vector<CheckedInput>& in) {
  const std::size_t batch = in[0].dims[0], time = in[0].dims[1], channels = in[0].dims[2], states = in[1].dims[1],
                    plane = states * channels;
  Values y(batch * time * channels);
  for (std::size_t e = 0; e < channels; ++e) {
    const std::size_t size = 2 * states;
    Values dense(size * size), from(size), out(size);
    const auto at = [&](std::size_t k, std::size_t n, std::size_t part) { return in[k].values[part * plane + n * channels + e]; };
    for (std::size_t n = 0; n < states; ++n) {
      dense[2 * n * size + 2 * n] = dense[(2 * n + 1) * size + 2 * n + 1] = at(1, n, 0);
      dense[2 * n * size + 2 * n + 1] = -at(1, n, 1), dense[(2 * n + 1) * size + 2 * n] = at(1, n, 1);
      from[2 * n] = at(2, n, 0), from[2 * n + 1] = at(2, n, 1);
      out[2 * n] = at(3, n, 0), out[2 * n + 1] = -at(3, n, 1);
    }
    for (std::size_t i = 0; i < size; ++i) {
      for (std::size_t j = 0; j < size; ++j) dense[i * size + j] += at(5, i / 2, i % 2) * (j % 2 == 0 ? at(4, j / 2, 0) : -at(4, j / 2, 1));
    }
    for (std::size_t b = 0; b < batch; ++b) {
      Values s(size), next(size);
      for (std::size_t t = 0; t < time; ++t) {
        const double x = in[0].values[(b * time + t) * channels + e];
        double sum = in[6].values[e] * x;
        for (std::size_t i = 0; i < size; ++i) {
          next[i] = from[i] * x;
          for (std::size_t j = 0; j < size; ++j) next[i] += dense[i * size + j] * s[j];
          sum += out[i] * next[i];
        }
        s = next;
        y[(b * time + t) * channels + e] = sum;
      }
    }
  }
  return y;
}

TEST(DplrScanOp, IsTheDenseRecurrenceAndItsGradientsAreThoseOfDifferences) {
  Rng rng(16);
  for (const auto& [time, channels, states] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {6, 3, 2}, {35, 9, 4}}) {
    const auto inputs = dplr_inputs(2, time, channels, states, rng);
    Tape<double> tape;
    expect_values(dplr_op(leaves(tape, inputs)), dplr_truth(inputs), 1e-12);
    expect_gradients(inputs, dplr_op);
  }
}

TEST(DplrScanOp, FollowsItsDoubleFormInF32) {
  Rng rng(17);
  for (const std::size_t channels : {1, 5, 8, 17, 32}) {
    for (const std::size_t time : {7, 15, 16, 17, 100}) {
      for (const std::size_t states : {1, 3, 16, 35}) {
        SCOPED_TRACE(testing::Message() << "channels " << channels << " time " << time << " states " << states);
        expect_f32_follows_f64(dplr_op, dplr_inputs(2, time, channels, states, rng), 1e-5);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// ---- in_double

TEST(InDouble, IsTheMapItselfWithItsGradientsAndKeepsTheDigitsThatF32WouldLose) {
  Rng rng(15);
  const auto map = [](const std::vector<Var<double>>& v) { return mul(cos(exp(v[0])), v[1]); };
  const auto op = [map](const auto& v) { return in_double(v, map); };
  const std::vector<CheckedInput> inputs{normal_input("x", {3, 4}, rng), normal_input("y", {4}, rng)};
  expect_gradients(inputs, op);
  expect_f32_follows_f64(op, inputs, 3e-7);
  // A phase of 1e4 radians: f32 holds 1e4 to 5e-4 only, its logarithm less; the map of the f32 argument comes out to the last digit.
  Tape<float> tape;
  const std::vector<float> large{9.25f}, one{1};
  const Var<float> y = op(std::vector<Var<float>>{tape.leaf({1}, large), tape.leaf({1}, one)});
  EXPECT_FLOAT_EQ(y.value()[0], static_cast<float>(std::cos(std::exp(9.25))));
}

// ---- lstm, gru

// One column of numbers of (batch, time, width) at one time.
template <typename T>
Var<T> at_time(Var<T> x, std::size_t t) {
  return reshape(slice(x, 1, t, t + 1), {x.dims()[0], x.dims()[2]});
}

// The cells of the papers, step by step from primitives.
template <typename T>
Var<T> composed(bool is_lstm, Var<T> x, Var<T> u, Var<T> c) {
  const std::size_t batch = x.dims()[0], time = x.dims()[1], width = u.dims()[1];
  const std::vector<T> zeros(batch * width);
  Var<T> h = x.tape->constant({batch, width}, zeros), memory = h;
  std::vector<Var<T>> all;
  for (std::size_t t = 0; t < time; ++t) {
    const Var<T> in = at_time(x, t), inside = linear(h, u, c);
    const auto gate = [&](Var<T> of, std::size_t i) { return slice(of, 1, i * width, (i + 1) * width); };
    if (is_lstm) {
      const Var<T> a = add(in, inside);
      memory = add(mul(sigmoid(gate(a, 1)), memory), mul(sigmoid(gate(a, 0)), tanh(gate(a, 2))));
      h = mul(sigmoid(gate(a, 3)), tanh(memory));
    } else {
      const Var<T> r = sigmoid(add(gate(in, 0), gate(inside, 0))), z = sigmoid(add(gate(in, 1), gate(inside, 1)));
      const Var<T> n = tanh(add(gate(in, 2), mul(r, gate(inside, 2))));
      h = add(n, mul(z, sub(h, n)));
    }
    all.push_back(reshape(h, {batch, 1, width}));
  }
  return concat(std::span<const Var<T>>(all), 1);
}

const auto lstm_op = [](const auto& v) { return lstm(v[0], v[1]); };
const auto gru_op = [](const auto& v) { return gru(v[0], v[1], v[2]); };

TEST(RecurrentOps, AreTheirCellsAndTheirGradientsAreThoseOfDifferences) {
  Rng rng(12);
  for (const auto& [batch, time, width] : {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {2, 5, 3}, {3, 20, 9}, {2, 3, 33}}) {
    const std::vector<CheckedInput> long_memory{normal_input("x", {batch, time, 4 * width}, rng),
                                                normal_input("u", {4 * width, width}, rng, 0.5)};
    const std::vector<CheckedInput> gated{normal_input("x", {batch, time, 3 * width}, rng), normal_input("u", {3 * width, width}, rng, 0.5),
                                          normal_input("c", {3 * width}, rng)};
    Tape<double> tape;
    const auto values = [](Var<double> y) { return Values(y.value().begin(), y.value().end()); };
    const auto a = leaves(tape, long_memory), b = leaves(tape, gated);
    expect_values(lstm_op(a), values(composed<double>(true, a[0], a[1], {})), 1e-13);
    expect_values(gru_op(b), values(composed<double>(false, b[0], b[1], b[2])), 1e-13);
    expect_gradients(long_memory, lstm_op);
    expect_gradients(gated, gru_op);
    expect_gradients({gated[0], gated[1]}, [](const auto& v) { return gru(v[0], v[1], Var<double>{}); });
    expect_f32_follows_f64(lstm_op, long_memory, 3e-6);
    expect_f32_follows_f64(gru_op, gated, 3e-6);
  }
}

}  // namespace
}  // namespace kizzasi::autograd
