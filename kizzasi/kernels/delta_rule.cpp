#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/delta_rule.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/delta_rule.h"

#ifndef KIZZASI_KERNELS_DELTA_RULE_ROWS
#define KIZZASI_KERNELS_DELTA_RULE_ROWS
namespace kizzasi::kernels {
constexpr std::size_t kBuffer = 8192;  // floats: 32 KiB
inline constexpr float kNoDecay = 1.0f;

struct DeltaScan {
  const DeltaRule& s;
  const DeltaRuleRows& rows;
  MatrixSpan y;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// N vectors of the values of one head from p on, through all rows. state: those of key 0; `stride` floats further stand those of the next.
// What the next row takes back is summed up while the present one writes the state: one pass a row.
template <std::size_t N, class D>
HWY_INLINE void column(D d, const DeltaScan& r, std::size_t head, std::size_t p, float* HWY_RESTRICT state, std::size_t stride) {
  const DeltaRuleRows& in = r.rows;
  const std::size_t width = hn::Lanes(d), keys = r.s.keys, at = head * r.s.values + p, count = in.v.rows;
  const bool plain = in.decay.data == nullptr, by_head = plain || in.decay.cols == r.s.heads;
  const std::size_t w_step = by_head ? 0 : 1, w_row = plain || in.decay.rows == 1 ? 0 : in.decay.stride;
  const float* w_first = plain ? &kNoDecay : in.decay.data + head * (by_head ? 1 : keys);
  const auto key_row = [&](MatrixView m, std::size_t t) { return m.data + t * m.stride + head * keys; };
  hn::Vec<D> back[N];
  for (std::size_t i = 0; i < N; ++i) back[i] = hn::Zero(d);
  if (count > 0) {
    const float* HWY_RESTRICT a = key_row(in.a, 0);
    for (std::size_t n = 0; n < keys; ++n) {
      const auto a_n = hn::Set(d, a[n]);
      for (std::size_t i = 0; i < N; ++i) back[i] = hn::MulAdd(a_n, hn::LoadU(d, state + n * stride + i * width), back[i]);
    }
  }
  for (std::size_t t = 0; t < count; ++t) {
    const float* HWY_RESTRICT q = key_row(in.q, t);
    const float* HWY_RESTRICT k = key_row(in.k, t);
    const float* HWY_RESTRICT b = key_row(in.b, t);
    const float* HWY_RESTRICT w = w_first + t * w_row;
    hn::Vec<D> input[N], sum[N], next[N];
    for (std::size_t i = 0; i < N; ++i) {
      input[i] = hn::LoadU(d, in.v.data + t * in.v.stride + at + i * width);
      sum[i] = next[i] = hn::Zero(d);
    }
    const bool more = t + 1 < count;
    const float* HWY_RESTRICT a = key_row(in.a, more ? t + 1 : t);
    const auto keys_of = [&](auto last) HWY_ATTR {
      for (std::size_t n = 0; n < keys; ++n) {
        const auto q_n = hn::Set(d, q[n]), k_n = hn::Set(d, k[n]), b_n = hn::Set(d, b[n]), w_n = hn::Set(d, w[n * w_step]);
        [[maybe_unused]] const auto a_n = hn::Set(d, a[n]);
        for (std::size_t i = 0; i < N; ++i) {
          float* HWY_RESTRICT place = state + n * stride + i * width;
          const auto added = hn::MulAdd(b_n, back[i], hn::Mul(k_n, input[i]));
          const auto after = hn::MulAdd(w_n, hn::LoadU(d, place), added);
          hn::StoreU(after, d, place);
          sum[i] = hn::MulAdd(q_n, after, sum[i]);
          if constexpr (!decltype(last)::value) next[i] = hn::MulAdd(a_n, after, next[i]);
        }
      }
    };
    if (more) {
      keys_of(std::false_type{});
    } else {
      keys_of(std::true_type{});
    }
    for (std::size_t i = 0; i < N; ++i) {
      hn::StoreU(sum[i], d, r.y.data + t * r.y.stride + at + i * width);
      back[i] = next[i];
    }
  }
}

// With more than one row, through a buffer that stays in the L1 cache.
template <std::size_t N, class D>
HWY_INLINE void column_of(D d, const DeltaScan& r, std::size_t head, std::size_t p, float* state) {
  const std::size_t stride = r.s.values, keys = r.s.keys, width = N * hn::Lanes(d);
  float* first = state + head * keys * stride + p;
  if (r.rows.v.rows == 1 || keys * width > kBuffer) return column<N>(d, r, head, p, first, stride);
  HWY_ALIGN float lines[kBuffer];
  for (std::size_t n = 0; n < keys; ++n) std::copy_n(first + n * stride, width, lines + n * width);
  column<N>(d, r, head, p, lines, width);
  for (std::size_t n = 0; n < keys; ++n) std::copy_n(lines + n * width, width, first + n * stride);
}

void scan(const DeltaScan& r, float* state) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t head = 0; head < r.s.heads; ++head) {
    std::size_t p = 0;
    for (; p + 4 * lanes <= r.s.values; p += 4 * lanes) column_of<4>(d, r, head, p, state);
    for (; p + lanes <= r.s.values; p += lanes) column_of<1>(d, r, head, p, state);
    for (; p + hn::Lanes(eight) <= r.s.values; p += hn::Lanes(eight)) column_of<1>(eight, r, head, p, state);
    for (; p < r.s.values; ++p) column_of<1>(one, r, head, p, state);
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

DeltaRuleRows DeltaRuleRows::slice(std::size_t begin, std::size_t count) const noexcept {
  return {q.slice(begin, count), k.slice(begin, count), v.slice(begin, count),
          a.slice(begin, count), b.slice(begin, count), decay.rows == 1 || decay.data == nullptr ? decay : decay.slice(begin, count)};
}

void delta_rule_plain(const DeltaRule& s, const DeltaRuleRows& in, std::span<float> state, MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < in.v.rows; ++t) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      for (std::size_t p = 0; p < s.values; ++p) {
        const float value = in.v.row(t)[h * s.values + p];
        float back = 0, sum = 0;
        for (std::size_t key = h * s.keys; key < (h + 1) * s.keys; ++key)
          back = std::fma(in.a.row(t)[key], state[key * s.values + p], back);
        for (std::size_t key = h * s.keys; key < (h + 1) * s.keys; ++key) {
          float w = kNoDecay;
          if (in.decay.data != nullptr) w = in.decay.row(in.decay.rows == 1 ? 0 : t)[in.decay.cols == s.heads ? h : key];
          float& element = state[key * s.values + p];
          element = std::fma(w, element, std::fma(in.b.row(t)[key], back, in.k.row(t)[key] * value));
          sum = std::fma(in.q.row(t)[key], element, sum);
        }
        y.row(t)[h * s.values + p] = sum;
      }
    }
  }
}

HWY_EXPORT(scan);

void delta_rule(const DeltaRule& s, const DeltaRuleRows& rows, std::span<float> state, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kDeltaRule)) return other->delta_rule(s, rows, state, y);
  HWY_DYNAMIC_DISPATCH(scan)({s, rows, y}, state.data());
}

}  // namespace kizzasi::kernels
#endif
