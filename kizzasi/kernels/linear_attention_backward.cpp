#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/linear_attention_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kizzasi/kernels/linear_attention.h"
#include "kizzasi/kernels/matrix_state.h"

#ifndef KIZZASI_KERNELS_LINEAR_ATTENTION_BACKWARD_CALL
#define KIZZASI_KERNELS_LINEAR_ATTENTION_BACKWARD_CALL
namespace kizzasi::kernels {
// One head of one chunk; pointers to its numbers in the first row, rows `..._row` floats apart.
struct AttentionBackward {
  StateBlock block;
  const float *q, *k, *a, *u;  // u: nullptr without bonus
  std::size_t q_row, k_row, a_row, a_step;
  float *gq, *gk, *ga, *gu;
  std::size_t gq_row, gk_row, ga_row, gu_row;
};
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE float sum_of(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// Keys n .. n + N of row t. With G the gradient of the state after the row: gq = S gy, gk = G v, ga = G S[t-1], gv += k G; then a G goes
// on to the row before. With bonus the read is of the state before the row, which adds to what goes on instead.
template <bool kBonus, std::size_t N, class D>
HWY_INLINE void keys_backward(D d, const AttentionBackward& c, std::size_t t, std::size_t n) {
  const StateBlock& b = c.block;
  const std::size_t line = b.width, state = b.keys * line;
  const float* HWY_RESTRICT before = b.h + t * state + n * line;
  const float* HWY_RESTRICT after = before + state;
  float* HWY_RESTRICT g = b.g + n * line;
  float* HWY_RESTRICT gv = b.gv + t * line;
  const float* a = c.a + t * c.a_row + n * c.a_step;
  hn::Vec<D> gq[N], gk[N], ga[N], q[N], k[N], decay[N];
  for (std::size_t j = 0; j < N; ++j) {
    gq[j] = gk[j] = ga[j] = hn::Zero(d);
    q[j] = hn::Set(d, c.q[t * c.q_row + n + j]);
    k[j] = hn::Set(d, c.k[t * c.k_row + n + j]);
    decay[j] = hn::Set(d, a[j * c.a_step]);
  }
  for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
    const auto v = hn::Load(d, b.v + t * line + i), gy = hn::Load(d, b.gy + t * line + i);
    auto to_v = hn::Load(d, gv + i);
    for (std::size_t j = 0; j < N; ++j) {
      const auto old = hn::Load(d, before + j * line + i);
      auto carry = hn::Load(d, g + j * line + i);
      if constexpr (kBonus) {
        gq[j] = hn::MulAdd(gy, old, gq[j]);
      } else {
        gq[j] = hn::MulAdd(gy, hn::Load(d, after + j * line + i), gq[j]);
        carry = hn::MulAdd(q[j], gy, carry);
      }
      gk[j] = hn::MulAdd(carry, v, gk[j]);
      ga[j] = hn::MulAdd(carry, old, ga[j]);
      to_v = hn::MulAdd(k[j], carry, to_v);
      carry = hn::Mul(decay[j], carry);
      if constexpr (kBonus) carry = hn::MulAdd(q[j], gy, carry);
      hn::Store(carry, d, g + j * line + i);
    }
    hn::Store(to_v, d, gv + i);
  }
  for (std::size_t j = 0; j < N; ++j) {
    c.gq[t * c.gq_row + n + j] += sum_of(d, gq[j]);
    c.gk[t * c.gk_row + n + j] += sum_of(d, gk[j]);
    c.ga[t * c.ga_row + (n + j) * c.a_step] += sum_of(d, ga[j]);
  }
}

// What the bonus of row t adds: y += (sum_n q u k) v.
template <class D>
HWY_INLINE void bonus_backward(D d, const AttentionBackward& c, std::size_t t) {
  const StateBlock& b = c.block;
  const float *v = b.v + t * b.width, *gy = b.gy + t * b.width;
  auto along = hn::Zero(d);
  for (std::size_t i = 0; i < b.width; i += hn::Lanes(d)) along = hn::MulAdd(hn::Load(d, v + i), hn::Load(d, gy + i), along);
  const float s = sum_of(d, along);
  float score = 0;
  for (std::size_t n = 0; n < b.keys; ++n) {
    const float q = c.q[t * c.q_row + n], k = c.k[t * c.k_row + n], u = c.u[n];
    score += q * k * u;
    c.gq[t * c.gq_row + n] += u * k * s;
    c.gk[t * c.gk_row + n] += q * u * s;
    c.gu[t * c.gu_row + n] += q * k * s;
  }
  float* gv = b.gv + t * b.width;
  for (std::size_t i = 0; i < b.width; ++i) gv[i] += score * gy[i];
}

template <bool kBonus>
void block_backward_as(const AttentionBackward& c) {
  const hn::CappedTag<float, kLine> d;
  constexpr std::size_t kKeys = hn::MaxLanes(d) >= kLine ? 4 : 2;  // as many as the registers hold
  const StateBlock& b = c.block;
  const std::size_t line = b.width, state = b.keys * line;
  for (std::size_t t = 0; t < b.rows; ++t) {
    for (std::size_t n = 0; n < b.keys; ++n) {
      const float* HWY_RESTRICT before = b.h + t * state + n * line;
      float* HWY_RESTRICT after = b.h + (t + 1) * state + n * line;
      const auto decay = hn::Set(d, c.a[t * c.a_row + n * c.a_step]), k = hn::Set(d, c.k[t * c.k_row + n]);
      for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
        hn::Store(hn::MulAdd(decay, hn::Load(d, before + i), hn::Mul(k, hn::Load(d, b.v + t * line + i))), d, after + i);
      }
    }
  }
  for (std::size_t t = b.rows; t-- > 0;) {
    std::size_t n = 0;
    for (; n + kKeys <= b.keys; n += kKeys) keys_backward<kBonus, kKeys>(d, c, t, n);
    for (; n < b.keys; ++n) keys_backward<kBonus, 1>(d, c, t, n);
    if constexpr (kBonus) bonus_backward(d, c, t);
  }
}

