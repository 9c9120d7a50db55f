#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/delta_rule_backward.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kizzasi/kernels/delta_rule.h"
#include "kizzasi/kernels/matrix_state.h"

#ifndef KIZZASI_KERNELS_DELTA_RULE_BACKWARD_CALL
#define KIZZASI_KERNELS_DELTA_RULE_BACKWARD_CALL
namespace kizzasi::kernels {
// A row of numbers a key, or of one number for all of them (step 0), and the same for every row where stride is 0.
template <typename T>
struct KeyRows {
  T* first;
  std::size_t stride, step = 1;
  T* row(std::size_t t) const noexcept { return first + t * stride; }
};
// One head of one chunk.
struct DeltaBackward {
  StateBlock block;
  KeyRows<const float> q, k, a, b, w;
  KeyRows<float> gq, gk, ga, gb, gw;
};
inline constexpr float kOne = 1.0f;
}  // namespace kizzasi::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE float sum_of(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

// Keys n .. n + N of row t. With G the gradient of the state after the row: gq = S gy, gk = G v, gb = G z, gw = G S[t-1], gv += k G,
// gz += b G; w G goes on to the row before.
template <std::size_t N, class D>
HWY_INLINE void keys_backward(D d, const DeltaBackward& c, std::size_t t, std::size_t n) {
  const StateBlock& s = c.block;
  const std::size_t line = s.width, state = s.keys * line;
  const float* HWY_RESTRICT before = s.h + t * state + n * line;
  const float* HWY_RESTRICT after = before + state;
  float* HWY_RESTRICT g = s.g + n * line;
  float* HWY_RESTRICT gv = s.gv + t * line;
  const float *q = c.q.row(t) + n, *k = c.k.row(t) + n, *b = c.b.row(t) + n, *w = c.w.row(t) + n * c.w.step;
  hn::Vec<D> gq[N], gk[N], gb[N], gw[N];
  for (std::size_t j = 0; j < N; ++j) gq[j] = gk[j] = gb[j] = gw[j] = hn::Zero(d);
  for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
    const auto v = hn::Load(d, s.v + t * line + i), gy = hn::Load(d, s.gy + t * line + i), z = hn::Load(d, s.z + t * line + i);
    auto to_v = hn::Load(d, gv + i), to_z = hn::Load(d, s.gz + i);
    for (std::size_t j = 0; j < N; ++j) {
      const auto whole = hn::MulAdd(hn::Set(d, q[j]), gy, hn::Load(d, g + j * line + i));
      gq[j] = hn::MulAdd(gy, hn::Load(d, after + j * line + i), gq[j]);
      gk[j] = hn::MulAdd(whole, v, gk[j]);
      gb[j] = hn::MulAdd(whole, z, gb[j]);
      gw[j] = hn::MulAdd(whole, hn::Load(d, before + j * line + i), gw[j]);
      to_v = hn::MulAdd(hn::Set(d, k[j]), whole, to_v);
      to_z = hn::MulAdd(hn::Set(d, b[j]), whole, to_z);
      hn::Store(hn::Mul(hn::Set(d, w[j * c.w.step]), whole), d, g + j * line + i);
    }
    hn::Store(to_v, d, gv + i);
    hn::Store(to_z, d, s.gz + i);
  }
  for (std::size_t j = 0; j < N; ++j) {
    c.gq.row(t)[n + j] += sum_of(d, gq[j]);
    c.gk.row(t)[n + j] += sum_of(d, gk[j]);
    c.gb.row(t)[n + j] += sum_of(d, gb[j]);
    if (c.gw.first != nullptr) c.gw.row(t)[(n + j) * c.gw.step] += sum_of(d, gw[j]);
  }
}

// Through z = sum a S[t-1]: ga = S[t-1] gz, and a gz goes on to the row before.
template <std::size_t N, class D>
HWY_INLINE void taken_back_backward(D d, const DeltaBackward& c, std::size_t t, std::size_t n) {
  const StateBlock& s = c.block;
  const std::size_t line = s.width;
  const float* HWY_RESTRICT before = s.h + t * s.keys * line + n * line;
  float* HWY_RESTRICT g = s.g + n * line;
  const float* a = c.a.row(t) + n;
  hn::Vec<D> ga[N];
  for (std::size_t j = 0; j < N; ++j) ga[j] = hn::Zero(d);
  for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
    const auto gz = hn::Load(d, s.gz + i);
    for (std::size_t j = 0; j < N; ++j) {
      ga[j] = hn::MulAdd(gz, hn::Load(d, before + j * line + i), ga[j]);
      hn::Store(hn::MulAdd(hn::Set(d, a[j]), gz, hn::Load(d, g + j * line + i)), d, g + j * line + i);
    }
  }
  for (std::size_t j = 0; j < N; ++j) c.ga.row(t)[n + j] += sum_of(d, ga[j]);
}

