// Tests only: the laws of every scan: equal to its plain form, the same bits for any split of the rows, in place, and on every target that
// fuses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "kizzasi/kernels/every_target_test.h"
#include "kizzasi/kernels/matrix.h"

namespace kizzasi::kernels {

using Values = std::vector<float>;

// A scan over named inputs; run(rows, state, y) with the fast or the plain form.
struct Inputs {
  std::size_t rows, channels;  // of y
  std::vector<Values> values;  // each (rows, width[i]) with stride width[i] + 3
  std::vector<std::size_t> width;
  Values state;

  MatrixView view(std::size_t i, std::size_t begin, std::size_t count) const {
    return MatrixView(values[i].data(), rows, width[i], width[i] + 3).slice(begin, count);
  }
};

struct Outcome {
  Values y, state;
};

inline Values rows_of(std::size_t rows, std::size_t width, float low, float high, unsigned seed) {
  return uniform_values(rows * (width + 3), low, high, seed);
}

// step(inputs, begin, count, state, y): rows [begin, begin + count) of the scan.
template <typename Step>
Outcome run(const Inputs& in, Step step, std::vector<std::size_t> splits) {
  Outcome out{Values(in.rows * in.channels), in.state};
  std::size_t begin = 0;
  splits.push_back(in.rows);
  for (const std::size_t end : splits) {
    step(in, begin, end - begin, std::span(out.state), MatrixSpan(out.y.data(), in.rows, in.channels).slice(begin, end - begin));
    begin = end;
  }
  return out;
}

template <typename Step>
Outcome run_in_place(const Inputs& in, Step step) {
  Inputs copy = in;
  Outcome out{{}, in.state};
  step(copy, 0, in.rows, std::span(out.state), MatrixSpan(copy.values[0].data(), in.rows, in.channels, in.channels + 3));
  for (std::size_t t = 0; t < in.rows; ++t) {
    const auto row = copy.values[0].begin() + static_cast<std::ptrdiff_t>(t * (in.channels + 3));
    out.y.insert(out.y.end(), row, row + static_cast<std::ptrdiff_t>(in.channels));
  }
  return out;
}

inline void expect_near(const Values& fast, const Values& plain, float tolerance) {
  float largest = 1e-6f;
  for (const float v : plain) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(fast[i], plain[i], tolerance * largest) << i;
}

template <typename Fast, typename Plain>
void expect_laws(const Inputs& in, Fast fast, Plain plain, float tolerance) {
  const Outcome truth = run(in, plain, {});
  on_every_target([&] {
    const Outcome whole = run(in, fast, {});
    expect_near(whole.y, truth.y, tolerance);
    expect_near(whole.state, truth.state, tolerance);
    std::vector<std::size_t> ones(in.rows - 1);
    for (std::size_t i = 0; i < ones.size(); ++i) ones[i] = i + 1;
    std::mt19937 engine(static_cast<unsigned>(in.rows * in.channels));
    std::vector<std::size_t> some = {0};  // an empty block too
    for (std::size_t at = 0; at < in.rows; at += 1 + engine() % 40) some.push_back(at);
    for (const auto& splits : {ones, some}) {
      const Outcome split = run(in, fast, splits);
      ASSERT_EQ(bits(split.y), bits(whole.y));
      ASSERT_EQ(bits(split.state), bits(whole.state));
    }
    const Outcome in_place = run_in_place(in, fast);
    ASSERT_EQ(bits(in_place.y), bits(whole.y));
    ASSERT_EQ(bits(in_place.state), bits(whole.state));
  });
  expect_same_bits_where_fused([&] {
    Outcome out = run(in, fast, {});
    out.y.insert(out.y.end(), out.state.begin(), out.state.end());
    return out.y;
  });
}

// A NaN in one channel of x at one row: all later rows of that channel, and nothing else.
template <typename Fast>
void expect_nan_stays_in_its_channel(Inputs in, Fast fast) {
  const std::size_t channel = in.channels / 2, row = in.rows / 2;
  in.values[0][row * (in.width[0] + 3) + channel] = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    const Outcome out = run(in, fast, {});
    for (std::size_t t = 0; t < in.rows; ++t) {
      for (std::size_t e = 0; e < in.channels; ++e) {
        ASSERT_EQ(std::isnan(out.y[t * in.channels + e]), e == channel && t >= row) << t << " " << e;
      }
    }
  });
}

// Sizes that pass each vector width and each buffer.
inline constexpr std::size_t kChannels[] = {1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 61, 64, 100, 300};
inline constexpr std::size_t kRows[] = {1, 2, 3, 5, 31, 33, 130};

}  // namespace kizzasi::kernels
