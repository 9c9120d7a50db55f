#include <algorithm>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, taps;
};

// y[t][e] = bias[e] + sum_j w[e][j] x[t - (K - 1) + j][e], rows before the first being zero.
template <typename T>
void forward(const Sizes& s, const T* x, const T* w, const T* bias, T* y) {
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      T sum = bias != nullptr ? bias[e] : T{0};
      for (std::size_t j = s.taps - std::min(s.taps, t + 1); j < s.taps; ++j)
        sum += w[e * s.taps + j] * x[(t + 1 + j - s.taps) * s.channels + e];
      y[t * s.channels + e] = sum;
    }
  }
}

template <typename T>
void backward(const Sizes& s, const T* x, const T* w, const T* gy, T* gx, T* gw, T* gbias) {
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const T g = gy[t * s.channels + e];
      if (gbias != nullptr) gbias[e] += g;
      for (std::size_t j = s.taps - std::min(s.taps, t + 1); j < s.taps; ++j) {
        const std::size_t at = (t + 1 + j - s.taps) * s.channels + e;
        gx[at] += w[e * s.taps + j] * g;
        gw[e * s.taps + j] += x[at] * g;
      }
    }
  }
}

}  // namespace

template <typename T>
Var<T> conv1d(Var<T> x, Var<T> w, Var<T> bias) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], w.dims().back()};
  const bool biased = bias.tape != nullptr;
  const std::size_t block = s.time * s.channels;
  const Var<T> inputs[] = {x, w, biased ? bias : w};
  const Var<T> y = tape.record(dims, inputs, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> no_x, no_w, no_bias;
    const std::span<T> gx = gradient_sink(on, x, no_x), gw = gradient_sink(on, w, no_w);
    T* gbias = biased ? gradient_sink(on, bias, no_bias).data() : nullptr;
    const T* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      backward(s, on.value(x.id).data() + i * block, on.value(w.id).data(), gy + i * block, gx.data() + i * block, gw.data(), gbias);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < s.batch; ++i) {
    forward(s, x.value().data() + i * block, w.value().data(), biased ? bias.value().data() : nullptr, out + i * block);
  }
  return y;
}

template Var<float> conv1d(Var<float>, Var<float>, Var<float>);
template Var<double> conv1d(Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
