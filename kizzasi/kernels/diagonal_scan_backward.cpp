#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/diagonal_scan_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kizzasi/kernels/diagonal_scan.h"

#ifndef KIZZASI_KERNELS_DIAGONAL_SCAN_BACKWARD_CALL
#define KIZZASI_KERNELS_DIAGONAL_SCAN_BACKWARD_CALL
namespace kizzasi::kernels {
constexpr std::size_t kSlot = 16;  // floats that one state of a column of channels takes in the buffers

// The rows of one chunk and its buffers. Every (2, N, ...) pair is a real plane and an imaginary one.
struct DiagonalChunk {
  const DiagonalScan& s;
  MatrixView x, gy;
  const DiagonalScanGradients& out;
  const float* before;         // (2, N, E): the state before the chunk
  float* carry;                // (2, N, E): the gradient of the state after the chunk; then that of the state before it
  float* h;                    // (rows + 1, 2, N, slot)
  float *a, *c, *ga, *gc, *g;  // (2, N, slot) of the present column
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The channels e .. e + lanes of the chunk: states forward again, then their gradients g[t] = conj(c) gy[t] + conj(a) g[t+1] backward.
template <class D>
HWY_INLINE void column(D d, const DiagonalChunk& k, std::size_t e) {
  const std::size_t width = hn::Lanes(d), channels = k.s.channels, states = k.s.states, plane = states * kSlot;
  for (std::size_t n = 0; n < 2 * states; ++n) {
    const std::size_t from = n * channels + e, to = n * kSlot;
    std::copy_n(k.s.a.data() + from, width, k.a + to);
    std::copy_n(k.s.c.data() + from, width, k.c + to);
    std::fill_n(k.ga + to, width, 0.0f);  // each chunk summed by itself: over many rows one running sum would lose digits
    std::fill_n(k.gc + to, width, 0.0f);
    std::copy_n(k.carry + from, width, k.g + to);
    std::copy_n(k.before + from, width, k.h + to);
    hwy::Prefetch(k.before + from + kSlot);  // of the next channels: rows stand too far apart for the processor to guess
    hwy::Prefetch(k.carry + from + kSlot);
  }
  for (std::size_t t = 0; t < k.x.rows; ++t) {
    const float* HWY_RESTRICT before = k.h + t * 2 * plane;
    float* HWY_RESTRICT after = k.h + (t + 1) * 2 * plane;
    hwy::Prefetch(k.x.data + t * k.x.stride + e + kSlot);
    hwy::Prefetch(k.gy.data + t * k.gy.stride + e + kSlot);
    hwy::Prefetch(k.out.x.data + t * k.out.x.stride + e + kSlot);
    const auto x = hn::LoadU(d, k.x.data + t * k.x.stride + e);
    for (std::size_t re = 0, im = plane; re < plane; re += kSlot, im += kSlot) {
      const auto a_re = hn::Load(d, k.a + re), a_im = hn::Load(d, k.a + im), h_re = hn::Load(d, before + re),
                 h_im = hn::Load(d, before + im);
      hn::Store(hn::NegMulAdd(a_im, h_im, hn::MulAdd(a_re, h_re, x)), d, after + re);
      hn::Store(hn::MulAdd(a_im, h_re, hn::Mul(a_re, h_im)), d, after + im);
    }
  }
  auto gd = hn::Zero(d);
  const auto skip = hn::LoadU(d, k.s.d.data() + e);
  for (std::size_t t = k.x.rows; t-- > 0;) {
    const float* HWY_RESTRICT before = k.h + t * 2 * plane;
    const float* HWY_RESTRICT after = k.h + (t + 1) * 2 * plane;
    float* HWY_RESTRICT carry = k.g;
    float* HWY_RESTRICT ga = k.ga;
    float* HWY_RESTRICT gc = k.gc;
    const auto gy = hn::LoadU(d, k.gy.data + t * k.gy.stride + e);
    auto gx = hn::Mul(skip, gy);
    for (std::size_t re = 0, im = plane; re < plane; re += kSlot, im += kSlot) {
      const auto g_re = hn::MulAdd(hn::Load(d, k.c + re), gy, hn::Load(d, carry + re));
      const auto g_im = hn::NegMulAdd(hn::Load(d, k.c + im), gy, hn::Load(d, carry + im));
      hn::Store(hn::MulAdd(gy, hn::Load(d, after + re), hn::Load(d, gc + re)), d, gc + re);
      hn::Store(hn::NegMulAdd(gy, hn::Load(d, after + im), hn::Load(d, gc + im)), d, gc + im);
      const auto h_re = hn::Load(d, before + re), h_im = hn::Load(d, before + im);
      hn::Store(hn::MulAdd(g_re, h_re, hn::MulAdd(g_im, h_im, hn::Load(d, ga + re))), d, ga + re);
      hn::Store(hn::MulAdd(g_im, h_re, hn::NegMulAdd(g_re, h_im, hn::Load(d, ga + im))), d, ga + im);
      gx = hn::Add(gx, g_re);
      const auto a_re = hn::Load(d, k.a + re), a_im = hn::Load(d, k.a + im);
      hn::Store(hn::MulAdd(a_re, g_re, hn::Mul(a_im, g_im)), d, carry + re);
      hn::Store(hn::NegMulAdd(a_im, g_re, hn::Mul(a_re, g_im)), d, carry + im);
    }
    float* to = k.out.x.data + t * k.out.x.stride + e;
    hn::StoreU(hn::Add(hn::LoadU(d, to), gx), d, to);
    gd = hn::MulAdd(gy, hn::LoadU(d, k.x.data + t * k.x.stride + e), gd);
  }
  hn::StoreU(hn::Add(hn::LoadU(d, k.out.d.data() + e), gd), d, k.out.d.data() + e);
  for (std::size_t n = 0; n < 2 * states; ++n) {
    float *ga = k.out.a.data() + n * channels + e, *gc = k.out.c.data() + n * channels + e;
    hn::StoreU(hn::Add(hn::LoadU(d, ga), hn::Load(d, k.ga + n * kSlot)), d, ga);
    hn::StoreU(hn::Add(hn::LoadU(d, gc), hn::Load(d, k.gc + n * kSlot)), d, gc);
    std::copy_n(k.g + n * kSlot, width, k.carry + n * channels + e);
  }
}

void chunk_backward(const DiagonalChunk& k) {
  const hn::CappedTag<float, kSlot> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= k.s.channels; e += hn::Lanes(d)) column(d, k, e);
  for (; e + 4 <= k.s.channels; e += 4) column(four, k, e);
  for (; e < k.s.channels; ++e) column(one, k, e);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(chunk_backward);

void diagonal_scan_keeping(const DiagonalScan& s, MatrixView x, std::span<float> kept, MatrixSpan y) noexcept {
  const std::size_t size = 2 * s.states * s.channels;
  std::fill_n(kept.data(), size, 0.0f);
  for (std::size_t t = 0, chunk = 1; t < x.rows; t += kDiagonalCheckpointRows, ++chunk) {
    const std::size_t rows = std::min(kDiagonalCheckpointRows, x.rows - t);
    const std::span<float> h = kept.subspan(chunk * size, size);
    std::copy_n(kept.data() + (chunk - 1) * size, size, h.data());
    diagonal_scan(s, x.slice(t, rows), h, y.slice(t, rows));
  }
}

std::size_t diagonal_scan_backward_scratch(const DiagonalScan& s) noexcept {
  return kSlot + (kDiagonalCheckpointRows + 6) * 2 * s.states * kSlot + 2 * s.states * s.channels;
}

void diagonal_scan_backward(const DiagonalScan& s, MatrixView x, std::span<const float> kept, MatrixView gy,
                            const DiagonalScanGradients& out, std::span<float> scratch) noexcept {
  const std::size_t size = 2 * s.states * s.channels, line = 2 * s.states * kSlot;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(scratch.data()) / sizeof(float) % kSlot;
  float* free = scratch.data() + (kSlot - misaligned) % kSlot;  // buffers begin on a cache line
  const auto take = [&free](std::size_t count) { return std::exchange(free, free + count); };
  float *h = take((kDiagonalCheckpointRows + 1) * line), *a = take(line), *c = take(line), *ga = take(line), *gc = take(line),
        *g = take(line), *carry = take(size);
  std::fill_n(carry, size, 0.0f);
  for (std::size_t chunk = diagonal_checkpoints(x.rows); chunk-- > 0;) {
    const std::size_t t = chunk * kDiagonalCheckpointRows, rows = std::min(kDiagonalCheckpointRows, x.rows - t);
    const DiagonalScanGradients here{out.x.slice(t, rows), out.a, out.c, out.d};
    HWY_DYNAMIC_DISPATCH(chunk_backward)
    ({s, x.slice(t, rows), gy.slice(t, rows), here, kept.data() + chunk * size, carry, h, a, c, ga, gc, g});
  }
}

}  // namespace kizzasi::kernels
#endif
