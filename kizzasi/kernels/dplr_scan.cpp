#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/dplr_scan.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/dplr_scan.h"

#ifndef KIZZASI_KERNELS_DPLR_SCAN_SIZES
#define KIZZASI_KERNELS_DPLR_SCAN_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kDplrColumn = 16;      // channels that go through the rows together: one cache line
constexpr std::size_t kDplrMostStates = 32;  // whose states and coefficients fit a buffer of 24 KiB then

// Of one column of channels, state 0: the real parts; the imaginary ones stand `plane` floats further, the next state's `stride`.
struct DplrColumn {
  const float *a, *b, *c, *p, *r;
  float* h;
  std::size_t states, stride, plane;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> shared(D d, const DplrColumn& k) {
  auto q = hn::Zero(d);
  for (std::size_t n = 0; n < k.states; ++n) {
    const std::size_t re = n * k.stride, im = re + k.plane;
    q = hn::MulAdd(hn::LoadU(d, k.p + re), hn::LoadU(d, k.h + re), q);
    q = hn::NegMulAdd(hn::LoadU(d, k.p + im), hn::LoadU(d, k.h + im), q);
  }
  return q;
}

// Channels e .. e + lanes through all rows. The q of the next row is summed beside y, in the order of `shared`.
template <class D>
HWY_INLINE void column(D d, const DplrScan& s, const DplrColumn& k, std::size_t e, MatrixView x, MatrixSpan y) {
  const auto skip = hn::LoadU(d, s.d.data() + e);
  auto q = shared(d, k);
  for (std::size_t t = 0; t < x.rows; ++t) {
    const auto input = hn::LoadU(d, x.data + t * x.stride + e);
    auto sum = hn::Mul(skip, input), next = hn::Zero(d);
    for (std::size_t n = 0; n < k.states; ++n) {
      const std::size_t at_re = n * k.stride, at_im = at_re + k.plane;
      const auto a_re = hn::LoadU(d, k.a + at_re), a_im = hn::LoadU(d, k.a + at_im);
      const auto h_re = hn::LoadU(d, k.h + at_re), h_im = hn::LoadU(d, k.h + at_im);
      auto re = hn::MulAdd(hn::LoadU(d, k.b + at_re), input, hn::Mul(hn::LoadU(d, k.r + at_re), q));
      auto im = hn::MulAdd(hn::LoadU(d, k.b + at_im), input, hn::Mul(hn::LoadU(d, k.r + at_im), q));
      re = hn::NegMulAdd(a_im, h_im, hn::MulAdd(a_re, h_re, re));
      im = hn::MulAdd(a_im, h_re, hn::MulAdd(a_re, h_im, im));
      hn::StoreU(re, d, k.h + at_re);
      hn::StoreU(im, d, k.h + at_im);
      sum = hn::MulAdd(hn::LoadU(d, k.c + at_re), re, sum);
      sum = hn::NegMulAdd(hn::LoadU(d, k.c + at_im), im, sum);
      next = hn::MulAdd(hn::LoadU(d, k.p + at_re), re, next);
      next = hn::NegMulAdd(hn::LoadU(d, k.p + at_im), im, next);
    }
    hn::StoreU(sum, d, y.data + t * y.stride + e);
    q = next;
  }
}

// With more than one row, through a buffer: planes a power of two apart would share their places in the cache.
template <class D>
HWY_INLINE void column_of(D d, const DplrScan& s, std::size_t e, MatrixView x, float* h, MatrixSpan y) {
  const std::size_t channels = s.channels, states = s.states, width = hn::Lanes(d);
  const float* from[] = {s.a.data() + e, s.b.data() + e, s.c.data() + e, s.p.data() + e, s.r.data() + e, h + e};
  if (x.rows == 1 || states > kDplrMostStates) {
    return column(d, s, {from[0], from[1], from[2], from[3], from[4], h + e, states, channels, states * channels}, e, x, y);
  }
  HWY_ALIGN float lines[6][2 * kDplrMostStates * kDplrColumn];
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t n = 0; n < 2 * states; ++n) std::copy_n(from[i] + n * channels, width, lines[i] + n * kDplrColumn);
  }
  column(d, s, {lines[0], lines[1], lines[2], lines[3], lines[4], lines[5], states, kDplrColumn, states * kDplrColumn}, e, x, y);
  for (std::size_t n = 0; n < 2 * states; ++n) std::copy_n(lines[5] + n * kDplrColumn, width, h + e + n * channels);
}

void scan(const DplrScan& s, MatrixView x, float* h, MatrixSpan y) {
  const hn::CappedTag<float, kDplrColumn> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= s.channels; e += hn::Lanes(d)) column_of(d, s, e, x, h, y);
  for (; e + 4 <= s.channels; e += 4) column_of(four, s, e, x, h, y);
  for (; e < s.channels; ++e) column_of(one, s, e, x, h, y);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void dplr_scan_plain(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const std::size_t plane = s.states * s.channels;
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const float input = x.row(t)[e];
      float q = 0, sum = s.d[e] * input;
      for (std::size_t i = e; i < plane; i += s.channels) q = std::fma(-s.p[plane + i], h[plane + i], std::fma(s.p[i], h[i], q));
      for (std::size_t i = e, j = plane + e; i < plane; i += s.channels, j += s.channels) {
        const float re = h[i], im = h[j];
        h[i] = std::fma(-s.a[j], im, std::fma(s.a[i], re, std::fma(s.b[i], input, s.r[i] * q)));
        h[j] = std::fma(s.a[j], re, std::fma(s.a[i], im, std::fma(s.b[j], input, s.r[j] * q)));
        sum = std::fma(-s.c[j], h[j], std::fma(s.c[i], h[i], sum));
      }
      y.row(t)[e] = sum;
    }
  }
}

HWY_EXPORT(scan);

void dplr_scan(const DplrScan& s, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kDplrScan)) return other->dplr_scan(s, x, h, y);
  HWY_DYNAMIC_DISPATCH(scan)(s, x, h.data(), y);
}

}  // namespace kizzasi::kernels
#endif
