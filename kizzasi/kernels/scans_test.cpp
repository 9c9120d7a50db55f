#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/kernels/scan_laws_test.h"
#include "kizzasi/kernels/selective_scan.h"
#include "kizzasi/kernels/ssd.h"
#include "kizzasi/kernels/wkv4.h"

namespace kizzasi::kernels {
namespace {

// ---- conv1d

TEST(Conv1d, KeepsItsLawsAndEqualsTheCausalSum) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t taps : {1, 2, 4, 7, 70}) {
        const bool biased = (channels + rows) % 2 == 0;
        SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << taps << " taps");
        const auto w = normal_values(taps * channels, 1.0f, 1), bias = normal_values(channels, 1.0f, 2);
        const std::span<const float> b = biased ? std::span<const float>(bias) : std::span<const float>();
        const Inputs in{rows, channels, {rows_of(rows, channels, -1, 1, 3)}, {channels}, normal_values(taps * channels, 1.0f, 4)};
        const auto fast = [&](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> window, MatrixSpan y) {
          conv1d_step(w, b, taps, window, from.view(0, begin, count), y);
        };
        const auto plain = [&](const Inputs& from, std::size_t, std::size_t, std::span<float> window, MatrixSpan y) {
          const auto before = Values(window.begin(), window.end());
          const auto raw = [&](std::ptrdiff_t t, std::size_t e) {  // row t of the input, the window standing before row 0
            return t >= 0 ? from.view(0, 0, rows).row(static_cast<std::size_t>(t))[e]
                          : before[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(taps) + t) * channels + e];
          };
          for (std::size_t t = 0; t < rows; ++t) {
            for (std::size_t e = 0; e < channels; ++e) {
              double sum = biased ? bias[e] : 0.0;
              for (std::size_t lag = 0; lag < taps; ++lag) {
                sum +=
                    double{w[(taps - 1 - lag) * channels + e]} * raw(static_cast<std::ptrdiff_t>(t) - static_cast<std::ptrdiff_t>(lag), e);
              }
              y.row(t)[e] = static_cast<float>(sum);
            }
          }
          for (std::size_t j = 0; j < taps; ++j) {
            for (std::size_t e = 0; e < channels; ++e) {
              window[j * channels + e] = raw(static_cast<std::ptrdiff_t>(rows + j) - static_cast<std::ptrdiff_t>(taps), e);
            }
          }
        };
        expect_laws(in, fast, plain, 2e-6f);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

// ---- gated_scan

TEST(GatedScan, KeepsItsLaws) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows");
      const Inputs in{rows,
                      channels,
                      {rows_of(rows, channels, -1, 1, 3), rows_of(rows, channels, 0, 1, 4)},
                      {channels, channels},
                      normal_values(channels, 1.0f, 5)};
      const auto step = [](auto form) {
        return [form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
          form(from.view(1, begin, count), from.view(0, begin, count), h, y);
        };
      };
      expect_laws(in, step(gated_scan), step(gated_scan_plain), 1e-6f);
      expect_nan_stays_in_its_channel(in, step(gated_scan));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

// ---- wkv4

TEST(Wkv4, KeepsItsLaws) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows");
      const Values w = uniform_values(channels, -3.0f, -0.01f, 6), u = normal_values(channels, 1.0f, 7);
      // The first third of the state are the sums of values, the second those of weights, the last the exponents.
      Inputs in{rows, channels, {rows_of(rows, channels, -9, 9, 3), rows_of(rows, channels, -1, 1, 4)}, {channels, channels}, {}};
      in.state = uniform_values(3 * channels, 0.5f, 1.0f, 5);
      const auto step = [&](auto form) {
        return [&, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> s, MatrixSpan y) {
          const Wkv4State state{s.first(channels), s.subspan(channels, channels), s.subspan(2 * channels)};
          form({w, u}, from.view(0, begin, count), from.view(1, begin, count), state, y);
        };
      };
      expect_laws(in, step(wkv4), step(wkv4_plain), 3e-6f);
      expect_nan_stays_in_its_channel(in, step(wkv4));
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Wkv4, BigExponentsStayInRange) {
  // The definition without its running exponent overflows from e^88 on; shifting every k by one number changes nothing.
  const std::size_t channels = 19, rows = 40;
  const Values w = uniform_values(channels, -2.0f, -0.01f, 1), u = normal_values(channels, 1.0f, 2);
  const Values small = uniform_values(rows * channels, -4.0f, 4.0f, 3), v = normal_values(rows * channels, 1.0f, 4);
  const auto of = [&](float shift) {
    Values k = small, y(rows * channels), aa(channels), bb(channels), pp(channels, -1e30f);
    for (float& each : k) each += shift;
    wkv4({w, u}, {k.data(), rows, channels}, {v.data(), rows, channels}, {aa, bb, pp}, {y.data(), rows, channels});
    return y;
  };
  for (const float shift : {-2048.0f, 256.0f, 4096.0f}) expect_near(of(shift), of(0), 2e-3f);
}