void block_backward(const AttentionBackward& c) {
  if (c.u == nullptr) return block_backward_as<false>(c);
  block_backward_as<true>(c);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(block_backward);

namespace {
MatrixView decays_of(MatrixView decay, std::size_t t, std::size_t rows) noexcept { return decay.rows == 1 ? decay : decay.slice(t, rows); }
}  // namespace

void linear_attention_keeping(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay, std::span<float> kept,
                              MatrixSpan y) noexcept {
  keep_states(v.rows, s.state_size(), kept.data(), [&](std::size_t t, std::size_t rows, std::span<float> state) {
    linear_attention(s, q.slice(t, rows), k.slice(t, rows), v.slice(t, rows), decays_of(decay, t, rows), state, y.slice(t, rows));
  });
}

std::size_t linear_attention_backward_scratch(const LinearAttention& s) noexcept { return state_block_floats(s.keys) + s.state_size(); }

void linear_attention_backward(const LinearAttention& s, MatrixView q, MatrixView k, MatrixView v, MatrixView decay,
                               std::span<const float> kept, MatrixView gy, const LinearAttentionGradients& out,
                               std::span<float> scratch) noexcept {
  const std::span<float> carry = scratch.first(s.state_size());
  const StateBlock block = state_block(carry.data() + carry.size(), s.keys);
  const std::size_t a_step = decay.cols == s.heads ? 0 : 1;
  std::fill(carry.begin(), carry.end(), 0.0f);
  for (std::size_t chunk = matrix_state_chunks(v.rows); chunk-- > 0;) {
    const std::size_t t = chunk * kMatrixStateRows, rows = std::min(kMatrixStateRows, v.rows - t);
    const MatrixView a = decays_of(decay, t, rows);
    const auto backward = [&](const StateBlock& b, std::size_t head) {
      const std::size_t key = head * s.keys, at_decay = a_step == 0 ? head : key;
      const auto from = [&](MatrixView m, std::size_t at) { return m.data + t * m.stride + at; };
      const auto to = [&](MatrixSpan m, std::size_t at) { return m.data + t * m.stride + at; };
      const float* u = s.bonus.empty() ? nullptr : s.bonus.data() + key;
      float* gu = s.bonus.empty() ? nullptr : to(out.bonus, key);
      HWY_DYNAMIC_DISPATCH(block_backward)
      ({b, from(q, key), from(k, key), a.data + at_decay, u, q.stride, k.stride, a.rows == 1 ? 0 : a.stride, a_step, to(out.q, key),
        to(out.k, key), to(out.decay, at_decay), gu, out.q.stride, out.k.stride, out.decay.stride, out.bonus.stride});
    };
    for_each_state_block(s.heads, s.values, v.slice(t, rows), gy.slice(t, rows), out.v.slice(t, rows), kept.data() + chunk * s.state_size(),
                         carry.data(), block, backward);
  }
}

}  // namespace kizzasi::kernels
#endif
