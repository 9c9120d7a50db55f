#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/fft.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "kizzasi/kernels/fft.h"

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Complex {
  V re, im;
};

// a (cos + i sin), with the sine's sign turned for the way back.
template <class V>
HWY_INLINE Complex<V> turned(Complex<V> a, V cos, V sin) {
  return {hn::NegMulAdd(a.im, sin, hn::Mul(a.re, cos)), hn::MulAdd(a.re, sin, hn::Mul(a.im, cos))};
}
template <class V>
HWY_INLINE Complex<V> operator+(Complex<V> a, Complex<V> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <class V>
HWY_INLINE Complex<V> operator-(Complex<V> a, Complex<V> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}

// One column of signals. Two stages of halves at a time, depth first: a block is finished while it is near, and its rows are walked in
// order. A last stage of two rows is left where n is no power of four.
template <class D, bool kInverse>
struct Column {
  using V = Complex<hn::Vec<D>>;
  D d;
  std::size_t n;
  const float *cos, *sin;
  float *re, *im;
  std::size_t lanes;

  HWY_INLINE V load(std::size_t row) const { return {hn::LoadU(d, re + row * lanes), hn::LoadU(d, im + row * lanes)}; }
  HWY_INLINE void store(std::size_t row, V v) const {
    hn::StoreU(v.re, d, re + row * lanes);
    hn::StoreU(v.im, d, im + row * lanes);
  }
  HWY_INLINE V turn(V a, std::size_t k) const { return turned(a, hn::Set(d, cos[k]), hn::Set(d, kInverse ? -sin[k] : sin[k])); }

  // Rows `row` + 0, q, 2 q, 3 q of a block of 4 q, at the k-th of n turns; `kPlain`: k is 0.
  template <bool kPlain>
  HWY_INLINE void four(std::size_t row, std::size_t q, std::size_t k) const {
    const V a = load(row), b = load(row + q), c = load(row + 2 * q), e = load(row + 3 * q);
    const auto by = [&](V v, std::size_t times) { return kPlain ? v : turn(v, times * k); };
    if constexpr (kInverse) {
      const V t1 = by(b, 2), t2 = by(c, 1), t3 = by(e, 3);
      const V s0 = a + t1, s1 = a - t1, s2 = t2 + t3, s3 = t2 - t3;
      store(row, s0 + s2);
      store(row + 2 * q, s0 - s2);
      store(row + q, {hn::Sub(s1.re, s3.im), hn::Add(s1.im, s3.re)});
      store(row + 3 * q, {hn::Add(s1.re, s3.im), hn::Sub(s1.im, s3.re)});
    } else {
      const V s0 = a + c, s1 = b + e, s2 = a - c, s3 = b - e;
      store(row, s0 + s1);
      store(row + q, by(s0 - s1, 2));
      store(row + 2 * q, by({hn::Add(s2.re, s3.im), hn::Sub(s2.im, s3.re)}, 1));
      store(row + 3 * q, by({hn::Sub(s2.re, s3.im), hn::Add(s2.im, s3.re)}, 3));
    }
  }
  HWY_INLINE void fours(std::size_t begin, std::size_t q) const {
    four<true>(begin, q, 0);
    const std::size_t stride = n / (4 * q);
    for (std::size_t j = 1; j < q; ++j) four<false>(begin + j, q, j * stride);
  }
  void block(std::size_t begin, std::size_t size) const {
    if (size == 1) return;
    if (size == 2) {
      const V a = load(begin), b = load(begin + 1);
      store(begin, a + b);
      store(begin + 1, a - b);
      return;
    }
    const std::size_t q = size / 4;
    if constexpr (!kInverse) fours(begin, q);
    for (std::size_t i = 0; i < 4 && q > 1; ++i) block(begin + i * q, q);
    if constexpr (kInverse) fours(begin, q);
  }
};

template <bool kInverse>
void transform(std::size_t n, const float* cos, const float* sin, float* re, float* im, std::size_t lanes) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t c = 0;
  for (; c + hn::Lanes(d) <= lanes; c += hn::Lanes(d)) Column<decltype(d), kInverse>{d, n, cos, sin, re + c, im + c, lanes}.block(0, n);
  for (; c < lanes; ++c) Column<decltype(one), kInverse>{one, n, cos, sin, re + c, im + c, lanes}.block(0, n);
}

void forward(std::size_t n, const float* cos, const float* sin, float* re, float* im, std::size_t lanes) {
  transform<false>(n, cos, sin, re, im, lanes);
}
void inverse(std::size_t n, const float* cos, const float* sin, float* re, float* im, std::size_t lanes) {
  transform<true>(n, cos, sin, re, im, lanes);
}

