// The laws of the scans with complex states of their own inputs, and diagonal plus rank one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/kernels/complex_scan.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/dplr_scan.h"
#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/scan_laws_test.h"

namespace kizzasi::kernels {
namespace {

// ---- complex_scan

struct ComplexCase {
  Values a, b;
  Inputs in;
  ComplexCase(std::size_t rows, std::size_t states) : a(2 * states), b(normal_values(2 * states, 1.0f, 2)) {
    const auto radius = uniform_values(states, 0.3f, 0.999f, 4), angle = uniform_values(states, -3.1f, 3.1f, 5);
    for (std::size_t n = 0; n < states; ++n) {
      a[n] = radius[n] * std::cos(angle[n]);
      a[states + n] = radius[n] * std::sin(angle[n]);
    }
    in = {rows, 2 * states, {rows_of(rows, 2 * states, -1, 1, 6)}, {2 * states}, normal_values(2 * states, 1.0f, 7)};
  }
  auto step(decltype(&complex_scan) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
      form(a, b, from.view(0, begin, count), h, y);
    };
  }
};

TEST(ComplexScan, KeepsItsLaws) {
  for (const std::size_t states : kChannels) {
    for (const std::size_t rows : kRows) {
      SCOPED_TRACE(testing::Message() << states << " states, " << rows << " rows");
      const ComplexCase c(rows, states);
      expect_laws(c.in, c.step(complex_scan), c.step(complex_scan_plain), 3e-6f);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// The adjoint on every target: of the plain recurrence in double, by sums along time.
TEST(ComplexScan, ItsAdjointIsThatOfTheRecurrence) {
  for (const auto& [rows, states] : {std::pair<std::size_t, std::size_t>{1, 1}, {5, 3}, {64, 17}, {65, 33}, {200, 40}}) {
    SCOPED_TRACE(testing::Message() << states << " states, " << rows << " rows");
    const std::size_t width = 2 * states;
    const ComplexCase c(rows, states);
    const Values x = uniform_values(rows * width, -1, 1, 8), gy = uniform_values(rows * width, -1, 1, 9);
    Values h(width), y(rows * width);
    complex_scan_plain(c.a, c.b, {x.data(), rows, width}, h, {y.data(), rows, width});
    std::vector<double> ga(width, 0.5), gb(width, 0.5), gx(rows * width, 0.5), g(width);
    for (std::size_t t = rows; t-- > 0;) {
      for (std::size_t n = 0, i = states; n < states; ++n, ++i) {
        const double re = gy[t * width + n] + c.a[n] * g[n] + c.a[i] * g[i], im = gy[t * width + i] + c.a[n] * g[i] - c.a[i] * g[n];
        const float* in = &x[t * width];
        gx[t * width + n] += c.b[n] * re + c.b[i] * im, gx[t * width + i] += c.b[n] * im - c.b[i] * re;
        gb[n] += re * in[n] + im * in[i], gb[i] += im * in[n] - re * in[i];
        g[n] = re, g[i] = im;
        if (t == 0) continue;
        const float* before = &y[(t - 1) * width];
        ga[n] += re * before[n] + im * before[i], ga[i] += im * before[n] - re * before[i];
      }
    }
    const auto narrow = [](const std::vector<double>& wide) { return Values(wide.begin(), wide.end()); };
    on_every_target([&] {
      Values fa(width, 0.5f), fb(width, 0.5f), fx(rows * width, 0.5f);
      complex_scan_backward(c.a, c.b, {x.data(), rows, width}, {y.data(), rows, width}, {gy.data(), rows, width},
                            {fa, fb, {fx.data(), rows, width}});
      expect_near(fa, narrow(ga), 5e-6f);
      expect_near(fb, narrow(gb), 5e-6f);
      expect_near(fx, narrow(gx), 5e-6f);
    });
  }
}

// ---- dplr_scan

struct DplrCase {
  Values a, b, c, p, r, d;
  DplrScan scan;
  Inputs in;
  DplrCase(std::size_t rows, std::size_t channels, std::size_t states)
      : a(2 * states * channels),
        b(normal_values(2 * states * channels, 1.0f, 1)),
        c(normal_values(2 * states * channels, 1.0f, 2)),
        p(uniform_values(2 * states * channels, -0.5f, 0.5f, 3)),
        r(p.size()),
        d(normal_values(channels, 1.0f, 4)) {
    const std::size_t plane = states * channels;
    const auto radius = uniform_values(plane, 0.3f, 0.999f, 5), angle = uniform_values(plane, -3.1f, 3.1f, 6);
    for (std::size_t i = 0; i < plane; ++i) {
      a[i] = radius[i] * std::cos(angle[i]);
      a[plane + i] = radius[i] * std::sin(angle[i]);
      // What is shared takes energy out, as in S4: the state stays bounded.
      r[i] = -p[i] / static_cast<float>(states);
      r[plane + i] = p[plane + i] / static_cast<float>(states);
    }
    scan = {channels, states, a, b, c, p, r, d};
    in = {rows, channels, {rows_of(rows, channels, -1, 1, 7)}, {channels}, normal_values(2 * plane, 1.0f, 8)};
  }
  auto step(decltype(&dplr_scan) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
      form(scan, from.view(0, begin, count), h, y);
    };
  }
};

TEST(DplrScan, KeepsItsLaws) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t states : {1, 4, 33}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << states << " states");
        const DplrCase c(rows, channels, states);
        expect_laws(c.in, c.step(dplr_scan), c.step(dplr_scan_plain), 5e-6f);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DplrScan, KeepsNanInItsChannel) {
  const DplrCase c(20, 37, 5);
  expect_nan_stays_in_its_channel(c.in, c.step(dplr_scan));
}

// Of each target beside the best one, which the operation of the tape is tested with against f64 and differences.
TEST(DplrScan, ItsAdjointIsTheSameOnEveryTarget) {
  for (const auto& [rows, channels, states] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{1, 1, 1}, {5, 7, 3}, {16, 16, 4}, {50, 37, 5}}) {
    SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << states << " states");
    const DplrCase c(rows, channels, states);
    const Values x = uniform_values(rows * channels, -1, 1, 8), gy = uniform_values(rows * channels, -1, 1, 9);
    const auto gradients = [&] {
      std::vector<Values> g(7, Values(2 * states * channels, 0.5f));
      g[5].assign(channels, 0.5f);
      g[6].assign(rows * channels, 0.5f);
      Values scratch(dplr_scan_backward_scratch(c.scan, rows));
      dplr_scan_backward(c.scan, {x.data(), rows, channels}, {gy.data(), rows, channels},
                         {{g[6].data(), rows, channels}, g[0], g[1], g[2], g[3], g[4], g[5]}, scratch);
      return g;
    };
    const std::vector<Values> truth = gradients();
    on_every_target([&] {
      const std::vector<Values> here = gradients();
      for (std::size_t i = 0; i < truth.size(); ++i) expect_near(here[i], truth[i], 1e-5f);
    });
  }
}

// Without the shared number it is the diagonal recurrence, b folded into c.
TEST(DplrScan, WithNothingSharedIsTheDiagonalScan) {
  DplrCase c(50, 21, 5);
  std::fill(c.r.begin(), c.r.end(), 0.0f);
  std::fill(c.in.state.begin(), c.in.state.end(), 0.0f);
  Values product(c.c.size());
  const std::size_t plane = product.size() / 2;
  for (std::size_t i = 0; i < plane; ++i) {
    product[i] = c.c[i] * c.b[i] - c.c[plane + i] * c.b[plane + i];
    product[plane + i] = c.c[i] * c.b[plane + i] + c.c[plane + i] * c.b[i];
  }
  const DiagonalScan diagonal{21, 5, c.a, product, c.d};
  const auto step = [&](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
    diagonal_scan(diagonal, from.view(0, begin, count), h, y);
  };
  expect_near(run(c.in, c.step(dplr_scan), {}).y, run(c.in, step, {}).y, 5e-6f);
}

}  // namespace
}  // namespace kizzasi::kernels
