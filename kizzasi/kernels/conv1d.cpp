#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/conv1d.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/conv1d.h"

// One convolution: as conv1d_step's arguments.
#ifndef KIZZASI_KERNELS_CONV1D_CALL
#define KIZZASI_KERNELS_CONV1D_CALL
namespace kizzasi::kernels {
struct Conv1dCall {
  const float *w, *bias;  // bias may be null
  float* window;
  std::size_t taps, channels;
};
constexpr std::size_t kColumns = 16;  // channels that go through the rows together
constexpr std::size_t kLines = 128;   // rows of inputs and history in the buffer they go through: 8 KiB
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Channels e .. e + lanes of one row: the window moves on and takes the row in, the taps are summed.
template <class D>
HWY_INLINE void step_lanes(D d, const Conv1dCall& c, std::size_t e, const float* x, float* y) {
  auto sum = c.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, c.bias + e);
  for (std::size_t j = 0; j < c.taps; ++j) {
    const auto value = j + 1 < c.taps ? hn::LoadU(d, c.window + (j + 1) * c.channels + e) : hn::LoadU(d, x + e);
    hn::StoreU(value, d, c.window + j * c.channels + e);
    sum = hn::MulAdd(hn::LoadU(d, c.w + j * c.channels + e), value, sum);
  }
  hn::StoreU(sum, d, y + e);
}

void step_row(const Conv1dCall& c, const float* x, float* y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= c.channels; e += hn::Lanes(d)) step_lanes(d, c, e, x, y);
  for (; e < c.channels; ++e) step_lanes(one, c, e, x, y);
}

// V vectors of channels from e on, through all rows. Inputs pass through a buffer that begins with the window, since y may stand where x
// stood.
template <class D, std::size_t V>
HWY_INLINE void column(D d, const Conv1dCall& c, std::size_t e, MatrixView x, MatrixSpan y) {
  const std::size_t width = hn::Lanes(d);
  HWY_ALIGN float line[kLines * kColumns];
  for (std::size_t j = 0; j < c.taps; ++j) std::copy_n(c.window + j * c.channels + e, V * width, line + j * kColumns);
  for (std::size_t t = 0; t < x.rows;) {
    const std::size_t here = std::min(kLines - c.taps, x.rows - t);
    for (std::size_t i = 0; i < here; ++i, ++t) {
      const float* from = x.data + t * x.stride + e;
      hwy::Prefetch(from + kColumns);  // of the next channels: rows stand too far apart for the processor to guess
      hwy::Prefetch(y.data + t * y.stride + e + kColumns);
      for (std::size_t v = 0; v < V; ++v) hn::StoreU(hn::LoadU(d, from + v * width), d, line + (c.taps + i) * kColumns + v * width);
      for (std::size_t v = 0; v < V; ++v) {
        auto sum = c.bias == nullptr ? hn::Zero(d) : hn::LoadU(d, c.bias + e + v * width);
        for (std::size_t j = 0; j < c.taps; ++j) {
          sum =
              hn::MulAdd(hn::LoadU(d, c.w + j * c.channels + e + v * width), hn::LoadU(d, line + (i + j + 1) * kColumns + v * width), sum);
        }
        hn::StoreU(sum, d, y.data + t * y.stride + e + v * width);
      }
    }
    std::copy(line + here * kColumns, line + (here + c.taps) * kColumns, line);
  }
  for (std::size_t j = 0; j < c.taps; ++j) std::copy_n(line + j * kColumns, V * width, c.window + j * c.channels + e);
}

void run_rows(const Conv1dCall& c, MatrixView x, MatrixSpan y) {
  const hn::CappedTag<float, kColumns> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  constexpr std::size_t kVectors = kColumns / hn::MaxLanes(d);
  std::size_t e = 0;
  for (; e + kColumns <= c.channels; e += kColumns) column<decltype(d), kVectors>(d, c, e, x, y);
  for (; e + 4 <= c.channels; e += 4) column<decltype(four), 1>(four, c, e, x, y);
  for (; e < c.channels; ++e) column<decltype(one), 1>(one, c, e, x, y);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(step_row);
HWY_EXPORT(run_rows);

void conv1d_step(std::span<const float> w, std::span<const float> bias, std::size_t taps, std::span<float> window, MatrixView x,
                 MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kConv1dStep)) return other->conv1d_step(w, bias, taps, window, x, y);
  const Conv1dCall call{w.data(), bias.empty() ? nullptr : bias.data(), window.data(), taps, x.cols};
  if (x.rows > 1 && taps <= kLines / 2) {
    HWY_DYNAMIC_DISPATCH(run_rows)(call, x, y);
  } else {
    for (std::size_t t = 0; t < x.rows; ++t) HWY_DYNAMIC_DISPATCH(step_row)(call, x.row(t).data(), y.row(t).data());
  }
}

}  // namespace kizzasi::kernels
#endif