// ---- selective_scan

struct SelectiveCase {
  Values a, d;
  SelectiveScan scan;
  Inputs in;
  SelectiveCase(std::size_t rows, std::size_t channels, std::size_t states, float most_delta = 0.2f)
      : a(uniform_values(states * channels, -16.0f, -0.01f, 1)), d(normal_values(channels, 1.0f, 2)), scan{channels, states, a, d} {
    in = {rows, channels, {}, {channels, channels, states, states}, normal_values(states * channels, 1.0f, 3)};
    in.values = {rows_of(rows, channels, -1, 1, 4), rows_of(rows, channels, 0.0f, most_delta, 5), rows_of(rows, states, -1, 1, 6),
                 rows_of(rows, states, -1, 1, 7)};
  }
  auto step(decltype(&selective_scan) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
      form(scan, from.view(0, begin, count), from.view(1, begin, count), from.view(2, begin, count), from.view(3, begin, count), h, y);
    };
  }
};

TEST(SelectiveScan, KeepsItsLaws) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t states : {1, 4, 16}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << states << " states");
        const SelectiveCase c(rows, channels, states);
        expect_laws(c.in, c.step(selective_scan), c.step(selective_scan_plain), 5e-6f);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  const SelectiveCase many(5, 21, 300);  // more states than the buffer takes
  expect_laws(many.in, many.step(selective_scan), many.step(selective_scan_plain), 5e-6f);
}

TEST(SelectiveScan, ForgetsWhereDecaysVanishAndKeepsWhereTheyAreOne) {
  SelectiveCase vanish(40, 19, 4, 500.0f);
  expect_laws(vanish.in, vanish.step(selective_scan), vanish.step(selective_scan_plain), 5e-6f);
  SelectiveCase still(40, 19, 4, 0.0f);
  on_every_target([&] { ASSERT_EQ(run(still.in, still.step(selective_scan), {}).state, still.in.state); });
}

TEST(SelectiveScan, KeepsNanInItsChannel) {
  const SelectiveCase c(20, 37, 5);
  expect_nan_stays_in_its_channel(c.in, c.step(selective_scan));
}

TEST(SelectiveScan, StaysWithTheDoubleFormOverAMillionSteps) {
  const std::size_t rows = 2000, channels = 8, states = 2;
  SelectiveCase c(rows, channels, states, 0.01f);
  for (std::size_t i = 0; i < states * channels; ++i) c.a[i] = -0.5f - static_cast<float>(i);
  c.in.state.assign(states * channels, 0.0f);
  Values h = c.in.state;
  std::vector<double> wide(h.begin(), h.end());
  Values y(rows * channels);
  for (int pass = 0; pass < 500; ++pass) {
    c.step(selective_scan)(c.in, 0, rows, h, {y.data(), rows, channels});
    for (std::size_t t = 0; t < rows; ++t) {
      for (std::size_t e = 0; e < channels; ++e) {
        const double delta = c.in.view(1, 0, rows).row(t)[e], x = c.in.view(0, 0, rows).row(t)[e];
        for (std::size_t n = 0; n < states; ++n) {
          double& state = wide[n * channels + e];
          state = std::exp(delta * c.a[n * channels + e]) * state + delta * x * c.in.view(2, 0, rows).row(t)[n];
        }
      }
    }
  }
  double largest = 0;
  for (const double v : wide) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < h.size(); ++i) EXPECT_NEAR(h[i], wide[i], 1e-5 * largest);
}

