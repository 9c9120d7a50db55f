#include <algorithm>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/conv1d.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, taps, dilation;

  // The first tap that reaches row 0 or later from row t, and the row that tap j reaches.
  std::size_t first_tap(std::size_t t) const { return taps - std::min(taps, t / dilation + 1); }
  std::size_t reached(std::size_t t, std::size_t j) const { return t - (taps - 1 - j) * dilation; }
};

// y[t][e] = bias[e] + sum_j w[e][j] x[t - (K - 1 - j) dilation][e], rows before the first being zero.
template <typename T>
void forward(const Sizes& s, const T* x, const T* w, const T* bias, T* y) {
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      T sum = bias != nullptr ? bias[e] : T{0};
      for (std::size_t j = s.first_tap(t); j < s.taps; ++j) sum += w[e * s.taps + j] * x[s.reached(t, j) * s.channels + e];
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
      for (std::size_t j = s.first_tap(t); j < s.taps; ++j) {
        const std::size_t at = s.reached(t, j) * s.channels + e;
        gx[at] += w[e * s.taps + j] * g;
        gw[e * s.taps + j] += x[at] * g;
      }
    }
  }
}

}  // namespace

// In f32, through the kernels: taps stand (K, channels), so w and its gradient are turned. Rows a dilation apart are a sequence of their
// own, whose taps stand side by side.
template <>
Var<float> conv1d(Var<float> x, Var<float> w, Var<float> bias, std::size_t dilation) {
  Tape<float>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], w.dims().back(), dilation};
  const bool biased = bias.tape != nullptr;
  const std::size_t size = s.taps * s.channels;
  const std::size_t turned = tape.keep(size), spare = tape.keep(size);  // spare: the window, then the gradient of the turned taps
  const std::size_t apart = std::min(dilation, s.time);                 // sequences that one falls into
  const auto rows = [=](auto* values, std::size_t i) {
    const std::size_t first = i % apart;
    return kernels::BasicMatrix(values + (i / apart * s.time + first) * s.channels, (s.time - first + apart - 1) / apart, s.channels,
                                apart * s.channels);
  };
  const Var<float> inputs[] = {x, w, biased ? bias : w};
  const Var<float> y = tape.record(dims, inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> no_x, no_w, no_bias;
    const std::span<float> gx = gradient_sink(on, x, no_x), gw = gradient_sink(on, w, no_w), gw_turned = on.mutable_value(spare);
    const std::span<float> gbias = biased ? gradient_sink(on, bias, no_bias) : std::span<float>();
    const float* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch * apart; ++i) {  // each sequence summed by itself, so that many of them cost no digits
      std::fill(gw_turned.begin(), gw_turned.end(), 0.0f);
      kernels::conv1d_backward(on.value(turned), s.taps, rows(on.value(x.id).data(), i), rows(gy, i), rows(gx.data(), i), gw_turned, {});
      for (std::size_t e = 0; e < s.channels; ++e) {
        for (std::size_t j = 0; j < s.taps; ++j) gw[e * s.taps + j] += gw_turned[j * s.channels + e];
      }
    }
    add_rows(s.batch * s.time, gbias, [=](std::size_t row, std::size_t e) { return gy[row * s.channels + e]; });
  });
  const std::span<float> w_turned = tape.mutable_value(turned), window = tape.mutable_value(spare);
  for (std::size_t e = 0; e < s.channels; ++e) {
    for (std::size_t j = 0; j < s.taps; ++j) w_turned[j * s.channels + e] = w.value()[e * s.taps + j];
  }
  for (std::size_t i = 0; i < s.batch * apart; ++i) {
    std::fill(window.begin(), window.end(), 0.0f);
    kernels::conv1d_step(w_turned, biased ? bias.value() : std::span<const float>(), s.taps, window, rows(x.value().data(), i),
                         rows(tape.mutable_value(y.id).data(), i));
  }
  return y;
}

template <typename T>
Var<T> conv1d(Var<T> x, Var<T> w, Var<T> bias, std::size_t dilation) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], w.dims().back(), dilation};
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

template Var<double> conv1d(Var<double>, Var<double>, Var<double>, std::size_t);

}  // namespace kizzasi::autograd
