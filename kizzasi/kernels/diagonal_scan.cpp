#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/diagonal_scan.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/diagonal_scan.h"

#ifndef KIZZASI_KERNELS_DIAGONAL_SCAN_SIZES
#define KIZZASI_KERNELS_DIAGONAL_SCAN_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kColumns = 16;     // channels that go through the rows together: one cache line
constexpr std::size_t kMostStates = 64;  // whose states and coefficients fit a buffer of 24 KiB then

// Of one column of channels, state 0: the real parts; the imaginary ones stand `plane` floats further, the next state's `stride`.
struct Coefficients {
  const float *a, *c;
  float* h;
  std::size_t stride, plane;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// V vectors of channels from e on, through all rows.
template <class D, std::size_t V>
HWY_INLINE void column(D d, const DiagonalScan& s, std::size_t e, const Coefficients& k, MatrixView x, MatrixSpan y) {
  const std::size_t width = hn::Lanes(d);
  for (std::size_t t = 0; t < x.rows; ++t) {
    hwy::Prefetch(x.data + t * x.stride + e + kColumns);  // of the next channels: rows stand too far apart for the processor to guess
    hwy::Prefetch(y.data + t * y.stride + e + kColumns);
    hn::Vec<D> input[V], sum[V];
    for (std::size_t v = 0; v < V; ++v) {
      input[v] = hn::LoadU(d, x.data + t * x.stride + e + v * width);
      sum[v] = hn::Mul(hn::LoadU(d, s.d.data() + e + v * width), input[v]);
    }
    for (std::size_t n = 0; n < s.states; ++n) {
      for (std::size_t v = 0; v < V; ++v) {
        const std::size_t real = n * k.stride + v * width, imaginary = real + k.plane;
        const auto a_re = hn::LoadU(d, k.a + real), a_im = hn::LoadU(d, k.a + imaginary);
        const auto h_re = hn::LoadU(d, k.h + real), h_im = hn::LoadU(d, k.h + imaginary);
        const auto re = hn::NegMulAdd(a_im, h_im, hn::MulAdd(a_re, h_re, input[v]));
        const auto im = hn::MulAdd(a_im, h_re, hn::Mul(a_re, h_im));
        hn::StoreU(re, d, k.h + real);
        hn::StoreU(im, d, k.h + imaginary);
        sum[v] = hn::MulAdd(hn::LoadU(d, k.c + real), re, sum[v]);
        sum[v] = hn::NegMulAdd(hn::LoadU(d, k.c + imaginary), im, sum[v]);
      }
    }
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[v], d, y.data + t * y.stride + e + v * width);
  }
}

// With more than one row, through a buffer: planes a power of two apart would share their places in the cache.
template <class D, std::size_t V>
HWY_INLINE void column_of(D d, const DiagonalScan& s, std::size_t e, MatrixView x, float* h, MatrixSpan y) {
  const std::size_t channels = s.channels, states = s.states, width = V * hn::Lanes(d);
  const Coefficients direct{s.a.data() + e, s.c.data() + e, h + e, channels, states * channels};
  if (x.rows == 1 || states > kMostStates) return column<D, V>(d, s, e, direct, x, y);
  HWY_ALIGN float a_lines[2 * kMostStates * kColumns];
  HWY_ALIGN float c_lines[2 * kMostStates * kColumns];
  HWY_ALIGN float h_lines[2 * kMostStates * kColumns];
  for (std::size_t n = 0; n < 2 * states; ++n) {
    std::copy_n(direct.a + n * channels, width, a_lines + n * kColumns);
    std::copy_n(direct.c + n * channels, width, c_lines + n * kColumns);
    std::copy_n(direct.h + n * channels, width, h_lines + n * kColumns);
  }
  column<D, V>(d, s, e, {a_lines, c_lines, h_lines, kColumns, states * kColumns}, x, y);
  for (std::size_t n = 0; n < 2 * states; ++n) std::copy_n(h_lines + n * kColumns, width, direct.h + n * channels);
}

void scan(const DiagonalScan& s, MatrixView x, float* h, MatrixSpan y) {
  const hn::CappedTag<float, kColumns> d;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  constexpr std::size_t kVectors = kColumns / hn::MaxLanes(d), kHalf = 8 / hn::MaxLanes(eight);
  std::size_t e = 0;
  if (x.rows == 1) {  // longer runs of memory
    for (; e + 4 * kColumns <= s.channels; e += 4 * kColumns) column_of<decltype(d), 4 * kVectors>(d, s, e, x, h, y);
  }
  for (; e + kColumns <= s.channels; e += kColumns) column_of<decltype(d), kVectors>(d, s, e, x, h, y);
  if (e + 8 <= s.channels) column_of<decltype(eight), kHalf>(eight, s, e, x, h, y), e += 8;
  if (e + 4 <= s.channels) column_of<decltype(four), 1>(four, s, e, x, h, y), e += 4;
  for (; e < s.channels; ++e) column_of<decltype(one), 1>(one, s, e, x, h, y);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void diagonal_scan_plain(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const std::size_t plane = s.states * s.channels;
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const float input = x.row(t)[e];
      float sum = s.d[e] * input;
      for (std::size_t i = e; i < plane; i += s.channels) {
        const float real = h[i], imaginary = h[plane + i];
        h[i] = std::fma(-s.a[plane + i], imaginary, std::fma(s.a[i], real, input));
        h[plane + i] = std::fma(s.a[plane + i], real, s.a[i] * imaginary);
        sum = std::fma(s.c[i], h[i], sum);
        sum = std::fma(-s.c[plane + i], h[plane + i], sum);
      }
      y.row(t)[e] = sum;
    }
  }
}

HWY_EXPORT(scan);

void diagonal_scan(const DiagonalScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kDiagonalScan)) return other->diagonal_scan(s, x, h, y);
  HWY_DYNAMIC_DISPATCH(scan)(s, x, h.data(), y);
}

}  // namespace kizzasi::kernels
#endif
