#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/dilated_conv.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/dilated_conv.h"

// One row of a depthwise convolution.
#ifndef KIZZASI_KERNELS_DILATED_CONV_CALL
#define KIZZASI_KERNELS_DILATED_CONV_CALL
namespace kizzasi::kernels {
struct DilatedConvRow {
  const float *w, *bias, *x;  // bias may be null
  float *history, *y;
  std::size_t taps, dilation, reach, channels;
  std::size_t place;  // of the row in the ring: that of the oldest, which it replaces

  // Where the input of tap j < K - 1 stands.
  std::size_t before(std::size_t j) const {
    const std::size_t at = place + j * dilation;
    return (at < reach ? at : at - reach) * channels;
  }
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void lanes(D d, const DilatedConvRow& c, std::size_t e) {
  auto sum = c.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, c.bias + e);
  for (std::size_t j = 0; j + 1 < c.taps; ++j) {
    sum = hn::MulAdd(hn::LoadU(d, c.w + j * c.channels + e), hn::LoadU(d, c.history + c.before(j) + e), sum);
  }
  const auto now = hn::LoadU(d, c.x + e);
  sum = hn::MulAdd(hn::LoadU(d, c.w + (c.taps - 1) * c.channels + e), now, sum);
  if (c.reach > 0) hn::StoreU(now, d, c.history + c.place * c.channels + e);
  hn::StoreU(sum, d, c.y + e);
}

void row(const DilatedConvRow& c) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= c.channels; e += hn::Lanes(d)) lanes(d, c, e);
  for (; e < c.channels; ++e) lanes(one, c, e);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(row);

namespace {

// use(row of the call) for every row of x, through the ring.
template <typename Use>
void for_each_row(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x, MatrixSpan y,
                  Use use) {
  const std::size_t reach = taps.reach();
  std::size_t place = reach > 0 ? history.seen % reach : 0;
  for (std::size_t t = 0; t < x.rows; ++t) {
    use(DilatedConvRow{w.data(), bias.empty() ? nullptr : bias.data(), x.row(t).data(), history.rows.data(), y.row(t).data(), taps.taps,
                       taps.dilation, reach, x.cols, place});
    if (++place >= reach) place = 0;
  }
  history.seen += x.rows;
}

}  // namespace

void dilated_conv1d(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                    MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kDilatedConv1d)) return other->dilated_conv1d(w, bias, taps, history, x, y);
  for_each_row(w, bias, taps, history, x, y, [](const DilatedConvRow& c) { HWY_DYNAMIC_DISPATCH(row)(c); });
}

void dilated_conv1d_plain(std::span<const float> w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                          MatrixSpan y) noexcept {
  for_each_row(w, bias, taps, history, x, y, [&](const DilatedConvRow& c) {
    for (std::size_t e = 0; e < c.channels; ++e) {
      float sum = c.bias == nullptr ? 0.0f : c.bias[e];
      for (std::size_t j = 0; j + 1 < c.taps; ++j) sum = std::fma(c.w[j * c.channels + e], c.history[c.before(j) + e], sum);
      const float now = c.x[e];
      if (c.reach > 0) c.history[c.place * c.channels + e] = now;
      c.y[e] = std::fma(c.w[(c.taps - 1) * c.channels + e], now, sum);
    }
  });
}

void dilated_rows(DilatedTaps taps, ConvHistory history, MatrixView x, MatrixSpan out) noexcept {
  for_each_row({}, {}, taps, history, x, out, [&](const DilatedConvRow& c) {
    for (std::size_t j = 0; j + 1 < c.taps; ++j) std::copy_n(c.history + c.before(j), c.channels, c.y + j * c.channels);
    std::copy_n(c.x, c.channels, c.y + (c.taps - 1) * c.channels);
    if (c.reach > 0) std::copy_n(c.x, c.channels, c.history + c.place * c.channels);
  });
}

void dilated_conv(const PackedWeight& w, std::span<const float> bias, DilatedTaps taps, ConvHistory history, MatrixView x,
                  std::span<float> scratch, MatrixSpan y) noexcept {
  const MatrixSpan taken(scratch.data(), x.rows, taps.taps * x.cols);
  dilated_rows(taps, history, x, taken);
  linear(w, taken, bias, y);
}

std::vector<float> conv_taps_first(std::span<const float> w, std::size_t outputs, std::size_t channels, std::size_t taps) {
  std::vector<float> out(w.size());
  for (std::size_t o = 0; o < outputs; ++o) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t j = 0; j < taps; ++j) out[(o * taps + j) * channels + c] = w[(o * channels + c) * taps + j];
    }
  }
  return out;
}

}  // namespace kizzasi::kernels
#endif
