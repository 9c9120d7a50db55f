#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/selective_scan_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kizzasi/kernels/exponential_inl.h"
#include "kizzasi/kernels/selective_scan.h"

#ifndef KIZZASI_KERNELS_SELECTIVE_SCAN_BACKWARD_CALL
#define KIZZASI_KERNELS_SELECTIVE_SCAN_BACKWARD_CALL
namespace kizzasi::kernels {
constexpr std::size_t kSlot = 16;  // floats that one state of one row of a column of channels takes in the buffers

// The rows of one chunk, first..first + rows, and the buffers that stay in the caches while all columns of channels pass through.
struct ChunkBackward {
  const SelectiveScan& s;
  MatrixView x, delta, b, c, gy;
  const SelectiveScanGradients& out;
  const float* before;  // (N, E): the state before the chunk
  float* carry;         // (N, E): the gradient of the state after the chunk, from the rows after it; then that of the state before it
  float* h;             // (rows + 1, N, slot)
  float* decay;         // (rows, N, slot)
  float *gb, *gc;       // (rows, N, slot): sums over the columns so far, lane by lane
  float *a, *ga, *g;    // (N, slot): A, its gradient and the carry of the present column
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The next channels of a row: rows stand too far apart for the processor to guess.
HWY_INLINE void prefetch_next(MatrixView m, std::size_t t, std::size_t e) { hwy::Prefetch(m.data + t * m.stride + e + kSlot); }

// The channels e .. e + lanes of the chunk: states forward again, then with g[t] = c[t] gy[t] + exp(delta[t+1] a) g[t+1] backward.
template <class D>
HWY_INLINE void column(D d, const ChunkBackward& k, std::size_t e) {
  const std::size_t width = hn::Lanes(d), channels = k.s.channels, states = k.s.states, line = states * kSlot;
  for (std::size_t n = 0; n < states; ++n) {
    std::copy_n(k.s.a.data() + n * channels + e, width, k.a + n * kSlot);
    std::fill_n(k.ga + n * kSlot, width, 0.0f);  // each chunk summed by itself: over many rows one running sum would lose digits
    std::copy_n(k.carry + n * channels + e, width, k.g + n * kSlot);
    std::copy_n(k.before + n * channels + e, width, k.h + n * kSlot);
    hwy::Prefetch(k.before + n * channels + e + kSlot);
    hwy::Prefetch(k.carry + n * channels + e + kSlot);
  }
  const float* HWY_RESTRICT a = k.a;
  for (std::size_t t = 0; t < k.x.rows; ++t) {
    const float* HWY_RESTRICT b = k.b.data + t * k.b.stride;
    const float* HWY_RESTRICT before = k.h + t * line;
    float* HWY_RESTRICT after = k.h + (t + 1) * line;
    float* HWY_RESTRICT decays = k.decay + t * line;
    prefetch_next(k.x, t, e);
    prefetch_next(k.delta, t, e);
    prefetch_next(k.gy, t, e);
    prefetch_next(k.out.x, t, e);
    prefetch_next(k.out.delta, t, e);
    const auto delta = hn::LoadU(d, k.delta.data + t * k.delta.stride + e);
    const auto step = hn::Mul(delta, hn::Set(d, 1.44269504f));
    const auto input = hn::Mul(delta, hn::LoadU(d, k.x.data + t * k.x.stride + e));
    for (std::size_t n = 0; n < states; ++n) {
      const auto decay = exp2_nonpositive(d, hn::Mul(step, hn::Load(d, a + n * kSlot)));
      hn::Store(decay, d, decays + n * kSlot);
      hn::Store(hn::MulAdd(decay, hn::Load(d, before + n * kSlot), hn::Mul(input, hn::Set(d, b[n]))), d, after + n * kSlot);
    }
  }
  auto gd = hn::Zero(d);
  const auto skip = hn::LoadU(d, k.s.d.data() + e);
  for (std::size_t t = k.x.rows; t-- > 0;) {
    const float* HWY_RESTRICT b = k.b.data + t * k.b.stride;
    const float* HWY_RESTRICT c = k.c.data + t * k.c.stride;
    const float* HWY_RESTRICT before = k.h + t * line;
    const float* HWY_RESTRICT after = k.h + (t + 1) * line;
    const float* HWY_RESTRICT decays = k.decay + t * line;
    float* HWY_RESTRICT gb = k.gb + t * line;
    float* HWY_RESTRICT gc = k.gc + t * line;
    float* HWY_RESTRICT carry = k.g;
    float* HWY_RESTRICT ga = k.ga;
    const auto x = hn::LoadU(d, k.x.data + t * k.x.stride + e), delta = hn::LoadU(d, k.delta.data + t * k.delta.stride + e);
    const auto gy = hn::LoadU(d, k.gy.data + t * k.gy.stride + e), input = hn::Mul(delta, x);
    auto from_input = hn::Zero(d), from_decay = hn::Zero(d);  // sum_n g b, sum_n g a exp(delta a) h[t-1]
    for (std::size_t n = 0; n < states; ++n) {
      const auto decay = hn::Load(d, decays + n * kSlot);
      const auto g = hn::MulAdd(hn::Set(d, c[n]), gy, hn::Load(d, carry + n * kSlot));
      hn::Store(hn::MulAdd(gy, hn::Load(d, after + n * kSlot), hn::Load(d, gc + n * kSlot)), d, gc + n * kSlot);
      hn::Store(hn::MulAdd(g, input, hn::Load(d, gb + n * kSlot)), d, gb + n * kSlot);
      from_input = hn::MulAdd(g, hn::Set(d, b[n]), from_input);
      const auto carried = hn::Mul(decay, g);
      hn::Store(carried, d, carry + n * kSlot);
      const auto through = hn::Mul(carried, hn::Load(d, before + n * kSlot));
      from_decay = hn::MulAdd(through, hn::Load(d, a + n * kSlot), from_decay);
      hn::Store(hn::MulAdd(through, delta, hn::Load(d, ga + n * kSlot)), d, ga + n * kSlot);
    }
    float* gx = k.out.x.data + t * k.out.x.stride + e;
    float* gdelta = k.out.delta.data + t * k.out.delta.stride + e;
    hn::StoreU(hn::Add(hn::LoadU(d, gx), hn::MulAdd(delta, from_input, hn::Mul(skip, gy))), d, gx);
    hn::StoreU(hn::Add(hn::LoadU(d, gdelta), hn::MulAdd(x, from_input, from_decay)), d, gdelta);
    gd = hn::MulAdd(gy, x, gd);
  }
  hn::StoreU(hn::Add(hn::LoadU(d, k.out.d.data() + e), gd), d, k.out.d.data() + e);
  for (std::size_t n = 0; n < states; ++n) {
    float* to = k.out.a.data() + n * channels + e;
    hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Load(d, k.ga + n * kSlot)), d, to);
    std::copy_n(k.g + n * kSlot, width, k.carry + n * channels + e);
  }
}

