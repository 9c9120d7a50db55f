#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/wkv4.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "kizzasi/kernels/backend.h"
#include "kizzasi/kernels/exponential_inl.h"
#include "kizzasi/kernels/wkv4.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {

// The sums of one vector of channels.
template <class V>
struct Sums {
  V aa, bb, pp;
};

// Two terms under a common exponent: e1 scales what was, e2 what comes.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V common(D d, V was, V comes, V& e1, V& e2) {
  const V most = hn::Max(was, comes);
  e1 = exp_of(d, hn::Sub(was, most));
  e2 = exp_of(d, hn::Sub(comes, most));
  return most;
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V average(D d, const Sums<V>& s, V u, V k, V v) {
  V e1, e2;
  common(d, s.pp, hn::Add(u, k), e1, e2);
  return hn::Div(hn::MulAdd(e1, s.aa, hn::Mul(e2, v)), hn::MulAdd(e1, s.bb, e2));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void take_in(D d, Sums<V>& s, V w, V k, V v) {
  V e1, e2;
  s.pp = common(d, hn::Add(s.pp, w), k, e1, e2);
  s.aa = hn::MulAdd(e1, s.aa, hn::Mul(e2, v));
  s.bb = hn::MulAdd(e1, s.bb, e2);
}

template <class D>
HWY_INLINE void column(D d, std::size_t e, const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) {
  const auto w = hn::LoadU(d, weights.w.data() + e), u = hn::LoadU(d, weights.u.data() + e);
  Sums<hn::Vec<D>> s{hn::LoadU(d, state.aa.data() + e), hn::LoadU(d, state.bb.data() + e), hn::LoadU(d, state.pp.data() + e)};
  for (std::size_t t = 0; t < k.rows; ++t) {
    const auto kt = hn::LoadU(d, k.data + t * k.stride + e), vt = hn::LoadU(d, v.data + t * v.stride + e);
    hn::StoreU(average(d, s, u, kt, vt), d, y.data + t * y.stride + e);
    take_in(d, s, w, kt, vt);
  }
  hn::StoreU(s.aa, d, state.aa.data() + e);
  hn::StoreU(s.bb, d, state.bb.data() + e);
  hn::StoreU(s.pp, d, state.pp.data() + e);
}

// G and H are the gradients with respect to the sums after row t, times e^pp: so they stay in range as the sums do.
template <class D>
HWY_INLINE void column_backward(D d, std::size_t e, const Wkv4& weights, MatrixView k, MatrixView v, MatrixView gy, MatrixSpan gk,
                                MatrixSpan gv, float* gw, float* gu, float* before) {
  using V = hn::Vec<D>;
  const std::size_t width = hn::Lanes(d);
  const V w = hn::LoadU(d, weights.w.data() + e), u = hn::LoadU(d, weights.u.data() + e);
  Sums<V> s{hn::Zero(d), hn::Zero(d), hn::Set(d, -1e30f)};
  for (std::size_t t = 0; t < k.rows; ++t) {
    hn::StoreU(s.aa, d, before + 3 * t * width);
    hn::StoreU(s.bb, d, before + (3 * t + 1) * width);
    hn::StoreU(s.pp, d, before + (3 * t + 2) * width);
    take_in(d, s, w, hn::LoadU(d, k.data + t * k.stride + e), hn::LoadU(d, v.data + t * v.stride + e));
  }
  V big_g = hn::Zero(d), big_h = hn::Zero(d), sum_w = hn::Zero(d), sum_u = hn::Zero(d);
  for (std::size_t t = k.rows; t-- > 0;) {
    const V aa = hn::LoadU(d, before + 3 * t * width), bb = hn::LoadU(d, before + (3 * t + 1) * width);
    const V pp = hn::LoadU(d, before + (3 * t + 2) * width);
    const V kt = hn::LoadU(d, k.data + t * k.stride + e), vt = hn::LoadU(d, v.data + t * v.stride + e);
    V ew, ek, e1, e2;
    common(d, hn::Add(pp, w), kt, ew, ek);
    common(d, pp, hn::Add(u, kt), e1, e2);
    const V below = hn::MulAdd(e1, bb, e2), y = hn::Div(hn::MulAdd(e1, aa, hn::Mul(e2, vt)), below);
    const V share = hn::Div(hn::LoadU(d, gy.data + t * gy.stride + e), below);
    const V bonus = hn::Mul(hn::Mul(share, e2), hn::Sub(vt, y));  // by u + k
    float* to_k = gk.data + t * gk.stride + e;
    float* to_v = gv.data + t * gv.stride + e;
    const V by_k = hn::MulAdd(ek, hn::MulAdd(vt, big_g, big_h), bonus);
    hn::StoreU(hn::Add(hn::LoadU(d, to_k), by_k), d, to_k);
    hn::StoreU(hn::Add(hn::LoadU(d, to_v), hn::MulAdd(ek, big_g, hn::Mul(share, e2))), d, to_v);
    sum_u = hn::Add(sum_u, bonus);
    sum_w = hn::MulAdd(ew, hn::MulAdd(aa, big_g, hn::Mul(bb, big_h)), sum_w);
    const V out = hn::Mul(share, e1);
    big_g = hn::MulAdd(ew, big_g, out);
    big_h = hn::NegMulAdd(out, y, hn::Mul(ew, big_h));
  }
  hn::StoreU(hn::Add(hn::LoadU(d, gw + e), sum_w), d, gw + e);
  hn::StoreU(hn::Add(hn::LoadU(d, gu + e), sum_u), d, gu + e);
}

void forward(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= k.cols; e += hn::Lanes(d)) column(d, e, weights, k, v, state, y);
  for (; e < k.cols; ++e) column(one, e, weights, k, v, state, y);
}

