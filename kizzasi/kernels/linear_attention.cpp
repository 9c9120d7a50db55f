#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/linear_attention.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/linear_attention.h"

#ifndef KIZZASI_KERNELS_LINEAR_ATTENTION_ROWS
#define KIZZASI_KERNELS_LINEAR_ATTENTION_ROWS
namespace kizzasi::kernels {
constexpr std::size_t kBuffer = 8192;  // floats: 32 KiB

struct AttentionRows {
  const LinearAttention& s;
  MatrixView q, k, v, decay;
  MatrixSpan y;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// N vectors of the values of one head from p on, through all rows. state: those of key 0; `stride` floats further stand those of the next.
template <bool kBonus, std::size_t N, class D>
HWY_INLINE void column(D d, const AttentionRows& r, std::size_t head, std::size_t p, float* HWY_RESTRICT state, std::size_t stride) {
  const std::size_t width = hn::Lanes(d), keys = r.s.keys, at = head * r.s.values + p;
  const std::size_t a_step = r.decay.cols == r.s.heads ? 0 : 1, a_row = r.decay.rows == 1 ? 0 : r.decay.stride;
  const float* HWY_RESTRICT u = kBonus ? r.s.bonus.data() + head * keys : nullptr;
  for (std::size_t t = 0; t < r.v.rows; ++t) {
    const float* HWY_RESTRICT q = r.q.data + t * r.q.stride + head * keys;
    const float* HWY_RESTRICT k = r.k.data + t * r.k.stride + head * keys;
    const float* HWY_RESTRICT a = r.decay.data + t * a_row + head * (a_step == 0 ? 1 : keys);
    hn::Vec<D> input[N], sum[N];
    for (std::size_t i = 0; i < N; ++i) {
      input[i] = hn::LoadU(d, r.v.data + t * r.v.stride + at + i * width);
      sum[i] = hn::Zero(d);
    }
    for (std::size_t n = 0; n < keys; ++n) {
      const auto q_n = hn::Set(d, q[n]), k_n = hn::Set(d, k[n]), a_n = hn::Set(d, a[n * a_step]);
      [[maybe_unused]] const auto u_n = hn::Set(d, kBonus ? u[n] : 0.0f);
      for (std::size_t i = 0; i < N; ++i) {
        float* HWY_RESTRICT place = state + n * stride + i * width;
        const auto before = hn::LoadU(d, place);
        const auto added = hn::Mul(k_n, input[i]);
        const auto after = hn::MulAdd(a_n, before, added);
        hn::StoreU(after, d, place);
        if constexpr (kBonus) {
          sum[i] = hn::MulAdd(q_n, hn::MulAdd(u_n, added, before), sum[i]);
        } else {
          sum[i] = hn::MulAdd(q_n, after, sum[i]);
        }
      }
    }
    for (std::size_t i = 0; i < N; ++i) hn::StoreU(sum[i], d, r.y.data + t * r.y.stride + at + i * width);
  }
}

// With more than one row, through a buffer that stays in the L1 cache.
template <bool kBonus, std::size_t N, class D>
HWY_INLINE void column_of(D d, const AttentionRows& r, std::size_t head, std::size_t p, float* state) {
  const std::size_t stride = r.s.values, keys = r.s.keys, width = N * hn::Lanes(d);
  float* first = state + head * keys * stride + p;
  if (r.v.rows == 1 || keys * width > kBuffer) return column<kBonus, N>(d, r, head, p, first, stride);
  HWY_ALIGN float lines[kBuffer];
  for (std::size_t n = 0; n < keys; ++n) std::copy_n(first + n * stride, width, lines + n * width);
  column<kBonus, N>(d, r, head, p, lines, width);
  for (std::size_t n = 0; n < keys; ++n) std::copy_n(lines + n * width, width, first + n * stride);
}

template <bool kBonus>
void scan_as(const AttentionRows& r, float* state) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 1> one;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t head = 0; head < r.s.heads; ++head) {
    std::size_t p = 0;
    for (; p + 4 * lanes <= r.s.values; p += 4 * lanes) column_of<kBonus, 4>(d, r, head, p, state);
    for (; p + lanes <= r.s.values; p += lanes) column_of<kBonus, 1>(d, r, head, p, state);
    for (; p + hn::Lanes(eight) <= r.s.values; p += hn::Lanes(eight)) column_of<kBonus, 1>(eight, r, head, p, state);
    for (; p < r.s.values; ++p) column_of<kBonus, 1>(one, r, head, p, state);
  }
}

void scan(const AttentionRows& r, float* state) {
  if (r.s.bonus.empty()) return scan_as<false>(r, state);
  scan_as<true>(r, state);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void linear_attention_plain(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                            MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < v.rows; ++t) {
    const std::span<const float> a = decay.row(decay.rows == 1 ? 0 : t);
    for (std::size_t h = 0; h < s.heads; ++h) {
      for (std::size_t p = 0; p < s.values; ++p) {
        const float value = v.row(t)[h * s.values + p];
        float sum = 0;
        for (std::size_t n = 0; n < s.keys; ++n) {
          const std::size_t key = h * s.keys + n;
          float& element = state[key * s.values + p];
          const float before = element, added = k.row(t)[key] * value;
          element = std::fma(a[decay.cols == s.heads ? h : key], before, added);
          sum = std::fma(q.row(t)[key], s.bonus.empty() ? element : std::fma(s.bonus[key], added, before), sum);
        }
        y.row(t)[h * s.values + p] = sum;
      }
    }
  }
}

HWY_EXPORT(scan);

void linear_attention(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> state,
                      MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kLinearAttention)) return other->linear_attention(s, q, k, v, decay, state, y);
  HWY_DYNAMIC_DISPATCH(scan)({s, q, k, v, decay, y}, state.data());
}

}  // namespace kizzasi::kernels
#endif
