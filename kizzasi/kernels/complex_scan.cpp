#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/complex_scan.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/complex_scan.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// V vectors of states from n on, through all rows, in registers.
template <class D, std::size_t V>
HWY_INLINE void column(D d, std::size_t n, std::size_t states, const float* a, const float* b, MatrixView x, float* h, MatrixSpan y) {
  const std::size_t width = hn::Lanes(d);
  hn::Vec<D> a_re[V], a_im[V], b_re[V], b_im[V], h_re[V], h_im[V];
  for (std::size_t v = 0; v < V; ++v) {
    const std::size_t re = n + v * width, im = states + re;
    a_re[v] = hn::LoadU(d, a + re), a_im[v] = hn::LoadU(d, a + im);
    b_re[v] = hn::LoadU(d, b + re), b_im[v] = hn::LoadU(d, b + im);
    h_re[v] = hn::LoadU(d, h + re), h_im[v] = hn::LoadU(d, h + im);
  }
  for (std::size_t t = 0; t < x.rows; ++t) {
    const float* in = x.data + t * x.stride + n;
    float* out = y.data + t * y.stride + n;
    for (std::size_t v = 0; v < V; ++v) {
      const auto x_re = hn::LoadU(d, in + v * width), x_im = hn::LoadU(d, in + states + v * width);
      const auto re_in = hn::NegMulAdd(b_im[v], x_im, hn::Mul(b_re[v], x_re)), im_in = hn::MulAdd(b_im[v], x_re, hn::Mul(b_re[v], x_im));
      const auto re = hn::NegMulAdd(a_im[v], h_im[v], hn::MulAdd(a_re[v], h_re[v], re_in));
      h_im[v] = hn::MulAdd(a_im[v], h_re[v], hn::MulAdd(a_re[v], h_im[v], im_in));
      h_re[v] = re;
      hn::StoreU(h_re[v], d, out + v * width);
      hn::StoreU(h_im[v], d, out + states + v * width);
    }
  }
  for (std::size_t v = 0; v < V; ++v) {
    hn::StoreU(h_re[v], d, h + n + v * width);
    hn::StoreU(h_im[v], d, h + states + n + v * width);
  }
}

// From the last row, with g the gradient of h[t]: g = gy[t] + conj(a) g;  gx[t] += conj(b) g;  ga += g conj(h[t - 1]);  gb += g conj(x[t]).
template <class D>
HWY_INLINE void column_backward(D d, std::size_t n, std::size_t states, const float* a, const float* b, MatrixView x, MatrixView y,
                                MatrixView gy, const ComplexScanGradients& out) {
  constexpr std::size_t kRows = 64;  // whose products are summed apart, so that long sums keep their digits
  const auto load = [d, n, states](const float* row, auto& re, auto& im) {
    re = hn::LoadU(d, row + n);
    im = hn::LoadU(d, row + states + n);
  };
  const auto add = [d, n, states](float* row, auto re, auto im) {
    hn::StoreU(hn::Add(re, hn::LoadU(d, row + n)), d, row + n);
    hn::StoreU(hn::Add(im, hn::LoadU(d, row + states + n)), d, row + states + n);
  };
  const auto zero = hn::Zero(d);
  auto a_re = zero, a_im = zero, b_re = zero, b_im = zero, g_re = zero, g_im = zero, ga_re = zero, ga_im = zero, gb_re = zero, gb_im = zero;
  load(a, a_re, a_im);
  load(b, b_re, b_im);
  for (std::size_t end = x.rows; end > 0;) {
    const std::size_t begin = (end - 1) / kRows * kRows;
    auto sa_re = zero, sa_im = zero, sb_re = zero, sb_im = zero;
    for (std::size_t t = end; t-- > begin;) {
      auto from_re = zero, from_im = zero, v_re = zero, v_im = zero;
      load(gy.data + t * gy.stride, from_re, from_im);
      const auto re = hn::MulAdd(a_im, g_im, hn::MulAdd(a_re, g_re, from_re));
      g_im = hn::NegMulAdd(a_im, g_re, hn::MulAdd(a_re, g_im, from_im));
      g_re = re;
      add(out.x.data + t * out.x.stride, hn::MulAdd(b_im, g_im, hn::Mul(b_re, g_re)), hn::NegMulAdd(b_im, g_re, hn::Mul(b_re, g_im)));
      load(x.data + t * x.stride, v_re, v_im);
      sb_re = hn::MulAdd(g_im, v_im, hn::MulAdd(g_re, v_re, sb_re));
      sb_im = hn::NegMulAdd(g_re, v_im, hn::MulAdd(g_im, v_re, sb_im));
      if (t == 0) break;
      load(y.data + (t - 1) * y.stride, v_re, v_im);
      sa_re = hn::MulAdd(g_im, v_im, hn::MulAdd(g_re, v_re, sa_re));
      sa_im = hn::NegMulAdd(g_re, v_im, hn::MulAdd(g_im, v_re, sa_im));
    }
    ga_re = hn::Add(ga_re, sa_re), ga_im = hn::Add(ga_im, sa_im);
    gb_re = hn::Add(gb_re, sb_re), gb_im = hn::Add(gb_im, sb_im);
    end = begin;
  }
  add(out.a.data(), ga_re, ga_im);
  add(out.b.data(), gb_re, gb_im);
}

void scan(const float* a, const float* b, MatrixView x, float* h, MatrixSpan y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t states = x.cols / 2, width = hn::Lanes(d);
  std::size_t n = 0;
  for (; n + 2 * width <= states; n += 2 * width) column<decltype(d), 2>(d, n, states, a, b, x, h, y);
  for (; n + width <= states; n += width) column<decltype(d), 1>(d, n, states, a, b, x, h, y);
  for (; n < states; ++n) column<decltype(one), 1>(one, n, states, a, b, x, h, y);
}

void scan_backward(const float* a, const float* b, MatrixView x, MatrixView y, MatrixView gy, const ComplexScanGradients& out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t states = x.cols / 2;
  std::size_t n = 0;
  for (; n + hn::Lanes(d) <= states; n += hn::Lanes(d)) column_backward(d, n, states, a, b, x, y, gy, out);
  for (; n < states; ++n) column_backward(one, n, states, a, b, x, y, gy, out);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void complex_scan_plain(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  const std::size_t states = x.cols / 2;
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t n = 0, i = states; n < states; ++n, ++i) {
      const float x_re = x.row(t)[n], x_im = x.row(t)[i], re = h[n], im = h[i];
      h[n] = std::fma(-a[i], im, std::fma(a[n], re, std::fma(-b[i], x_im, b[n] * x_re)));
      h[i] = std::fma(a[i], re, std::fma(a[n], im, std::fma(b[i], x_re, b[n] * x_im)));
      y.row(t)[n] = h[n];
      y.row(t)[i] = h[i];
    }
  }
}

HWY_EXPORT(scan);
HWY_EXPORT(scan_backward);

void complex_scan(std::span<const float> a, std::span<const float> b, MatrixView x, std::span<float> h, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kComplexScan)) return other->complex_scan(a, b, x, h, y);
  HWY_DYNAMIC_DISPATCH(scan)(a.data(), b.data(), x, h.data(), y);
}

void complex_scan_backward(std::span<const float> a, std::span<const float> b, MatrixView x, MatrixView y, MatrixView gy,
                           const ComplexScanGradients& out) noexcept {
  HWY_DYNAMIC_DISPATCH(scan_backward)(a.data(), b.data(), x, y, gy, out);
}

}  // namespace kizzasi::kernels
#endif