void backward(const Wkv4& weights, MatrixView k, MatrixView v, MatrixView gy, MatrixSpan gk, MatrixSpan gv, float* gw, float* gu) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::vector<float> before(3 * k.rows * hn::Lanes(d));
  std::size_t e = 0;
  for (; e + hn::Lanes(d) <= k.cols; e += hn::Lanes(d)) column_backward(d, e, weights, k, v, gy, gk, gv, gw, gu, before.data());
  for (; e < k.cols; ++e) column_backward(one, e, weights, k, v, gy, gk, gv, gw, gu, before.data());
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

void wkv4_plain(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept {
  for (std::size_t t = 0; t < k.rows; ++t) {
    for (std::size_t c = 0; c < k.cols; ++c) {
      const float kt = k.row(t)[c], vt = v.row(t)[c];
      const float most = std::max(state.pp[c], weights.u[c] + kt), next = std::max(state.pp[c] + weights.w[c], kt);
      const float e1 = std::exp(state.pp[c] - most), e2 = std::exp(weights.u[c] + kt - most);
      y.row(t)[c] = std::fma(e1, state.aa[c], e2 * vt) / std::fma(e1, state.bb[c], e2);
      const float stays = std::exp(state.pp[c] + weights.w[c] - next), comes = std::exp(kt - next);
      state.aa[c] = std::fma(stays, state.aa[c], comes * vt);
      state.bb[c] = std::fma(stays, state.bb[c], comes);
      state.pp[c] = next;
    }
  }
}

HWY_EXPORT(forward);
HWY_EXPORT(backward);

void wkv4(const Wkv4& weights, MatrixView k, MatrixView v, const Wkv4State& state, MatrixSpan y) noexcept {
  if (Backend* const other = backend_for(Kernel::kWkv4)) return other->wkv4(weights, k, v, state, y);
  HWY_DYNAMIC_DISPATCH(forward)(weights, k, v, state, y);
}

void wkv4_backward(const Wkv4& weights, MatrixView k, MatrixView v, MatrixView gy, MatrixSpan gk, MatrixSpan gv, std::span<float> gw,
                   std::span<float> gu) {
  HWY_DYNAMIC_DISPATCH(backward)(weights, k, v, gy, gk, gv, gw.data(), gu.data());
}

}  // namespace kizzasi::kernels
#endif
