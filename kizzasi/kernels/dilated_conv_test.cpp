#include "kizzasi/kernels/dilated_conv.h"

#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/scan_laws_test.h"

namespace kizzasi::kernels {
namespace {

constexpr DilatedTaps kTaps[] = {{1, 1}, {1, 3}, {2, 1}, {2, 8}, {3, 4}, {4, 1}, {5, 7}, {2, 200}};

// A history of `reach` rows that came before, of which row t - reach stands where the ring of a stream that saw `seen` rows has it.
struct Ring {
  Values rows;
  std::uint64_t seen;
  ConvHistory history() { return {rows, seen}; }
};

// The causal sum in double: row t of the input, `before` standing before row 0, oldest first.
double causal_input(MatrixView x, const Values& before, std::ptrdiff_t t, std::size_t channel) {
  if (t >= 0) return x.row(static_cast<std::size_t>(t))[channel];
  const auto row = static_cast<std::ptrdiff_t>(before.size() / x.cols) + t;
  return before[static_cast<std::size_t>(row) * x.cols + channel];
}

Ring ring_of(const Values& before, std::size_t reach, std::size_t channels, std::uint64_t seen) {
  Ring ring{Values(before.size()), seen};
  for (std::size_t i = 0; i < reach; ++i) {
    const std::size_t place = (seen + i) % reach;  // reach rows ago is the oldest, which stands where the next goes
    std::copy_n(before.begin() + static_cast<std::ptrdiff_t>(i * channels), channels,
                ring.rows.begin() + static_cast<std::ptrdiff_t>(place * channels));
  }
  return ring;
}

TEST(DilatedConv1d, KeepsItsLawsAndEqualsTheCausalSum) {
  for (const std::size_t channels : {1, 3, 4, 7, 8, 16, 17, 33, 100}) {
    for (const std::size_t rows : kRows) {
      for (const DilatedTaps taps : kTaps) {
        const bool biased = (channels + rows) % 2 == 0;
        SCOPED_TRACE(testing::Message() << channels << " channels, " << rows << " rows, " << taps.taps << " taps " << taps.dilation);
        const std::size_t reach = taps.reach();
        const std::uint64_t began = 1000 + rows;
        const auto w = normal_values(taps.taps * channels, 1.0f, 1), bias = normal_values(channels, 1.0f, 2);
        const auto before = normal_values(reach * channels, 1.0f, 4);
        const std::span<const float> b = biased ? std::span<const float>(bias) : std::span<const float>();
        const Inputs in{rows, channels, {rows_of(rows, channels, -1, 1, 3)}, {channels}, ring_of(before, reach, channels, began).rows};
        const auto through = [&](auto kernel) {
          return [&, kernel](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> state, MatrixSpan y) {
            std::uint64_t seen = began + begin;
            kernel(w, b, taps, ConvHistory{state, seen}, from.view(0, begin, count), y);
            EXPECT_EQ(seen, began + begin + count);
          };
        };
        const auto truth = [&](const Inputs& from, std::size_t, std::size_t, std::span<float> state, MatrixSpan y) {
          const MatrixView x = from.view(0, 0, rows);
          for (std::size_t t = 0; t < rows; ++t) {
            for (std::size_t e = 0; e < channels; ++e) {
              double sum = biased ? bias[e] : 0.0;
              for (std::size_t j = 0; j < taps.taps; ++j) {
                const auto lag = static_cast<std::ptrdiff_t>((taps.taps - 1 - j) * taps.dilation);
                sum += double{w[j * channels + e]} * causal_input(x, before, static_cast<std::ptrdiff_t>(t) - lag, e);
              }
              y.row(t)[e] = static_cast<float>(sum);
            }
          }
          Values last(reach * channels);
          for (std::size_t i = 0; i < last.size(); ++i) {
            last[i] = static_cast<float>(causal_input(
                x, before, static_cast<std::ptrdiff_t>(rows + i / channels) - static_cast<std::ptrdiff_t>(reach), i % channels));
          }
          const Ring ring = ring_of(last, reach, channels, began + rows);
          std::copy(ring.rows.begin(), ring.rows.end(), state.begin());
        };
        expect_laws(in, through(dilated_conv1d), truth, 2e-6f);
        expect_laws(in, through(dilated_conv1d_plain), truth, 2e-6f);
        const Outcome plain = run(in, through(dilated_conv1d_plain), {});
        on_every_target([&] {
          if (fuses_multiply_and_add()) {
            ASSERT_EQ(bits(run(in, through(dilated_conv1d), {}).y), bits(plain.y));
          }
        });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DilatedConv1d, OfDilationOneIsConv1d) {
  const std::size_t channels = 19, rows = 50, taps = 4;
  const auto w = normal_values(taps * channels, 1.0f, 1), bias = normal_values(channels, 1.0f, 2),
             x = normal_values(rows * channels, 1.0f, 3);
  Values window(taps * channels), dilated(rows * channels), usual(rows * channels);
  Ring ring{Values((taps - 1) * channels), 0};
  dilated_conv1d(w, bias, {taps, 1}, ring.history(), {x.data(), rows, channels}, {dilated.data(), rows, channels});
  conv1d_step(w, bias, taps, window, {x.data(), rows, channels}, {usual.data(), rows, channels});
  EXPECT_EQ(bits(dilated), bits(usual));
}

TEST(DilatedConv1d, NaNReachesTheRowsOfItsTapsInItsChannelAndNothingElse) {
  const DilatedTaps taps{3, 4};
  const std::size_t channels = 21, rows = 30;
  const auto w = normal_values(taps.taps * channels, 1.0f, 1);
  auto x = normal_values(rows * channels, 1.0f, 2);
  x[5 * channels + 11] = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    Ring ring{Values(taps.reach() * channels), 0};
    Values y(x.size());
    dilated_conv1d(w, {}, taps, ring.history(), {x.data(), rows, channels}, {y.data(), rows, channels});
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t t = i / channels;
      ASSERT_EQ(std::isnan(y[i]), i % channels == 11 && (t == 5 || t == 9 || t == 13)) << t;
    }
  });
}

// Over all channels; the law is the same, with another number of outputs than of inputs.
TEST(DilatedConv, EqualsTheCausalSumForAnySplitOnEveryTarget) {
  for (const auto& [channels, outputs] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 70}, {16, 5}, {33, 64}}) {
    for (const std::size_t rows : {1, 2, 33}) {
      for (const DilatedTaps taps : kTaps) {
        SCOPED_TRACE(testing::Message() << channels << " to " << outputs << ", " << rows << " rows, " << taps.taps << " taps "
                                        << taps.dilation);
        const std::size_t reach = taps.reach();
        const auto published = normal_values(outputs * channels * taps.taps, 1.0f, 1), bias = normal_values(outputs, 1.0f, 2);
        const auto before = normal_values(reach * channels, 1.0f, 4), x = normal_values(rows * channels, 1.0f, 3);
        const auto w = PackedWeight::pack(conv_taps_first(published, outputs, channels, taps.taps), outputs, taps.taps * channels);
        const MatrixView in(x.data(), rows, channels);
        Values truth(rows * outputs);
        for (std::size_t i = 0; i < truth.size(); ++i) {
          const std::size_t t = i / outputs, o = i % outputs;
          double sum = bias[o];
          for (std::size_t j = 0; j < taps.taps; ++j) {
            const auto lag = static_cast<std::ptrdiff_t>((taps.taps - 1 - j) * taps.dilation);
            for (std::size_t c = 0; c < channels; ++c) {
              sum +=
                  double{published[(o * channels + c) * taps.taps + j]} * causal_input(in, before, static_cast<std::ptrdiff_t>(t) - lag, c);
            }
          }
          truth[i] = static_cast<float>(sum);
        }
        const auto in_blocks = [&](std::size_t block, Ring& ring) {
          Values y(truth.size()), scratch(rows * taps.taps * channels);
          for (std::size_t t = 0; t < rows; t += block) {
            const std::size_t n = std::min(block, rows - t);
            dilated_conv(w, bias, taps, ring.history(), in.slice(t, n), scratch, MatrixSpan(y.data(), rows, outputs).slice(t, n));
          }
          return y;
        };
        on_every_target([&] {
          Ring whole = ring_of(before, reach, channels, 77);
          const Values y = in_blocks(rows, whole);
          expect_near(y, truth, 1e-5f);
          for (const std::size_t block : {1, 2, 5}) {
            Ring split = ring_of(before, reach, channels, 77);
            ASSERT_EQ(bits(in_blocks(block, split)), bits(y));
            ASSERT_EQ(bits(split.rows), bits(whole.rows));
            ASSERT_EQ(split.seen, whole.seen);
          }
        });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi::kernels
