#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/conv1d_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kizzasi/kernels/conv1d.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
constexpr std::size_t kColumns = 16;  // channels that go through the rows together: one cache line

// V vectors of channels from e on, through all rows. gw: (K, channels).
template <class D, std::size_t V>
HWY_INLINE void column(D d, const float* w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, float* HWY_RESTRICT gw,
                       float* gbias, std::size_t e) {
  const std::size_t rows = x.rows, channels = x.cols, width = hn::Lanes(d);
  hn::Vec<D> sum[V];
  for (std::size_t v = 0; v < V; ++v) sum[v] = gbias == nullptr ? hn::Zero(d) : hn::LoadU(d, gbias + e + v * width);
  for (std::size_t t = 0; t < rows; ++t) {
    const float* from = x.data + t * x.stride + e;
    float* to = gx.data + t * gx.stride + e;
    hwy::Prefetch(from + kColumns);  // of the next channels: rows stand too far apart for the processor to guess
    hwy::Prefetch(to + kColumns);
    hwy::Prefetch(gy.data + t * gy.stride + e + kColumns);
    hn::Vec<D> input[V], total[V];
    for (std::size_t v = 0; v < V; ++v) {
      input[v] = hn::LoadU(d, from + v * width);
      total[v] = hn::LoadU(d, to + v * width);
      sum[v] = hn::Add(sum[v], hn::LoadU(d, gy.data + t * gy.stride + e + v * width));
    }
    for (std::size_t lag = 0; lag < std::min(taps, rows - t); ++lag) {  // x[t] went into y[t + lag] through tap K - 1 - lag
      const std::size_t tap = (taps - 1 - lag) * channels + e;
      for (std::size_t v = 0; v < V; ++v) {
        const auto g = hn::LoadU(d, gy.data + (t + lag) * gy.stride + e + v * width);
        total[v] = hn::MulAdd(hn::LoadU(d, w + tap + v * width), g, total[v]);
        hn::StoreU(hn::MulAdd(input[v], g, hn::LoadU(d, gw + tap + v * width)), d, gw + tap + v * width);
      }
    }
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(total[v], d, to + v * width);
  }
  if (gbias == nullptr) return;
  for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[v], d, gbias + e + v * width);
}

void backward(const float* w, std::size_t taps, MatrixView x, MatrixView gy, MatrixSpan gx, float* gw, float* gbias) {
  const hn::CappedTag<float, kColumns> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  constexpr std::size_t kVectors = kColumns / hn::MaxLanes(d);
  std::size_t e = 0;
  for (; e + kColumns <= x.cols; e += kColumns) column<decltype(d), kVectors>(d, w, taps, x, gy, gx, gw, gbias, e);
  for (; e + 4 <= x.cols; e += 4) column<decltype(four), 1>(four, w, taps, x, gy, gx, gw, gbias, e);
  for (; e < x.cols; ++e) column<decltype(one), 1>(one, w, taps, x, gy, gx, gw, gbias, e);
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