void block_backward(const DeltaBackward& c) {
  const hn::CappedTag<float, kLine> d;
  constexpr std::size_t kKeys = hn::MaxLanes(d) >= kLine ? 4 : 2;  // as many as the registers hold
  const StateBlock& s = c.block;
  const std::size_t line = s.width, state = s.keys * line;
  for (std::size_t t = 0; t < s.rows; ++t) {
    const float* HWY_RESTRICT before = s.h + t * state;
    float* HWY_RESTRICT after = s.h + (t + 1) * state;
    float* HWY_RESTRICT z = s.z + t * line;
    const float *k = c.k.row(t), *a = c.a.row(t), *b = c.b.row(t), *w = c.w.row(t);
    for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
      auto sum = hn::Zero(d);
      for (std::size_t n = 0; n < s.keys; ++n) sum = hn::MulAdd(hn::Set(d, a[n]), hn::Load(d, before + n * line + i), sum);
      hn::Store(sum, d, z + i);
    }
    for (std::size_t n = 0; n < s.keys; ++n) {
      const auto k_n = hn::Set(d, k[n]), b_n = hn::Set(d, b[n]), w_n = hn::Set(d, w[n * c.w.step]);
      for (std::size_t i = 0; i < line; i += hn::Lanes(d)) {
        const auto added = hn::MulAdd(b_n, hn::Load(d, z + i), hn::Mul(k_n, hn::Load(d, s.v + t * line + i)));
        hn::Store(hn::MulAdd(w_n, hn::Load(d, before + n * line + i), added), d, after + n * line + i);
      }
    }
  }
  for (std::size_t t = s.rows; t-- > 0;) {
    for (std::size_t i = 0; i < line; i += hn::Lanes(d)) hn::Store(hn::Zero(d), d, s.gz + i);
    std::size_t n = 0;
    for (; n + kKeys <= s.keys; n += kKeys) keys_backward<kKeys>(d, c, t, n);
    for (; n < s.keys; ++n) keys_backward<1>(d, c, t, n);
    for (n = 0; n + kKeys <= s.keys; n += kKeys) taken_back_backward<kKeys>(d, c, t, n);
    for (; n < s.keys; ++n) taken_back_backward<1>(d, c, t, n);
  }
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(block_backward);

void delta_rule_keeping(const DeltaRule& s, const DeltaRuleRows& in, std::span<float> kept, MatrixSpan y) noexcept {
  keep_states(in.v.rows, s.state_size(), kept.data(),
              [&](std::size_t t, std::size_t rows, std::span<float> state) { delta_rule(s, in.slice(t, rows), state, y.slice(t, rows)); });
}

std::size_t delta_rule_backward_scratch(const DeltaRule& s) noexcept { return state_block_floats(s.keys) + s.state_size(); }

void delta_rule_backward(const DeltaRule& s, const DeltaRuleRows& in, std::span<const float> kept, MatrixView gy,
                         const DeltaRuleGradients& out, std::span<float> scratch) noexcept {
  const std::span<float> carry = scratch.first(s.state_size());
  const StateBlock block = state_block(carry.data() + carry.size(), s.keys);
  const bool none = in.decay.data == nullptr, by_head = none || in.decay.cols == s.heads;
  std::fill(carry.begin(), carry.end(), 0.0f);
  for (std::size_t chunk = matrix_state_chunks(in.v.rows); chunk-- > 0;) {
    const std::size_t t = chunk * kMatrixStateRows, rows = std::min(kMatrixStateRows, in.v.rows - t);
    const auto backward = [&](const StateBlock& b, std::size_t head) {
      const std::size_t key = head * s.keys, at_decay = by_head ? head : key, step = by_head ? 0 : 1;
      const auto from = [&](MatrixView m) { return KeyRows<const float>{m.data + t * m.stride + key, m.stride}; };
      const auto to = [&](MatrixSpan m) { return KeyRows<float>{m.data + t * m.stride + key, m.stride}; };
      KeyRows<const float> w{&kOne, 0, 0};
      KeyRows<float> gw{nullptr, 0, 0};
      if (!none) {
        const std::size_t stride = in.decay.rows == 1 ? 0 : in.decay.stride;
        w = {in.decay.data + t * stride + at_decay, stride, step};
        gw = {out.decay.data + t * out.decay.stride + at_decay, out.decay.stride, step};
      }
      HWY_DYNAMIC_DISPATCH(block_backward)
      ({b, from(in.q), from(in.k), from(in.a), from(in.b), w, to(out.q), to(out.k), to(out.a), to(out.b), gw});
    };
    for_each_state_block(s.heads, s.values, in.v.slice(t, rows), gy.slice(t, rows), out.v.slice(t, rows),
                         kept.data() + chunk * s.state_size(), carry.data(), block, backward);
  }
}

}  // namespace kizzasi::kernels
#endif
