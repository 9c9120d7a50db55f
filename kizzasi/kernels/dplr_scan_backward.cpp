#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/dplr_scan_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kizzasi/kernels/dplr_scan.h"

#ifndef KIZZASI_KERNELS_DPLR_SCAN_BACKWARD_CALL
#define KIZZASI_KERNELS_DPLR_SCAN_BACKWARD_CALL
namespace kizzasi::kernels {
constexpr std::size_t kDplrSlot = 16;  // floats that one state of a column of channels takes in the buffers
enum : std::size_t { kA, kB, kC, kP, kR, kCoefficients };

// Every buffer of (2, N, slot) is a real plane, then an imaginary one.
struct DplrBackward {
  const DplrScan& s;
  MatrixView x, gy;
  const DplrScanGradients& out;
  float* kept;                                 // (chunks, 2, N, slot): the state before each chunk
  float* h;                                    // (kDplrChunk + 1, 2, N, slot): those of one chunk
  float* q;                                    // (kDplrChunk, slot)
  float* carry;                                // (2, N, slot)
  float *k[kCoefficients], *g[kCoefficients];  // coefficients of the column; their gradients over one chunk
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One row forward, as dplr_scan goes.
template <class D>
HWY_INLINE void advance(D d, const DplrBackward& b, std::size_t plane, const float* before, float* after, float* q_at, const float* x_at) {
  auto q = hn::Zero(d);
  for (std::size_t re = 0, im = plane; re < plane; re += kDplrSlot, im += kDplrSlot) {
    q = hn::MulAdd(hn::LoadU(d, b.k[kP] + re), hn::LoadU(d, before + re), q);
    q = hn::NegMulAdd(hn::LoadU(d, b.k[kP] + im), hn::LoadU(d, before + im), q);
  }
  hn::StoreU(q, d, q_at);
  const auto x = hn::LoadU(d, x_at);
  for (std::size_t re = 0, im = plane; re < plane; re += kDplrSlot, im += kDplrSlot) {
    const auto a_re = hn::LoadU(d, b.k[kA] + re), a_im = hn::LoadU(d, b.k[kA] + im);
    const auto h_re = hn::LoadU(d, before + re), h_im = hn::LoadU(d, before + im);
    const auto in_re = hn::MulAdd(hn::LoadU(d, b.k[kB] + re), x, hn::Mul(hn::LoadU(d, b.k[kR] + re), q));
    const auto in_im = hn::MulAdd(hn::LoadU(d, b.k[kB] + im), x, hn::Mul(hn::LoadU(d, b.k[kR] + im), q));
    hn::StoreU(hn::NegMulAdd(a_im, h_im, hn::MulAdd(a_re, h_re, in_re)), d, after + re);
    hn::StoreU(hn::MulAdd(a_im, h_re, hn::MulAdd(a_re, h_im, in_im)), d, after + im);
  }
}

template <class D>
HWY_INLINE void add_to(D d, float* to, hn::Vec<D> term) {
  hn::StoreU(hn::Add(hn::LoadU(d, to), term), d, to);
}

// One row backward: g = carry + conj(c) gy, gq = Re(sum conj(r) g), carry = conj(a) g + conj(p) gq.
template <class D>
HWY_INLINE void retreat(D d, const DplrBackward& b, std::size_t plane, const float* before, const float* after, const float* q_at,
                        std::size_t t, std::size_t e, hn::Vec<D>& gd) {
  const auto gy = hn::LoadU(d, b.gy.data + t * b.gy.stride + e), x = hn::LoadU(d, b.x.data + t * b.x.stride + e);
  const auto q = hn::LoadU(d, q_at);
  auto gx = hn::Mul(hn::LoadU(d, b.s.d.data() + e), gy), gq = hn::Zero(d);
  for (std::size_t re = 0, im = plane; re < plane; re += kDplrSlot, im += kDplrSlot) {
    const auto g_re = hn::MulAdd(hn::LoadU(d, b.k[kC] + re), gy, hn::LoadU(d, b.carry + re));
    const auto g_im = hn::NegMulAdd(hn::LoadU(d, b.k[kC] + im), gy, hn::LoadU(d, b.carry + im));
    hn::StoreU(g_re, d, b.carry + re);
    hn::StoreU(g_im, d, b.carry + im);
    const auto h_re = hn::LoadU(d, before + re), h_im = hn::LoadU(d, before + im);
    add_to(d, b.g[kC] + re, hn::Mul(gy, hn::LoadU(d, after + re)));
    add_to(d, b.g[kC] + im, hn::Neg(hn::Mul(gy, hn::LoadU(d, after + im))));
    add_to(d, b.g[kA] + re, hn::MulAdd(g_re, h_re, hn::Mul(g_im, h_im)));
    add_to(d, b.g[kA] + im, hn::NegMulAdd(g_re, h_im, hn::Mul(g_im, h_re)));
    add_to(d, b.g[kB] + re, hn::Mul(g_re, x));
    add_to(d, b.g[kB] + im, hn::Mul(g_im, x));
    add_to(d, b.g[kR] + re, hn::Mul(g_re, q));
    add_to(d, b.g[kR] + im, hn::Mul(g_im, q));
    gx = hn::MulAdd(g_re, hn::LoadU(d, b.k[kB] + re), hn::MulAdd(g_im, hn::LoadU(d, b.k[kB] + im), gx));
    gq = hn::MulAdd(g_re, hn::LoadU(d, b.k[kR] + re), hn::MulAdd(g_im, hn::LoadU(d, b.k[kR] + im), gq));
  }
  for (std::size_t re = 0, im = plane; re < plane; re += kDplrSlot, im += kDplrSlot) {
    const auto g_re = hn::LoadU(d, b.carry + re), g_im = hn::LoadU(d, b.carry + im);
    const auto a_re = hn::LoadU(d, b.k[kA] + re), a_im = hn::LoadU(d, b.k[kA] + im);
    add_to(d, b.g[kP] + re, hn::Mul(gq, hn::LoadU(d, before + re)));
    add_to(d, b.g[kP] + im, hn::Neg(hn::Mul(gq, hn::LoadU(d, before + im))));
    const auto through_re = hn::MulAdd(a_re, g_re, hn::Mul(a_im, g_im)), through_im = hn::NegMulAdd(a_im, g_re, hn::Mul(a_re, g_im));
    hn::StoreU(hn::MulAdd(gq, hn::LoadU(d, b.k[kP] + re), through_re), d, b.carry + re);
    hn::StoreU(hn::NegMulAdd(gq, hn::LoadU(d, b.k[kP] + im), through_im), d, b.carry + im);
  }
  add_to(d, b.out.x.data + t * b.out.x.stride + e, gx);
  gd = hn::MulAdd(gy, x, gd);
}

// The channels e .. e + lanes: the states before every chunk, then chunk by chunk from the end the states within, and their gradients.
template <class D>
HWY_INLINE void column(D d, const DplrBackward& b, std::size_t e) {
  const std::size_t width = hn::Lanes(d), channels = b.s.channels, plane = b.s.states * kDplrSlot, size = 2 * plane;
  const float* from[] = {b.s.a.data(), b.s.b.data(), b.s.c.data(), b.s.p.data(), b.s.r.data()};
  float* to[] = {b.out.a.data(), b.out.b.data(), b.out.c.data(), b.out.p.data(), b.out.r.data()};
  for (std::size_t i = 0; i < kCoefficients; ++i) {
    for (std::size_t n = 0; n < 2 * b.s.states; ++n) std::copy_n(from[i] + n * channels + e, width, b.k[i] + n * kDplrSlot);
  }
  std::fill_n(b.carry, size, 0.0f);
  std::fill_n(b.h, size, 0.0f);
  for (std::size_t t = 0; t < b.x.rows; ++t) {
    const std::size_t in_chunk = t % kDplrChunk;
    if (in_chunk == 0) {
      if (t > 0) std::copy_n(b.h + kDplrChunk * size, size, b.h);
      std::copy_n(b.h, size, b.kept + t / kDplrChunk * size);
    }
    advance(d, b, plane, b.h + in_chunk * size, b.h + (in_chunk + 1) * size, b.q, b.x.data + t * b.x.stride + e);
  }
  auto gd = hn::Zero(d);
  for (std::size_t end = b.x.rows; end > 0;) {
    const std::size_t chunk = (end - 1) / kDplrChunk, begin = chunk * kDplrChunk;
    std::copy_n(b.kept + chunk * size, size, b.h);
    for (std::size_t t = begin, i = 0; t < end; ++t, ++i) {
      advance(d, b, plane, b.h + i * size, b.h + (i + 1) * size, b.q + i * kDplrSlot, b.x.data + t * b.x.stride + e);
    }
    // Each chunk summed by itself: over many rows one running sum would lose digits.
    for (float* g : b.g) std::fill_n(g, size, 0.0f);
    for (std::size_t t = end; t-- > begin;) {
      const std::size_t i = t - begin;
      retreat(d, b, plane, b.h + i * size, b.h + (i + 1) * size, b.q + i * kDplrSlot, t, e, gd);
    }
    for (std::size_t i = 0; i < kCoefficients; ++i) {
      for (std::size_t n = 0; n < 2 * b.s.states; ++n) add_to(d, to[i] + n * channels + e, hn::LoadU(d, b.g[i] + n * kDplrSlot));
    }
    end = begin;
  }
  add_to(d, b.out.d.data() + e, gd);
}

void backward(const DplrBackward& b) {
  const hn::CappedTag<float, kDplrSlot> d;
  const hn::CappedTag<float, 4> four;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= b.s.channels; e += hn::Lanes(d)) column(d, b, e);
  for (; e + 4 <= b.s.channels; e += 4) column(four, b, e);
  for (; e < b.s.channels; ++e) column(one, b, e);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(backward);

std::size_t dplr_scan_backward_scratch(const DplrScan& s, std::size_t rows) noexcept {
  const std::size_t size = 2 * s.states * kDplrSlot;
  return ((rows + kDplrChunk - 1) / kDplrChunk + kDplrChunk + 2 + 2 * kCoefficients) * size + kDplrChunk * kDplrSlot;
}

void dplr_scan_backward(const DplrScan& s, MatrixView x, MatrixView gy, const DplrScanGradients& out, std::span<float> scratch) noexcept {
  const std::size_t size = 2 * s.states * kDplrSlot;
  float* free = scratch.data();
  const auto take = [&free](std::size_t count) {
    float* const taken = free;
    free += count;
    return taken;
  };
  DplrBackward b{s, x, gy, out, nullptr, nullptr, nullptr, nullptr, {}, {}};
  b.kept = take((x.rows + kDplrChunk - 1) / kDplrChunk * size);
  b.h = take((kDplrChunk + 1) * size);
  b.q = take(kDplrChunk * kDplrSlot);
  b.carry = take(size);
  for (float*& each : b.k) each = take(size);
  for (float*& each : b.g) each = take(size);
  HWY_DYNAMIC_DISPATCH(backward)(b);
}

}  // namespace kizzasi::kernels
#endif
