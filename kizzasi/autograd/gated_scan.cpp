#include "kizzasi/kernels/gated_scan.h"
#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

// One sequence, rows of E numbers.
void forward(const float* a, const float* x, float* y, std::size_t time, std::size_t channels) {
  std::vector<float> h(channels);
  kernels::gated_scan({a, time, channels}, {x, time, channels}, h, {y, time, channels});
}

void forward(const double* a, const double* x, double* y, std::size_t time, std::size_t channels) {
  for (std::size_t i = 0; i < time * channels; ++i) y[i] = x[i] + (i >= channels ? a[i] * y[i - channels] : 0.0);
}

void backward(const float* a, const float* y, const float* gy, float* ga, float* gx, std::size_t time, std::size_t channels) {
  kernels::gated_scan_backward({a, time, channels}, {y, time, channels}, {gy, time, channels}, {ga, time, channels}, {gx, time, channels});
}

void backward(const double* a, const double* y, const double* gy, double* ga, double* gx, std::size_t time, std::size_t channels) {
  std::vector<double> carry(channels);
  for (std::size_t i = time * channels; i-- > 0;) {
    double& rest = carry[i % channels];
    const double g = gy[i] + rest;
    if (i >= channels) ga[i] += g * y[i - channels];
    gx[i] += g;
    rest = g * a[i];
  }
}

}  // namespace

template <typename T>
Var<T> gated_scan(Var<T> a, Var<T> x) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const std::size_t batch = dims[0], time = dims[1], channels = dims[2], block = time * channels;
  const Var<T> y = tape.record(dims, {a, x}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted_a, unwanted_x;
    const std::span<T> ga = gradient_sink(on, a, unwanted_a), gx = gradient_sink(on, x, unwanted_x);
    for (std::size_t i = 0; i < batch * block; i += block) {
      backward(on.value(a.id).data() + i, on.value(id).data() + i, on.grad(id).data() + i, ga.data() + i, gx.data() + i, time, channels);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < batch * block; i += block) forward(a.value().data() + i, x.value().data() + i, out + i, time, channels);
  return y;
}

template Var<float> gated_scan(Var<float>, Var<float>);
template Var<double> gated_scan(Var<double>, Var<double>);

}  // namespace kizzasi::autograd
