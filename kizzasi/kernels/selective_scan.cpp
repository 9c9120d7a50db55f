#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/selective_scan.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/exponential_inl.h"
#include "kizzasi/kernels/selective_scan.h"

#ifndef KIZZASI_KERNELS_SELECTIVE_SCAN_SIZES
#define KIZZASI_KERNELS_SELECTIVE_SCAN_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kColumns = 16;      // channels that go through the rows together: one cache line
constexpr std::size_t kMostStates = 256;  // whose state and A fit a buffer of 32 KiB then

struct ScanRows {
  const SelectiveScan& s;
  MatrixView x, delta, b, c;
  MatrixSpan y;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// V vectors of channels from e on, through all rows. a and h: their states of state 0; `stride` floats further stand those of the next.
// The decay exp(delta a) is taken as 2^((delta log2 e) a).
template <class D, std::size_t V>
HWY_INLINE void column(D d, const ScanRows& r, std::size_t e, const float* HWY_RESTRICT a, float* HWY_RESTRICT h, std::size_t stride) {
  const std::size_t width = hn::Lanes(d);
  for (std::size_t t = 0; t < r.x.rows; ++t) {
    const float* HWY_RESTRICT b = r.b.data + t * r.b.stride;
    const float* HWY_RESTRICT c = r.c.data + t * r.c.stride;
    hwy::Prefetch(r.x.data + t * r.x.stride + e + kColumns);  // of the next channels: rows stand too far apart for the processor to guess
    hwy::Prefetch(r.delta.data + t * r.delta.stride + e + kColumns);
    hwy::Prefetch(r.y.data + t * r.y.stride + e + kColumns);
    hn::Vec<D> step[V], input[V], sum[V];
    for (std::size_t v = 0; v < V; ++v) {
      const auto x = hn::LoadU(d, r.x.data + t * r.x.stride + e + v * width);
      const auto delta = hn::LoadU(d, r.delta.data + t * r.delta.stride + e + v * width);
      step[v] = hn::Mul(delta, hn::Set(d, 1.44269504f));
      input[v] = hn::Mul(delta, x);
      sum[v] = hn::Mul(hn::LoadU(d, r.s.d.data() + e + v * width), x);
    }
    for (std::size_t n = 0; n < r.s.states; ++n) {
      const auto b_n = hn::Set(d, b[n]), c_n = hn::Set(d, c[n]);
      for (std::size_t v = 0; v < V; ++v) {
        const auto decay = exp2_nonpositive(d, hn::Mul(step[v], hn::LoadU(d, a + n * stride + v * width)));
        const auto state = hn::MulAdd(decay, hn::LoadU(d, h + n * stride + v * width), hn::Mul(input[v], b_n));
        hn::StoreU(state, d, h + n * stride + v * width);
        sum[v] = hn::MulAdd(c_n, state, sum[v]);
      }
    }
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[v], d, r.y.data + t * r.y.stride + e + v * width);
  }
}

// With more than one row, through a buffer: rows of (N, E) a power of two apart would share their places in the cache.
template <class D, std::size_t V>
HWY_INLINE void column_of(D d, const ScanRows& r, std::size_t e, float* h) {
  const std::size_t channels = r.s.channels, states = r.s.states, width = V * hn::Lanes(d);
  const float* a = r.s.a.data() + e;
  if (r.x.rows == 1 || states > kMostStates) return column<D, V>(d, r, e, a, h + e, channels);
  HWY_ALIGN float a_lines[kMostStates * kColumns];
  HWY_ALIGN float h_lines[kMostStates * kColumns];
  for (std::size_t n = 0; n < states; ++n) {
    std::copy_n(a + n * channels, width, a_lines + n * kColumns);
    std::copy_n(h + n * channels + e, width, h_lines + n * kColumns);
  }
  column<D, V>(d, r, e, a_lines, h_lines, kColumns);
  for (std::size_t n = 0; n < states; ++n) std::copy_n(h_lines + n * kColumns, width, h + n * channels + e);
}

void scan(const ScanRows& r, float* h) {
  const hn::CappedTag<float, kColumns> d;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  constexpr std::size_t kVectors = kColumns / hn::MaxLanes(d), kHalf = 8 / hn::MaxLanes(eight);
  const std::size_t channels = r.s.channels;
  std::size_t e = 0;
  for (; e + kColumns <= channels; e += kColumns) column_of<decltype(d), kVectors>(d, r, e, h);
  if (e + 8 <= channels) column_of<decltype(eight), kHalf>(eight, r, e, h), e += 8;
  if (e + 4 <= channels) column_of<decltype(four), 1>(four, r, e, h), e += 4;
  for (; e < channels; ++e) column_of<decltype(one), 1>(one, r, e, h);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void selective_scan_plain(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                          MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const float step = delta.row(t)[e], input = step * x.row(t)[e];
      float sum = s.d[e] * x.row(t)[e];
      for (std::size_t n = 0; n < s.states; ++n) {
        float& state = h[n * s.channels + e];
        state = std::fma(std::exp(step * s.a[n * s.channels + e]), state, input * b.row(t)[n]);
        sum = std::fma(c.row(t)[n], state, sum);
      }
      y.row(t)[e] = sum;
    }
  }
}

HWY_EXPORT(scan);

void selective_scan(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> h,
                    MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kSelectiveScan)) return other->selective_scan(s, x, delta, b, c, h, y);
  HWY_DYNAMIC_DISPATCH(scan)({s, x, delta, b, c, y}, h.data());
}

}  // namespace kizzasi::kernels
#endif
