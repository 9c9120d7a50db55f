#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/activations.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/exponential_inl.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {

// out[i] = f(x[i]) in whole vectors, then one by one through the same operations.
template <class F>
void map(const float* x, float* out, std::size_t size, F f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= size; i += hn::Lanes(d)) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, out + i);
  for (; i < size; ++i) hn::StoreU(f(one, hn::LoadU(one, x + i)), one, out + i);
}

struct Exp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return exp_of(d, x);
  }
};

// With e = exp(-|x|) nothing overflows: 1 / (1 + e) right of zero, e / (1 + e) left of it.
struct Sigmoid {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0f), e = exp_of(d, hn::Neg(hn::Abs(x)));
    return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
  }
};

struct Silu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, Sigmoid()(d, x));
  }
};

// An odd polynomial near zero, where 1 - 2 / (e^2x + 1) would cancel.
struct Tanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V size = hn::Abs(x), square = hn::Mul(x, x), one = hn::Set(d, 1.0f);
    V p = hn::MulAdd(hn::Set(d, 0.00174414844f), square, hn::Set(d, -0.00766923605f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.0214594416f));
    p = hn::MulAdd(p, square, hn::Set(d, -0.0538948029f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.133327201f));
    p = hn::MulAdd(p, square, hn::Set(d, -0.333333164f));
    const V near = hn::MulAdd(hn::Mul(p, square), x, x);
    const V e = exp_of(d, hn::Mul(hn::Set(d, -2.0f), size));
    const V far = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
    return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.75f)), near, far);
  }
};

// max(x, 0) + log(1 + e), e = exp(-|x|) in (0, 1]; log(1 + e) = 2 artanh(e / (2 + e)), a short series.
struct Softplus {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V e = exp_of(d, hn::Neg(hn::Abs(x)));
    const V s = hn::Div(e, hn::Add(e, hn::Set(d, 2.0f))), square = hn::Mul(s, s);
    V p = hn::MulAdd(hn::Set(d, 0.121505089f), square, hn::Set(d, 0.107138172f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.143084437f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.199994385f));
    p = hn::MulAdd(p, square, hn::Set(d, 0.333333373f));
    const V log1p = hn::Mul(hn::Add(s, s), hn::MulAdd(p, square, hn::Set(d, 1.0f)));
    const V sum = hn::Add(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x), log1p);
    return hn::IfThenElse(hn::Gt(x, hn::Set(d, 20.0f)), x, sum);
  }
};

// x Phi(x) with Phi(-z) = erfc(z / sqrt 2) / 2 = e^(-z^2 / 2) t P(t), t = 1 / (1 + z / sqrt 8): accurate relative to Phi in both tails.
struct Gelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, 1.0f), size = hn::Abs(x);
    const V t = hn::Div(one, hn::MulAdd(size, hn::Set(d, 0.353553391f), one));
    V p = hn::MulAdd(hn::Set(d, 0.0376460515f), t, hn::Set(d, -0.202128947f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.410118967f));
    p = hn::MulAdd(p, t, hn::Set(d, -0.332309395f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.0184563249f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.0100759212f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.0654974133f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.182662427f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.24568826f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.282202333f));
    p = hn::MulAdd(p, t, hn::Set(d, 0.282090634f));
    const V gauss = exp_of(d, hn::Mul(hn::Mul(size, size), hn::Set(d, -0.5f)));
    const V tail = hn::Mul(hn::Mul(hn::Set(d, 0.5f), gauss), hn::Mul(t, p));
    return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)));
  }
};

// 0.5 x (1 + tanh u) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f));
    return hn::Mul(x, Sigmoid()(d, hn::Mul(x, slope)));
  }
};

struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  }
};

struct ExpBelow {
  float most;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return exp_of(d, hn::Sub(x, hn::Set(d, most)));
  }
};

struct Scaled {
  float factor;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Mul(x, hn::Set(d, factor));
  }
};

void exp(const float* x, float* out, std::size_t size) { map(x, out, size, Exp()); }
void sigmoid(const float* x, float* out, std::size_t size) { map(x, out, size, Sigmoid()); }
void silu(const float* x, float* out, std::size_t size) { map(x, out, size, Silu()); }
void tanh(const float* x, float* out, std::size_t size) { map(x, out, size, Tanh()); }
void softplus(const float* x, float* out, std::size_t size) { map(x, out, size, Softplus()); }
void gelu(const float* x, float* out, std::size_t size) { map(x, out, size, Gelu()); }
void gelu_tanh(const float* x, float* out, std::size_t size) { map(x, out, size, GeluTanh()); }
void relu(const float* x, float* out, std::size_t size) { map(x, out, size, Relu()); }