// to[n] += the lanes of from[n], added up
void add_lanes(const float* from, std::size_t states, float* to) {
  const hn::CappedTag<float, kSlot> d;
  for (std::size_t n = 0; n < states; ++n) {
    auto sum = hn::Zero(d);
    for (std::size_t i = 0; i < kSlot; i += hn::Lanes(d)) sum = hn::Add(sum, hn::Load(d, from + n * kSlot + i));
    to[n] += hn::GetLane(hn::SumOfLanes(d, sum));
  }
}

void chunk_backward(const ChunkBackward& k) {
  const hn::CappedTag<float, kSlot> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  const std::size_t channels = k.s.channels, line = k.s.states * kSlot;
  std::fill_n(k.gb, k.x.rows * line, 0.0f);
  std::fill_n(k.gc, k.x.rows * line, 0.0f);
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= channels; e += hn::Lanes(d)) column(d, k, e);
  for (; e + 4 <= channels; e += 4) column(four, k, e);
  for (; e < channels; ++e) column(one, k, e);
  for (std::size_t t = 0; t < k.x.rows; ++t) {
    add_lanes(k.gb + t * line, k.s.states, k.out.b.data + t * k.out.b.stride);
    add_lanes(k.gc + t * line, k.s.states, k.out.c.data + t * k.out.c.stride);
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(chunk_backward);

void selective_scan_keeping(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> kept,
                            MatrixSpan y) noexcept {
  const std::size_t size = s.states * s.channels;
  std::fill_n(kept.data(), size, 0.0f);
  for (std::size_t t = 0, chunk = 1; t < x.rows; t += kCheckpointRows, ++chunk) {
    const std::size_t rows = std::min(kCheckpointRows, x.rows - t);
    const std::span<float> h = kept.subspan(chunk * size, size);
    std::copy_n(kept.data() + (chunk - 1) * size, size, h.data());
    selective_scan(s, x.slice(t, rows), delta.slice(t, rows), b.slice(t, rows), c.slice(t, rows), h, y.slice(t, rows));
  }
}

std::size_t selective_scan_backward_scratch(const SelectiveScan& s) noexcept {
  return kSlot + (4 * kCheckpointRows + 4) * s.states * kSlot + s.states * s.channels;
}

void selective_scan_backward(const SelectiveScan& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c,
                             std::span<const float> kept, MatrixView gy, const SelectiveScanGradients& out,
                             std::span<float> scratch) noexcept {
  const std::size_t size = s.states * s.channels, line = s.states * kSlot;
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(scratch.data()) / sizeof(float) % kSlot;
  float* free = scratch.data() + (kSlot - misaligned) % kSlot;  // buffers begin on a cache line
  const auto take = [&free](std::size_t count) { return std::exchange(free, free + count); };
  float *h = take((kCheckpointRows + 1) * line), *decay = take(kCheckpointRows * line), *gb = take(kCheckpointRows * line),
        *gc = take(kCheckpointRows * line), *a = take(line), *ga = take(line), *g = take(line), *carry = take(size);
  std::fill_n(carry, size, 0.0f);
  for (std::size_t chunk = checkpoints(x.rows); chunk-- > 0;) {
    const std::size_t t = chunk * kCheckpointRows, rows = std::min(kCheckpointRows, x.rows - t);
    const SelectiveScanGradients here{
        out.x.slice(t, rows), out.delta.slice(t, rows), out.b.slice(t, rows), out.c.slice(t, rows), out.a, out.d};
    HWY_DYNAMIC_DISPATCH(chunk_backward)
    ({s, x.slice(t, rows), delta.slice(t, rows), b.slice(t, rows), c.slice(t, rows), gy.slice(t, rows), here, kept.data() + chunk * size,
      carry, h, decay, gb, gc, a, ga, g});
  }
}

}  // namespace kizzasi::kernels
#endif
