#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/conv1d_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kizzasi/kernels/conv1d.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The channels e .. e + lanes of all rows, tap by tap.
template <class D>
HWY_INLINE void column(D d, const float* w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, float* gw, float* gbias,
                       std::size_t e) {
  const std::size_t rows = x.rows, channels = x.cols;
  for (std::size_t j = 0; j < taps; ++j) {
    const std::size_t lag = taps - 1 - j;
    const auto tap = hn::LoadU(d, w + j * channels + e);
    auto even = hn::LoadU(d, gw + j * channels + e), odd = hn::Zero(d);
    const auto row = [&](std::size_t t, hn::Vec<D> sum) HWY_ATTR {  // x[t] went into y[t + lag] through this tap
      const auto g = hn::LoadU(d, gy.data + (t + lag) * gy.stride + e);
      float* to = gx.data + t * gx.stride + e;
      hn::StoreU(hn::MulAdd(tap, g, hn::LoadU(d, to)), d, to);
      return hn::MulAdd(g, hn::LoadU(d, x.data + t * x.stride + e), sum);
    };
    std::size_t t = 0;
    for (; t + lag + 1 < rows; t += 2) {
      even = row(t, even);
      odd = row(t + 1, odd);
    }
    if (t + lag < rows) even = row(t, even);
    hn::StoreU(hn::Add(even, odd), d, gw + j * channels + e);
  }
  if (gbias == nullptr) return;
  auto sum = hn::LoadU(d, gbias + e);
  for (std::size_t t = 0; t < rows; ++t) sum = hn::Add(sum, hn::LoadU(d, gy.data + t * gy.stride + e));
  hn::StoreU(sum, d, gbias + e);
}

void backward(const float* w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, float* gw, float* gbias) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= x.cols; e += hn::Lanes(d)) column(d, w, taps, x, gy, gx, gw, gbias, e);
  for (; e < x.cols; ++e) column(one, w, taps, x, gy, gx, gw, gbias, e);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(backward);

void conv1d_backward(std::span<const float> w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, std::span<float> gw,
                     std::span<float> gbias) noexcept {
  HWY_DYNAMIC_DISPATCH(backward)(w.data(), taps, x, gy, gx, gw.data(), gbias.empty() ? nullptr : gbias.data());
}

}  // namespace kizzasi::kernels
#endif
