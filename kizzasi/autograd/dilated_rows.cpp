#include <algorithm>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, taps, dilation;
};

// use(to, from): the channels from element `to` of the rows are those from element `from` of x, or of zeros where there is no such row.
template <typename Use, typename Zero>
void for_each_tap(const Sizes& s, Use use, Zero zero) {
  std::size_t to = 0;
  for (std::size_t row = 0; row < s.batch * s.time; ++row) {
    for (std::size_t j = 0; j < s.taps; ++j, to += s.channels) {
      const std::size_t lag = (s.taps - 1 - j) * s.dilation;
      if (lag <= row % s.time) {
        use(to, (row - lag) * s.channels);
      } else {
        zero(to);
      }
    }
  }
}

}  // namespace

template <typename T>
Var<T> dilated_rows(Var<T> x, std::size_t taps, std::size_t dilation) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], taps, dilation};
  const Var<T> y = tape.record({s.batch, s.time, taps * s.channels}, {x}, [=](Tape<T>& on, std::size_t id) {
    const T* gy = on.grad(id).data();
    T* gx = on.grad(x.id).data();
    const auto add = [=](std::size_t to, std::size_t from) {
      for (std::size_t c = 0; c < s.channels; ++c) gx[from + c] += gy[to + c];
    };
    for_each_tap(s, add, [](std::size_t) {});
  });
  T* out = tape.mutable_value(y.id).data();
  const T* in = x.value().data();
  for_each_tap(
      s, [=](std::size_t to, std::size_t from) { std::copy_n(in + from, s.channels, out + to); },
      [=](std::size_t to) { std::fill_n(out + to, s.channels, T{0}); });
  return y;
}

template <typename T>
Var<T> causal_conv(Var<T> x, Var<T> w, Var<T> bias, std::size_t dilation) {
  const Dims dims = w.dims();  // (outputs, channels, K)
  return linear(dilated_rows(x, dims[2], dilation), reshape(permute(w, {0, 2, 1}), {dims[0], dims[2] * dims[1]}), bias);
}

template Var<float> dilated_rows(Var<float>, std::size_t, std::size_t);
template Var<double> dilated_rows(Var<double>, std::size_t, std::size_t);
template Var<float> causal_conv(Var<float>, Var<float>, Var<float>, std::size_t);
template Var<double> causal_conv(Var<double>, Var<double>, Var<double>, std::size_t);

}  // namespace kizzasi::autograd
