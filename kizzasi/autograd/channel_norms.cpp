#include "kizzasi/autograd/channel_norms.h"

#include <cassert>
#include <cmath>

namespace kizzasi::autograd {
namespace {

// (batch, channels, ...) in three axes.
template <typename T>
Dims three(Var<T> x) {
  const Dims& d = x.dims();
  assert(d.size() >= 2);
  return {d[0], d[1], x.value().size() / (d[0] * d[1])};
}

// gain x + bias with one of each a channel; x has three axes.
template <typename T>
Var<T> affine(Var<T> x, Var<T> gain, Var<T> bias) {
  if (gain.tape == nullptr && bias.tape == nullptr) return x;
  Var<T> y = permute(x, {0, 2, 1});
  if (gain.tape != nullptr) y = mul(y, gain);
  if (bias.tape != nullptr) y = add(y, bias);
  return permute(y, {0, 2, 1});
}

}  // namespace

template <typename T>
Var<T> group_norm(Var<T> x, std::size_t groups, Var<T> gain, Var<T> bias, T epsilon) {
  const Dims d = three(x), own = x.dims();
  assert(groups > 0 && d[1] % groups == 0);
  const Var<T> normed = layer_norm(reshape(x, {d[0], groups, d[1] / groups * d[2]}), Var<T>{}, Var<T>{}, epsilon);
  return reshape(affine(reshape(normed, d), gain, bias), own);
}

template <typename T>
Var<T> batch_norm(Var<T> x, Var<T> gain, Var<T> bias, T epsilon) {
  const Dims d = three(x), own = x.dims();
  const Var<T> by_channel = reshape(permute(reshape(x, d), {1, 0, 2}), {d[1], d[0] * d[2]});
  const Var<T> normed = layer_norm(by_channel, Var<T>{}, Var<T>{}, epsilon);
  return reshape(affine(permute(reshape(normed, {d[1], d[0], d[2]}), {1, 0, 2}), gain, bias), own);
}

template <typename T>
void RunningMoments::observe(Var<T> x, double share) {
  const Dims d = three(x);
  assert(d[1] == mean.size() && d[0] * d[2] > 1);
  const T* values = x.value().data();
  const double count = static_cast<double>(d[0] * d[2]);
  for (std::size_t c = 0; c < d[1]; ++c) {
    const auto over = [&](auto term) {
      double sum = 0;
      for (std::size_t b = 0; b < d[0]; ++b) {
        for (std::size_t i = 0; i < d[2]; ++i) sum += term(static_cast<double>(values[(b * d[1] + c) * d[2] + i]));
      }
      return sum;
    };
    const double centre = over([](double v) { return v; }) / count;
    const double square = over([centre](double v) { return (v - centre) * (v - centre); }) / (count - 1);
    mean[c] += share * (centre - mean[c]);
    variance[c] += share * (square - variance[c]);
  }
}

template <typename T>
Var<T> batch_norm(Var<T> x, const RunningMoments& moments, Var<T> gain, Var<T> bias, T epsilon) {
  const Dims d = three(x), own = x.dims();
  assert(d[1] == moments.mean.size());
  std::vector<T> centre(d[1]), scale_of(d[1]);
  for (std::size_t c = 0; c < d[1]; ++c) {
    centre[c] = static_cast<T>(moments.mean[c]);
    scale_of[c] = static_cast<T>(1 / std::sqrt(moments.variance[c] + static_cast<double>(epsilon)));
  }
  Tape<T>& tape = *x.tape;
  const Var<T> shifted = sub(permute(reshape(x, d), {0, 2, 1}), tape.constant({d[1]}, centre));
  const Var<T> normed = mul(shifted, tape.constant({d[1]}, scale_of));
  return reshape(affine(permute(normed, {0, 2, 1}), gain, bias), own);
}

#define KIZZASI_CHANNEL_NORMS(T)                                                \
  template Var<T> group_norm(Var<T>, std::size_t, Var<T>, Var<T>, T);           \
  template Var<T> batch_norm(Var<T>, Var<T>, Var<T>, T);                        \
  template Var<T> batch_norm(Var<T>, const RunningMoments&, Var<T>, Var<T>, T); \
  template void RunningMoments::observe(Var<T>, double);
KIZZASI_CHANNEL_NORMS(float)
KIZZASI_CHANNEL_NORMS(double)
#undef KIZZASI_CHANNEL_NORMS

}  // namespace kizzasi::autograd
