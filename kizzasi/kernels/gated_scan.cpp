#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/gated_scan.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/gated_scan.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// V vectors of channels from e on, through all rows, with the state in registers.
template <class D, std::size_t V>
HWY_INLINE void column(D d, std::size_t e, MatrixView a, MatrixView x, float* h, MatrixSpan y) {
  const std::size_t width = hn::Lanes(d);
  hn::Vec<D> state[V];
  for (std::size_t v = 0; v < V; ++v) state[v] = hn::LoadU(d, h + e + v * width);
  for (std::size_t t = 0; t < x.rows; ++t) {
    const float* at = a.data + t * a.stride + e;
    const float* xt = x.data + t * x.stride + e;
    float* yt = y.data + t * y.stride + e;
    for (std::size_t v = 0; v < V; ++v) {
      state[v] = hn::MulAdd(hn::LoadU(d, at + v * width), state[v], hn::LoadU(d, xt + v * width));
      hn::StoreU(state[v], d, yt + v * width);
    }
  }
  for (std::size_t v = 0; v < V; ++v) hn::StoreU(state[v], d, h + e + v * width);
}

// From the last row: g = gy[t] + a[t + 1] g;   ga[t] += g y[t - 1];   gx[t] += g.
template <class D, std::size_t V>
HWY_INLINE void column_backward(D d, std::size_t e, MatrixView a, MatrixView y, MatrixView gy, MatrixSpan ga, MatrixSpan gx) {
  const std::size_t width = hn::Lanes(d);
  hn::Vec<D> carry[V];
  for (std::size_t v = 0; v < V; ++v) carry[v] = hn::Zero(d);
  for (std::size_t t = a.rows; t-- > 0;) {
    for (std::size_t v = 0; v < V; ++v) {
      const std::size_t at = e + v * width;
      const auto g = hn::Add(carry[v], hn::LoadU(d, gy.data + t * gy.stride + at));
      const auto before = t > 0 ? hn::LoadU(d, y.data + (t - 1) * y.stride + at) : hn::Zero(d);
      float* to_a = ga.data + t * ga.stride + at;
      float* to_x = gx.data + t * gx.stride + at;
      hn::StoreU(hn::MulAdd(g, before, hn::LoadU(d, to_a)), d, to_a);
      hn::StoreU(hn::Add(g, hn::LoadU(d, to_x)), d, to_x);
      carry[v] = hn::Mul(g, hn::LoadU(d, a.data + t * a.stride + at));
    }
  }
}

void scan(MatrixView a, MatrixView x, float* h, MatrixSpan y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d);
  std::size_t e = 0;
  for (; e + 4 * width <= x.cols; e += 4 * width) column<decltype(d), 4>(d, e, a, x, h, y);
  for (; e + width <= x.cols; e += width) column<decltype(d), 1>(d, e, a, x, h, y);
  for (; e < x.cols; ++e) column<decltype(one), 1>(one, e, a, x, h, y);
}

void scan_backward(MatrixView a, MatrixView y, MatrixView gy, MatrixSpan ga, MatrixSpan gx) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d);
  std::size_t e = 0;
  for (; e + 4 * width <= a.cols; e += 4 * width) column_backward<decltype(d), 4>(d, e, a, y, gy, ga, gx);
  for (; e + width <= a.cols; e += width) column_backward<decltype(d), 1>(d, e, a, y, gy, ga, gx);
  for (; e < a.cols; ++e) column_backward<decltype(one), 1>(one, e, a, y, gy, ga, gx);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void gated_scan_plain(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t e = 0; e < x.cols; ++e) {
      h[e] = std::fma(a.row(t)[e], h[e], x.row(t)[e]);
      y.row(t)[e] = h[e];
    }
  }
}

HWY_EXPORT(scan);
HWY_EXPORT(scan_backward);

void gated_scan(MatrixView a, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kGatedScan)) return other->gated_scan(a, x, h, y);
  HWY_DYNAMIC_DISPATCH(scan)(a, x, h.data(), y);
}

void gated_scan_backward(MatrixView a, MatrixView y, MatrixView gy, MatrixSpan ga, MatrixSpan gx) noexcept {
  HWY_DYNAMIC_DISPATCH(scan_backward)(a, y, gy, ga, gx);
}

}  // namespace kizzasi::kernels
#endif
