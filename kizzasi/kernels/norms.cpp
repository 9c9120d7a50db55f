#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kizzasi/kernels/norms.cpp"
#include <hwy/foreach_target.h>  // compiles the part below once for each target

#include <hwy/highway.h>

#include <cmath>
#include <cstddef>

#include "kizzasi/kernels/fused.h"
#include "kizzasi/kernels/norms.h"

#ifndef KIZZASI_KERNELS_NORMS_SIZES
#define KIZZASI_KERNELS_NORMS_SIZES
namespace kizzasi::kernels {
constexpr std::size_t kPiece = 1024;  // numbers that are normalised and then go through a function together; whole vectors of any width
}
#endif

HWY_BEFORE_NAMESPACE();
namespace kizzasi::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Value {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x, V sum) const {
    return hn::Add(sum, x);
  }
};
struct SquareFrom {
  float mean;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x, V sum) const {
    const V difference = hn::Sub(x, hn::Set(d, mean));
    return hn::MulAdd(difference, difference, sum);
  }
};

// Folds x into 32 chains, whatever the vectors' width, then adds the chains pairwise: one order for each size.
template <class Fold>
float sum(const float* x, std::size_t size, Fold fold) {
  const hn::CappedTag<float, 8> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d);
  HWY_ALIGN float lanes[32] = {};
  const std::size_t whole = size / 32 * 32;
  for (std::size_t begin = 0; begin < 32; begin += 4 * width) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (std::size_t i = begin; i < whole; i += 32) {
      sum0 = fold(d, hn::LoadU(d, x + i), sum0);
      sum1 = fold(d, hn::LoadU(d, x + i + width), sum1);
      sum2 = fold(d, hn::LoadU(d, x + i + 2 * width), sum2);
      sum3 = fold(d, hn::LoadU(d, x + i + 3 * width), sum3);
    }
    hn::Store(sum0, d, lanes + begin);
    hn::Store(sum1, d, lanes + begin + width);
    hn::Store(sum2, d, lanes + begin + 2 * width);
    hn::Store(sum3, d, lanes + begin + 3 * width);
  }
  for (std::size_t i = whole; i < size; ++i) {
    hn::StoreU(fold(one, hn::LoadU(one, x + i), hn::LoadU(one, lanes + (i - whole))), one, lanes + (i - whole));
  }
  for (std::size_t half = 16; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// out = gain * ((x - mean) * scale) + bias; gain and bias may be null.
template <class D>
HWY_INLINE void affine(D d, const float* x, float mean, float scale, const float* gain, const float* bias, float* out) {
  auto v = hn::Mul(hn::Sub(hn::LoadU(d, x), hn::Set(d, mean)), hn::Set(d, scale));
  if (gain != nullptr) v = hn::Mul(v, hn::LoadU(d, gain));
  if (bias != nullptr) v = hn::Add(v, hn::LoadU(d, bias));
  hn::StoreU(v, d, out);
}

void affine_row(const float* x, float mean, float scale, const float* gain, const float* bias, float* out, std::size_t size,
                Elementwise f) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const auto from = [](const float* p, std::size_t i) { return p == nullptr ? nullptr : p + i; };
  for (std::size_t begin = 0; begin < size; begin += kPiece) {
    const std::size_t end = begin + kPiece < size ? begin + kPiece : size;
    std::size_t i = begin;
    for (; i + hn::Lanes(d) <= end; i += hn::Lanes(d)) affine(d, x + i, mean, scale, from(gain, i), from(bias, i), out + i);
    for (; i < end; ++i) affine(one, x + i, mean, scale, from(gain, i), from(bias, i), out + i);
    if (f != nullptr) f({out + begin, end - begin}, {out + begin, end - begin});
  }
}

void rms_norm(const float* x, const float* gain, float epsilon, float* out, std::size_t size, Elementwise f) {
  const float square = sum(x, size, SquareFrom{0.0f}) / static_cast<float>(size);
  affine_row(x, 0.0f, 1.0f / std::sqrt(square + epsilon), gain, nullptr, out, size, f);
}

void layer_norm(const float* x, const float* gain, const float* bias, float epsilon, float* out, std::size_t size, Elementwise f) {
  const float mean = sum(x, size, Value()) / static_cast<float>(size);
  const float variance = sum(x, size, SquareFrom{mean}) / static_cast<float>(size);
  affine_row(x, mean, 1.0f / std::sqrt(variance + epsilon), gain, bias, out, size, f);
}

}  // namespace kizzasi::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kizzasi::kernels {

HWY_EXPORT(rms_norm);
HWY_EXPORT(layer_norm);

void rms_norm_then(std::span<const float> x, std::span<const float> gain, float epsilon, Elementwise f, std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x.data(), gain.empty() ? nullptr : gain.data(), epsilon, out.data(), x.size(), f);
}
void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon, std::span<float> out) noexcept {
  rms_norm_then(x, gain, epsilon, nullptr, out);
}

void rms_norm_groups(std::span<const float> x, std::size_t groups, std::span<const float> gain, float epsilon,
                     std::span<float> out) noexcept {
  const std::size_t size = x.size() / groups;
  for (std::size_t begin = 0; begin < x.size(); begin += size) {
    rms_norm(x.subspan(begin, size), gain.empty() ? gain : gain.subspan(begin, size), epsilon, out.subspan(begin, size));
  }
}

void layer_norm_then(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, float epsilon, Elementwise f,
                     std::span<float> out) noexcept {
  HWY_DYNAMIC_DISPATCH(layer_norm)
  (x.data(), gain.empty() ? nullptr : gain.data(), bias.empty() ? nullptr : bias.data(), epsilon, out.data(), x.size(), f);
}
void layer_norm(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, float epsilon,
                std::span<float> out) noexcept {
  layer_norm_then(x, gain, bias, epsilon, nullptr, out);
}

}  // namespace kizzasi::kernels
#endif