// ---- ssd

struct SsdCase {
  Values a, d;
  Ssd scan;
  Inputs in;
  SsdCase(std::size_t rows, std::size_t heads, std::size_t head_dim, std::size_t states, std::size_t groups)
      : a(uniform_values(heads, -16.0f, -0.01f, 1)), d(normal_values(heads, 1.0f, 2)), scan{heads, head_dim, states, groups, a, d} {
    in = {rows,
          heads * head_dim,
          {},
          {heads * head_dim, heads, groups * states, groups * states},
          normal_values(heads * states * head_dim, 1.0f, 3)};
    in.values = {rows_of(rows, heads * head_dim, -1, 1, 4), rows_of(rows, heads, 0.0f, 0.2f, 5), rows_of(rows, groups * states, -1, 1, 6),
                 rows_of(rows, groups * states, -1, 1, 7)};
  }
  auto step(decltype(&ssd_step) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> state, MatrixSpan y) {
      form(scan, from.view(0, begin, count), from.view(1, begin, count), from.view(2, begin, count), from.view(3, begin, count), state, y);
    };
  }
};

TEST(Ssd, KeepsItsLaws) {
  for (const std::size_t head_dim : {1, 3, 7, 8, 9, 16, 31, 32, 33, 64, 72, 100}) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t heads : {1, 4, 6}) {
        for (const std::size_t states : {1, 17}) {
          SCOPED_TRACE(testing::Message() << heads << " heads of " << head_dim << ", " << rows << " rows, " << states << " states");
          const SsdCase c(rows, heads, head_dim, states, heads % 2 == 0 ? 2 : 1);
          expect_laws(c.in, c.step(ssd_step), c.step(ssd_step_plain), 3e-6f);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  const SsdCase many(5, 2, 33, 300, 1);  // more states than the buffer takes
  expect_laws(many.in, many.step(ssd_step), many.step(ssd_step_plain), 3e-6f);
}

TEST(Ssd, KeepsNanInItsChannel) {
  const SsdCase c(20, 3, 37, 5, 1);
  expect_nan_stays_in_its_channel(c.in, c.step(ssd_step));
}

// ---- diagonal_scan

struct DiagonalCase {
  Values a, c, d;
  DiagonalScan scan;
  Inputs in;
  DiagonalCase(std::size_t rows, std::size_t channels, std::size_t states)
      : a(2 * states * channels), c(normal_values(2 * states * channels, 1.0f, 2)), d(normal_values(channels, 1.0f, 3)) {
    const auto radius = uniform_values(states * channels, 0.3f, 0.999f, 4), angle = uniform_values(states * channels, -3.1f, 3.1f, 5);
    for (std::size_t i = 0; i < states * channels; ++i) {
      a[i] = radius[i] * std::cos(angle[i]);
      a[states * channels + i] = radius[i] * std::sin(angle[i]);
    }
    scan = {channels, states, a, c, d};
    in = {rows, channels, {rows_of(rows, channels, -1, 1, 6)}, {channels}, normal_values(2 * states * channels, 1.0f, 7)};
  }
  auto step(decltype(&diagonal_scan) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> h, MatrixSpan y) {
      form(scan, from.view(0, begin, count), h, y);
    };
  }
};

TEST(DiagonalScan, KeepsItsLaws) {
  for (const std::size_t channels : kChannels) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t states : {1, 4, 33}) {
        SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << states << " states");
        const DiagonalCase c(rows, channels, states);
        expect_laws(c.in, c.step(diagonal_scan), c.step(diagonal_scan_plain), 3e-6f);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
  const DiagonalCase many(5, 21, 70);  // more states than the buffer takes
  expect_laws(many.in, many.step(diagonal_scan), many.step(diagonal_scan_plain), 3e-6f);
}

TEST(DiagonalScan, KeepsNanInItsChannel) {
  const DiagonalCase c(20, 37, 5);
  expect_nan_stays_in_its_channel(c.in, c.step(diagonal_scan));
}

}  // namespace
}  // namespace kizzasi::kernels