void mul_silu(const float* a, const float* b, float* out, std::size_t size) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= size; i += hn::Lanes(d)) {
    hn::StoreU(hn::Mul(hn::LoadU(d, a + i), Silu()(d, hn::LoadU(d, b + i))), d, out + i);
  }
  for (; i < size; ++i) hn::StoreU(hn::Mul(hn::LoadU(one, a + i), Silu()(one, hn::LoadU(one, b + i))), one, out + i);
}

// Sums in 8 lanes whatever the vectors' width, so every width adds in one order.
float sum(const float* x, std::size_t size) {
  const hn::CappedTag<float, 8> d;
  HWY_ALIGN float lanes[8] = {};
  std::size_t i = 0;
  for (std::size_t begin = 0; begin < 8; begin += hn::Lanes(d)) {
    auto part = hn::Zero(d);
    for (i = 0; i + 8 <= size; i += 8) part = hn::Add(part, hn::LoadU(d, x + i + begin));
    hn::Store(part, d, lanes + begin);
  }
  for (std::size_t lane = 0; i < size; ++i, ++lane) lanes[lane] += x[i];
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void softmax(const float* x, float* out, std::size_t size) {
  float most = x[0];
  for (std::size_t i = 1; i < size; ++i) most = x[i] > most ? x[i] : most;
  map(x, out, size, ExpBelow{most});
  map(out, out, size, Scaled{1.0f / sum(out, size)});
}

// 32 chains, whatever the vectors' width.
float dot(const float* a, const float* b, std::size_t size) {
  const hn::CappedTag<float, 8> d;
  const std::size_t width = hn::Lanes(d);
  HWY_ALIGN float lanes[32] = {};
  const std::size_t whole = size / 32 * 32;
  for (std::size_t begin = 0; begin < 32; begin += 4 * width) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::size_t i = begin; i < whole; i += 32) {
      sum0 = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, a + i + width), hn::LoadU(d, b + i + width), sum1);
      sum2 = hn::MulAdd(hn::LoadU(d, a + i + 2 * width), hn::LoadU(d, b + i + 2 * width), sum2);
      sum3 = hn::MulAdd(hn::LoadU(d, a + i + 3 * width), hn::LoadU(d, b + i + 3 * width), sum3);
    }
    hn::Store(sum0, d, lanes + begin);
    hn::Store(sum1, d, lanes + begin + width);
    hn::Store(sum2, d, lanes + begin + 2 * width);
    hn::Store(sum3, d, lanes + begin + 3 * width);
  }
  for (std::size_t i = whole; i < size; ++i) lanes[i - whole] = std::fma(a[i], b[i], lanes[i - whole]);
  for (std::size_t half = 16; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(exp);
HWY_EXPORT(sigmoid);
HWY_EXPORT(silu);
HWY_EXPORT(tanh);
HWY_EXPORT(softplus);
HWY_EXPORT(gelu);
HWY_EXPORT(gelu_tanh);
HWY_EXPORT(relu);
HWY_EXPORT(mul_silu);
HWY_EXPORT(softmax);
HWY_EXPORT(dot);

void exp(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(exp)(x.data(), out.data(), x.size()); }
void sigmoid(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(sigmoid)(x.data(), out.data(), x.size()); }
void silu(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(silu)(x.data(), out.data(), x.size()); }
void tanh(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(tanh)(x.data(), out.data(), x.size()); }
void softplus(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(softplus)(x.data(), out.data(), x.size()); }
void gelu(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(gelu)(x.data(), out.data(), x.size()); }
void gelu_tanh(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(gelu_tanh)(x.data(), out.data(), x.size()); }
void relu(std::span<const float> x, std::span<float> out) noexcept { HWY_DYNAMIC_DISPATCH(relu)(x.data(), out.data(), x.size()); }
void mul_silu(std::span<const float> a, std::span<const float> b, std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(mul_silu)(a.data(), b.data(), out.data(), a.size());
}
void softmax(std::span<const float> x, std::span<float> out) noexcept {
  if (!x.empty()) HWY_DYNAMIC_DISPATCH(softmax)(x.data(), out.data(), x.size());
}
float dot(std::span<const float> a, std::span<const float> b) noexcept { return HWY_DYNAMIC_DISPATCH(dot)(a.data(), b.data(), a.size()); }

}  // namespace kizzasi::kernels
#endif