template <class D>
HWY_INLINE void multiply_at(D d, std::size_t i, Spectra a, bool conjugate, Spectra b, bool add, Spectra out) {
  const auto ar = hn::LoadU(d, a.re + i), ai = conjugate ? hn::Neg(hn::LoadU(d, a.im + i)) : hn::LoadU(d, a.im + i);
  Complex<hn::Vec<D>> product = turned(Complex<hn::Vec<D>>{hn::LoadU(d, b.re + i), hn::LoadU(d, b.im + i)}, ar, ai);
  if (add) product = product + Complex<hn::Vec<D>>{hn::LoadU(d, out.re + i), hn::LoadU(d, out.im + i)};
  hn::StoreU(product.re, d, out.re + i);
  hn::StoreU(product.im, d, out.im + i);
}

void multiply(std::size_t count, Spectra a, bool conjugate, Spectra b, bool add, Spectra out) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) multiply_at(d, i, a, conjugate, b, add, out);
  for (; i < count; ++i) multiply_at(one, i, a, conjugate, b, add, out);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(forward);
HWY_EXPORT(inverse);
HWY_EXPORT(multiply);

template <typename T>
Fft<T>::Fft(std::size_t n) : n_(n), cos_(n), sin_(n) {
  assert(std::has_single_bit(n));
  for (std::size_t k = 0; k < n; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    cos_[k] = static_cast<T>(std::cos(angle));
    sin_[k] = static_cast<T>(std::sin(angle));
  }
}

template <typename T>
std::size_t Fft<T>::place_of(std::size_t k) const noexcept {
  std::size_t place = 0;
  for (std::size_t bit = 1; bit < n_; bit *= 2) place = 2 * place + ((k & bit) != 0 ? 1 : 0);
  return place;
}

// In steps of two halves: forward from the widest, inverse from the narrowest, each the other's undoing.
template <typename T>
void fft_plain(bool inverse, std::size_t n, const T* cos, const T* sin, T* re, T* im, std::size_t lanes) noexcept {
  const auto stage = [&](std::size_t half) {
    for (std::size_t row = 0; row < n; ++row) {
      if ((row & half) != 0) continue;
      const std::size_t k = row % half * (n / (2 * half)), a = row * lanes, b = (row + half) * lanes;
      const T c = cos[k], s = inverse ? -sin[k] : sin[k];
      for (std::size_t i = 0; i < lanes; ++i) {
        if (inverse) {
          const T tr = re[b + i] * c - im[b + i] * s, ti = re[b + i] * s + im[b + i] * c;
          re[b + i] = re[a + i] - tr, im[b + i] = im[a + i] - ti;
          re[a + i] += tr, im[a + i] += ti;
        } else {
          const T dr = re[a + i] - re[b + i], di = im[a + i] - im[b + i];
          re[a + i] += re[b + i], im[a + i] += im[b + i];
          re[b + i] = dr * c - di * s, im[b + i] = dr * s + di * c;
        }
      }
    }
  };
  if (inverse) {
    for (std::size_t half = 1; half < n; half *= 2) stage(half);
  } else {
    for (std::size_t half = n / 2; half >= 1; half /= 2) stage(half);
  }
}

template <>
void Fft<float>::forward(float* re, float* im, std::size_t lanes) const noexcept {
  HWY_DYNAMIC_DISPATCH(forward)(n_, cos_.data(), sin_.data(), re, im, lanes);
}
template <>
void Fft<float>::inverse(float* re, float* im, std::size_t lanes) const noexcept {
  HWY_DYNAMIC_DISPATCH(inverse)(n_, cos_.data(), sin_.data(), re, im, lanes);
}
template <>
void Fft<double>::forward(double* re, double* im, std::size_t lanes) const noexcept {
  fft_plain(false, n_, cos_.data(), sin_.data(), re, im, lanes);
}
template <>
void Fft<double>::inverse(double* re, double* im, std::size_t lanes) const noexcept {
  fft_plain(true, n_, cos_.data(), sin_.data(), re, im, lanes);
}

template class Fft<float>;
template class Fft<double>;
template void fft_plain(bool, std::size_t, const float*, const float*, float*, float*, std::size_t) noexcept;
template void fft_plain(bool, std::size_t, const double*, const double*, double*, double*, std::size_t) noexcept;

void multiply_spectra(std::size_t count, Spectra a, bool conjugate, Spectra b, bool add, Spectra out) noexcept {
  HWY_DYNAMIC_DISPATCH(multiply)(count, a, conjugate, b, add, out);
}

std::size_t power_of_two(std::size_t least) noexcept { return std::bit_ceil(least); }

}  // namespace kizzasi::kernels
#endif
