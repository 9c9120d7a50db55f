#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/ssd.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/exponential_inl.h"
#include "kizzasi/kernels/ssd.h"

#ifndef KIZZASI_KERNELS_SSD_SIZES
#define KIZZASI_KERNELS_SSD_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kColumns = 32;      // of P that go through the rows together: four sums side by side hide the latency of their chains
constexpr std::size_t kMostStates = 256;  // whose columns fit a buffer of 32 KiB then

struct SsdRows {
  const Ssd& s;
  MatrixView x, delta, b, c;
  MatrixSpan y;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// V vectors of one head from p on, through all rows. state: its values of state 0; `stride` floats further stand those of the next.
template <class D, std::size_t V>
HWY_INLINE void column(D d, const SsdRows& r, std::size_t head, std::size_t p, float* HWY_RESTRICT state, std::size_t stride) {
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d), states = r.s.states, group = head * r.s.groups / r.s.heads, at = head * r.s.head_dim + p;
  for (std::size_t t = 0; t < r.x.rows; ++t) {
    const float* HWY_RESTRICT b = r.b.data + t * r.b.stride + group * states;
    const float* HWY_RESTRICT c = r.c.data + t * r.c.stride + group * states;
    const float delta = r.delta.data[t * r.delta.stride + head];
    const auto exponent = hn::Mul(hn::Mul(hn::Set(one, delta), hn::Set(one, 1.44269504f)), hn::Set(one, r.s.a[head]));
    const auto decay = hn::Set(d, hn::GetLane(exp2_nonpositive(one, exponent)));
    hn::Vec<D> input[V], sum[V];
    for (std::size_t v = 0; v < V; ++v) {
      const auto x = hn::LoadU(d, r.x.data + t * r.x.stride + at + v * width);
      input[v] = hn::Mul(hn::Set(d, delta), x);
      sum[v] = hn::Mul(hn::Set(d, r.s.d[head]), x);
    }
    for (std::size_t n = 0; n < states; ++n) {
      const auto b_n = hn::Set(d, b[n]), c_n = hn::Set(d, c[n]);
      for (std::size_t v = 0; v < V; ++v) {
        const auto value = hn::MulAdd(decay, hn::LoadU(d, state + n * stride + v * width), hn::Mul(input[v], b_n));
        hn::StoreU(value, d, state + n * stride + v * width);
        sum[v] = hn::MulAdd(c_n, value, sum[v]);
      }
    }
    for (std::size_t v = 0; v < V; ++v) hn::StoreU(sum[v], d, r.y.data + t * r.y.stride + at + v * width);
  }
}

// With more than one row, through a buffer that stays in the L1 cache.
template <class D, std::size_t V>
HWY_INLINE void column_of(D d, const SsdRows& r, std::size_t head, std::size_t p, float* state) {
  const std::size_t stride = r.s.head_dim, states = r.s.states, width = V * hn::Lanes(d);
  float* first = state + head * states * stride + p;
  if (r.x.rows == 1 || states > kMostStates) return column<D, V>(d, r, head, p, first, stride);
  HWY_ALIGN float lines[kMostStates * kColumns];
  for (std::size_t n = 0; n < states; ++n) std::copy_n(first + n * stride, width, lines + n * width);
  column<D, V>(d, r, head, p, lines, width);
  for (std::size_t n = 0; n < states; ++n) std::copy_n(lines + n * width, width, first + n * stride);
}

void scan(const SsdRows& r, float* state) {
  const hn::CappedTag<float, 16> d;
  const hn::CappedTag<float, 8> eight;
  const hn::CappedTag<float, 1> one;
  constexpr std::size_t kVectors = kColumns / hn::MaxLanes(d), kQuarter = 8 / hn::MaxLanes(eight);
  for (std::size_t head = 0; head < r.s.heads; ++head) {
    std::size_t p = 0;
    if (r.x.rows == 1) {  // one pass over memory in its own order
      for (; p + 2 * kColumns <= r.s.head_dim; p += 2 * kColumns) column_of<decltype(d), 2 * kVectors>(d, r, head, p, state);
    }
    for (; p + kColumns <= r.s.head_dim; p += kColumns) column_of<decltype(d), kVectors>(d, r, head, p, state);
    for (; p + 8 <= r.s.head_dim; p += 8) column_of<decltype(eight), kQuarter>(eight, r, head, p, state);
    for (; p < r.s.head_dim; ++p) column_of<decltype(one), 1>(one, r, head, p, state);
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void ssd_step_plain(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state,
                    MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      const std::size_t group = h * s.groups / s.heads;
      const float step = delta.row(t)[h], decay = std::exp(step * s.a[h]);
      for (std::size_t p = 0; p < s.head_dim; ++p) {
        const float value = x.row(t)[h * s.head_dim + p], input = step * value;
        float sum = s.d[h] * value;
        for (std::size_t n = 0; n < s.states; ++n) {
          float& element = state[(h * s.states + n) * s.head_dim + p];
          element = std::fma(decay, element, input * b.row(t)[group * s.states + n]);
          sum = std::fma(c.row(t)[group * s.states + n], element, sum);
        }
        y.row(t)[h * s.head_dim + p] = sum;
      }
    }
  }
}

HWY_EXPORT(scan);

void ssd_step(const Ssd& s, MatrixView x, MatrixView delta, MatrixView b, MatrixView c, std::span<float> state, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kSsdStep)) return other->ssd_step(s, x, delta, b, c, state, y);
  HWY_DYNAMIC_DISPATCH(scan)({s, x, delta, b, c, y}, state.data());
}

}  // namespace kizzasi::kernels
#endif
