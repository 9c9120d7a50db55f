// Exponentials in vectors. Part of the .cpp files that Highway compiles once for each instruction set; include it after foreach_target.h.
#if defined(KIZZASI_KERNELS_EXPONENTIAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef KIZZASI_KERNELS_EXPONENTIAL_INL_H_
#undef KIZZASI_KERNELS_EXPONENTIAL_INL_H_
#else
#define KIZZASI_KERNELS_EXPONENTIAL_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// max(x, limit), and NaN where x is NaN: the vector instruction gives its second operand then, the emulation would give the number.
template <class V>
HWY_INLINE V at_least(V limit, V x) {
#if HWY_TARGET == HWY_EMU128
  return hn::IfThenElse(hn::Lt(x, limit), limit, x);
#else
  return hn::Max(limit, x);
#endif
}

// 2^x for x <= 0, down to 2^-126, which also stands for all below: as a decay that is zero. Relative error below 1e-7.
// Adding 1.5 * 2^23 rounds x to an integer, which then stands in the low bits; 127 more makes it the exponent of the result.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2_nonpositive(D d, V x) {
  const hn::RebindToUnsigned<D> bits;
  const V shift = hn::Set(d, 12582912.0f + 127.0f);
  x = at_least(hn::Set(d, -126.0f), x);
  const V rounded = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(rounded, shift));
  V p = hn::MulAdd(hn::Set(d, 0.000153534114f), f, hn::Set(d, 0.00133988867f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.00961843692f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555033237f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240226477f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693147182f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(bits, rounded))));
}

// e^x for every x: 0 below -104, infinite above 88.7, NaN for NaN. Relative error below 1.2e-7 in the normal range.
// x = n ln 2 + r; 2^n is put on in two halves, so that neither leaves the range before the result does.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_of(D d, V x) {
  const hn::RebindToSigned<D> integers;
  const V limited = hn::Min(hn::Set(d, 89.0f), hn::Max(hn::Set(d, -104.0f), x));
  const V shift = hn::Set(d, 12582912.0f);
  const V rounded = hn::MulAdd(limited, hn::Set(d, 1.44269504f), shift);
  const V n = hn::Sub(rounded, shift);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), limited);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::MulAdd(hn::Set(d, 0.00138145406f), r, hn::Set(d, 0.00836874545f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.041668389f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.166665211f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::MulAdd(p, hn::Mul(r, r), hn::Add(r, hn::Set(d, 1.0f)));
  const auto whole = hn::ConvertTo(integers, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(integers, 127);
  const V first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(hn::Mul(p, first), second));
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
