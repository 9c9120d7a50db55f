// The recurrences with a matrix state keep the laws of every scan, equal their unrolled sums, and have the adjoints of their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "kizzasi/kernels/delta_rule.h"
#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/scan_laws_test.h"

namespace kizzasi::kernels {
namespace {

enum class Decay { kKey, kHead, kSameKey, kSameHead, kNone };
constexpr Decay kDecays[] = {Decay::kKey, Decay::kHead, Decay::kSameKey, Decay::kSameHead};

std::size_t decay_width(Decay decay, std::size_t heads, std::size_t keys) {
  return decay == Decay::kKey || decay == Decay::kSameKey ? heads * keys : heads;
}
MatrixView decay_rows(Decay decay, const Inputs& from, std::size_t i, std::size_t begin, std::size_t count) {
  if (decay == Decay::kNone) return {};
  return decay == Decay::kSameKey || decay == Decay::kSameHead ? from.view(i, 0, 1) : from.view(i, begin, count);
}

struct AttentionCase {
  Decay decay;
  Values bonus;
  LinearAttention scan;
  Inputs in;
  AttentionCase(std::size_t rows, std::size_t heads, std::size_t keys, std::size_t values, Decay kind, bool with_bonus)
      : decay(kind),
        bonus(with_bonus ? normal_values(heads * keys, 1.0f, 1) : Values()),
        scan{heads, keys, values, bonus},
        in{rows,
           heads * values,
           {},
           {heads * values, heads * keys, heads * keys, decay_width(kind, heads, keys)},
           normal_values(heads * keys * values, 1.0f, 2)} {
    in.values = {rows_of(rows, heads * values, -1, 1, 3), rows_of(rows, heads * keys, -1, 1, 4), rows_of(rows, heads * keys, -1, 1, 5),
                 rows_of(rows, in.width[3], 0.3f, 1, 6)};
  }
  auto step(decltype(&linear_attention) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> state, MatrixSpan y) {
      form(scan, from.view(1, begin, count), from.view(2, begin, count), from.view(0, begin, count),
           decay_rows(decay, from, 3, begin, count), state, y);
    };
  }
};

struct DeltaCase {
  Decay decay;
  DeltaRule scan;
  Inputs in;
  DeltaCase(std::size_t rows, std::size_t heads, std::size_t keys, std::size_t values, Decay kind)
      : decay(kind),
        scan{heads, keys, values},
        in{rows,
           heads * values,
           {},
           {heads * values, heads * keys, heads * keys, heads * keys, heads * keys, decay_width(kind, heads, keys)},
           normal_values(heads * keys * values, 1.0f, 2)} {
    const float unit = 1.0f / std::sqrt(static_cast<float>(keys));  // a, b: keeps S (1 + a b^T) from growing
    in.values = {rows_of(rows, heads * values, -1, 1, 3),     rows_of(rows, heads * keys, -1, 1, 4),
                 rows_of(rows, heads * keys, -1, 1, 5),       rows_of(rows, heads * keys, -unit, unit, 6),
                 rows_of(rows, heads * keys, -unit, unit, 7), rows_of(rows, in.width[5], 0.3f, 1, 8)};
  }
  DeltaRuleRows rows(const Inputs& from, std::size_t begin, std::size_t count) const {
    return {from.view(1, begin, count), from.view(2, begin, count), from.view(0, begin, count),
            from.view(3, begin, count), from.view(4, begin, count), decay_rows(decay, from, 5, begin, count)};
  }
  auto step(decltype(&delta_rule) form) const {
    return [this, form](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> state, MatrixSpan y) {
      form(scan, rows(from, begin, count), state, y);
    };
  }
};

constexpr std::size_t kValues[] = {1, 3, 8, 9, 16, 31, 33, 64, 100};

TEST(LinearAttention, KeepsItsLaws) {
  for (const std::size_t values : kValues) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t heads : {1, 3}) {
        for (const Decay decay : kDecays) {
          const bool bonus = (values + rows + heads) % 2 == 0;
          SCOPED_TRACE(testing::Message() << heads << " heads of " << values << ", " << rows << " rows, bonus " << bonus);
          const AttentionCase c(rows, heads, 7, values, decay, bonus);
          expect_laws(c.in, c.step(linear_attention), c.step(linear_attention_plain), 3e-6f);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  const AttentionCase many(5, 2, 700, 33, Decay::kKey, true);  // more keys than the buffer takes
  expect_laws(many.in, many.step(linear_attention), many.step(linear_attention_plain), 5e-6f);
}

TEST(LinearAttention, KeepsNanInItsChannel) {
  for (const bool bonus : {false, true}) {
    const AttentionCase c(20, 3, 5, 37, Decay::kKey, bonus);
    expect_nan_stays_in_its_channel(c.in, c.step(linear_attention));
  }
}

TEST(DeltaRule, KeepsItsLaws) {
  for (const std::size_t values : kValues) {
    for (const std::size_t rows : kRows) {
      for (const std::size_t heads : {1, 3}) {
        for (const Decay decay : {Decay::kKey, Decay::kHead, Decay::kSameKey, Decay::kSameHead, Decay::kNone}) {
          SCOPED_TRACE(testing::Message() << heads << " heads of " << values << ", " << rows << " rows, decay " << static_cast<int>(decay));
          const DeltaCase c(rows, heads, 7, values, decay);
          expect_laws(c.in, c.step(delta_rule), c.step(delta_rule_plain), 5e-6f);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
  const DeltaCase many(5, 2, 700, 33, Decay::kKey);  // more keys than the buffer takes
  expect_laws(many.in, many.step(delta_rule), many.step(delta_rule_plain), 1e-5f);
}

TEST(DeltaRule, KeepsNanInItsChannel) {
  const DeltaCase c(20, 3, 5, 37, Decay::kKey);
  expect_nan_stays_in_its_channel(c.in, c.step(delta_rule));
}

// With keys of unit length and rate 1, a key that is asked for right after it was stored gives its value back, whatever stood there.
TEST(DeltaRule, GivesBackWhatItHasJustStored) {
  const std::size_t rows = 40, keys = 12, values = 21;
  DeltaCase c(rows, 1, keys, values, Decay::kNone);
  for (std::size_t t = 0; t < rows; ++t) {
    float* k = c.in.values[2].data() + t * (keys + 3);
    float length = 0;
    for (std::size_t n = 0; n < keys; ++n) length += k[n] * k[n];
    for (std::size_t n = 0; n < keys; ++n) {
      k[n] /= std::sqrt(length);
      c.in.values[1][t * (keys + 3) + n] = c.in.values[4][t * (keys + 3) + n] = k[n];
      c.in.values[3][t * (keys + 3) + n] = -k[n];
    }
  }
  on_every_target([&] {
    const Outcome out = run(c.in, c.step(delta_rule), {});
    for (std::size_t t = 0; t < rows; ++t) {
      for (std::size_t p = 0; p < values; ++p) ASSERT_NEAR(out.y[t * values + p], c.in.view(0, t, 1).row(0)[p], 1e-5f);
    }
  });
}

// Where nothing is taken back, the delta rule is linear attention, bit for bit.
TEST(DeltaRule, IsLinearAttentionWhereNothingIsTakenBack) {
  DeltaCase c(50, 3, 9, 41, Decay::kKey);
  std::fill(c.in.values[3].begin(), c.in.values[3].end(), 0.0f);
  const LinearAttention attention{3, 9, 41, {}};
  const auto same = [&](const Inputs& from, std::size_t begin, std::size_t count, std::span<float> state, MatrixSpan y) {
    const DeltaRuleRows r = c.rows(from, begin, count);
    linear_attention(attention, r.q, r.k, r.v, r.decay, state, y);
  };
  on_every_target([&] {
    const Outcome a = run(c.in, c.step(delta_rule), {}), b = run(c.in, same, {});
    ASSERT_EQ(bits(a.y), bits(b.y));
    ASSERT_EQ(bits(a.state), bits(b.state));
  });
}

TEST(LinearAttention, StaysWithTheDoubleFormOverManySteps) {
  const std::size_t rows = 2000, keys = 4, values = 8;
  AttentionCase c(rows, 1, keys, values, Decay::kKey, false);
  for (float& a : c.in.values[3]) a = 1.0f - 0.01f * a;
  Values state(keys * values), y(rows * values);
  std::vector<double> wide(state.size());
  for (int pass = 0; pass < 500; ++pass) {
    c.step(linear_attention)(c.in, 0, rows, state, {y.data(), rows, values});
    for (std::size_t t = 0; t < rows; ++t) {
      for (std::size_t n = 0; n < keys; ++n) {
        for (std::size_t p = 0; p < values; ++p) {
          double& s = wide[n * values + p];
          s = double{c.in.view(3, t, 1).row(0)[n]} * s + double{c.in.view(2, t, 1).row(0)[n]} * double{c.in.view(0, t, 1).row(0)[p]};
        }
      }
    }
  }
  double largest = 0;
  for (const double v : wide) largest = std::max(largest, std::abs(v));
  for (std::size_t i = 0; i < state.size(); ++i) EXPECT_NEAR(state[i], wide[i], 1e-5 * largest);
}

// The form that keeps states gives the bits of the recurrence, at every chunk.
TEST(MatrixStates, KeptAreThoseOfTheRecurrence) {
  for (const std::size_t rows : {1, 15, 16, 17, 50}) {
    const AttentionCase a(rows, 2, 5, 19, Decay::kHead, true);
    const DeltaCase d(rows, 2, 5, 19, Decay::kKey);
    const std::size_t size = a.scan.state_size(), chunks = matrix_state_chunks(rows);
    const auto expect_same = [&](Inputs in, auto step, auto keep) {
      in.state.assign(size, 0.0f);
      Values kept((chunks + 1) * size), y(rows * in.channels);
      keep(in, kept, MatrixSpan(y.data(), rows, in.channels));
      EXPECT_EQ(bits(y), bits(run(in, step, {}).y));
      for (std::size_t chunk = 0; chunk <= chunks; ++chunk) {
        Outcome until{Values(rows * in.channels), in.state};
        const std::size_t t = std::min(rows, chunk * kMatrixStateRows);
        step(in, 0, t, std::span(until.state), MatrixSpan(until.y.data(), t, in.channels));
        EXPECT_EQ(bits(until.state), bits(std::span(kept).subspan(chunk * size, size))) << chunk;
      }
    };
    on_every_target([&] {
      expect_same(a.in, a.step(linear_attention), [&](const Inputs& in, std::span<float> kept, MatrixSpan y) {
        linear_attention_keeping(a.scan, in.view(1, 0, rows), in.view(2, 0, rows), in.view(0, 0, rows), in.view(3, 0, rows), kept, y);
      });
      expect_same(d.in, d.step(delta_rule),
                  [&](const Inputs& in, std::span<float> kept, MatrixSpan y) { delta_rule_keeping(d.scan, d.rows(in, 0, rows), kept, y); });
    });
  }
}

// Gradients of all inputs, one after the other. What they must be is tested in autograd, on the best target.
Values attention_gradients(const AttentionCase& c, const Values& gy) {
  const std::size_t rows = c.in.rows, keys = c.scan.heads * c.scan.keys, values = c.in.channels;
  Values kept((matrix_state_chunks(rows) + 1) * c.scan.state_size()), y(rows * values), scratch(linear_attention_backward_scratch(c.scan));
  const auto in = [&](std::size_t i) { return i == 3 ? decay_rows(c.decay, c.in, i, 0, rows) : c.in.view(i, 0, rows); };
  linear_attention_keeping(c.scan, in(1), in(2), in(0), in(3), kept, {y.data(), rows, values});
  Values all(rows * (3 * keys + values + c.in.width[3]));
  float* free = all.data();
  const auto take = [&](std::size_t width) { return MatrixSpan(std::exchange(free, free + rows * width), rows, width); };
  const LinearAttentionGradients out{take(keys), take(keys), take(values), take(c.in.width[3]), take(keys)};
  linear_attention_backward(c.scan, in(1), in(2), in(0), in(3), kept, {gy.data(), rows, values}, out, scratch);
  return all;
}
Values delta_gradients(const DeltaCase& c, const Values& gy) {
  const std::size_t rows = c.in.rows, keys = c.scan.heads * c.scan.keys, values = c.in.channels;
  Values kept((matrix_state_chunks(rows) + 1) * c.scan.state_size()), y(rows * values), scratch(delta_rule_backward_scratch(c.scan));
  delta_rule_keeping(c.scan, c.rows(c.in, 0, rows), kept, {y.data(), rows, values});
  Values all(rows * (4 * keys + values + c.in.width[5]));
  float* free = all.data();
  const auto take = [&](std::size_t width) { return MatrixSpan(std::exchange(free, free + rows * width), rows, width); };
  const DeltaRuleGradients out{take(keys), take(keys), take(values), take(keys), take(keys), take(c.in.width[5])};
  delta_rule_backward(c.scan, c.rows(c.in, 0, rows), kept, {gy.data(), rows, values}, out, scratch);
  return all;
}

TEST(MatrixStates, HaveTheSameGradientsOnEveryTarget) {
  for (const std::size_t rows : {1, 16, 37}) {
    for (const std::size_t values : {1, 16, 33, 70}) {
      for (const Decay decay : kDecays) {
        SCOPED_TRACE(testing::Message() << rows << " rows, " << values << " values");
        const AttentionCase plain(rows, 2, 7, values, decay, false), bonus(rows, 2, 7, values, decay, true);
        const DeltaCase delta(rows, 2, 7, values, decay), still(rows, 2, 7, values, Decay::kNone);
        const Values gy = uniform_values(rows * 2 * values, -1, 1, 9);
        const Values truth[] = {attention_gradients(plain, gy), attention_gradients(bonus, gy), delta_gradients(delta, gy),
                                delta_gradients(still, gy)};
        on_every_target([&] {
          expect_near(attention_gradients(plain, gy), truth[0], 1e-5f);
          expect_near(attention_gradients(bonus, gy), truth[1], 1e-5f);
          expect_near(delta_gradients(delta, gy), truth[2], 1e-5f);
          expect_near(delta_gradients(still, gy), truth[3], 1e-5f);
        });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace kizzasi::kernels
