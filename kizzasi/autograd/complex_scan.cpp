#include "kizzasi/kernels/complex_scan.h"
#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

// One sequence of rows of 2 N numbers. Pointers to its rows and to the coefficients.
template <typename T>
struct Sequence {
  const T *a, *b, *x;
  std::size_t time, states;
  std::size_t width() const { return 2 * states; }
};

void forward(const Sequence<float>& s, float* y) {
  std::vector<float> h(s.width());
  kernels::complex_scan({s.a, s.width()}, {s.b, s.width()}, {s.x, s.time, s.width()}, h, {y, s.time, s.width()});
}

void forward(const Sequence<double>& s, double* y) {
  std::vector<double> h(s.width());
  for (std::size_t t = 0; t < s.time; ++t, y += s.width()) {
    const double* x = s.x + t * s.width();
    for (std::size_t n = 0, i = s.states; n < s.states; ++n, ++i) {
      const double re = s.a[n] * h[n] - s.a[i] * h[i] + s.b[n] * x[n] - s.b[i] * x[i];
      h[i] = s.a[n] * h[i] + s.a[i] * h[n] + s.b[n] * x[i] + s.b[i] * x[n];
      h[n] = re;
      y[n] = h[n];
      y[i] = h[i];
    }
  }
}

void backward(const Sequence<float>& s, const float* y, const float* gy, float* ga, float* gb, float* gx) {
  const std::size_t w = s.width();
  kernels::complex_scan_backward({s.a, w}, {s.b, w}, {s.x, s.time, w}, {y, s.time, w}, {gy, s.time, w},
                                 {{ga, w}, {gb, w}, {gx, s.time, w}});
}

void backward(const Sequence<double>& s, const double* y, const double* gy, double* ga, double* gb, double* gx) {
  std::vector<double> g(s.width());
  for (std::size_t t = s.time; t-- > 0;) {
    const std::size_t row = t * s.width();
    for (std::size_t n = 0, i = s.states; n < s.states; ++n, ++i) {
      const double re = gy[row + n] + s.a[n] * g[n] + s.a[i] * g[i], im = gy[row + i] + s.a[n] * g[i] - s.a[i] * g[n];
      gx[row + n] += s.b[n] * re + s.b[i] * im;
      gx[row + i] += s.b[n] * im - s.b[i] * re;
      gb[n] += re * s.x[row + n] + im * s.x[row + i];
      gb[i] += im * s.x[row + n] - re * s.x[row + i];
      if (t > 0) {
        const double* before = y + row - s.width();
        ga[n] += re * before[n] + im * before[i];
        ga[i] += im * before[n] - re * before[i];
      }
      g[n] = re;
      g[i] = im;
    }
  }
}

}  // namespace

template <typename T>
Var<T> complex_scan(Var<T> x, Var<T> a, Var<T> b) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const std::size_t batch = dims[0], time = dims[1], block = time * dims[2];
  const auto sequence = [=](const Tape<T>& on, std::size_t i) {
    return Sequence<T>{on.value(a.id).data(), on.value(b.id).data(), on.value(x.id).data() + i * block, time, dims[2] / 2};
  };
  const Var<T> y = tape.record(dims, {x, a, b}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[3];
    const std::span<T> gx = gradient_sink(on, x, unwanted[0]), ga = gradient_sink(on, a, unwanted[1]),
                       gb = gradient_sink(on, b, unwanted[2]);
    const T *out = on.value(id).data(), *gy = on.grad(id).data();
    for (std::size_t i = 0; i < batch; ++i) {
      backward(sequence(on, i), out + i * block, gy + i * block, ga.data(), gb.data(), gx.data() + i * block);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < batch; ++i) forward(sequence(tape, i), out + i * block);
  return y;
}

template Var<float> complex_scan(Var<float>, Var<float>, Var<float>);
template Var<double> complex_scan(Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
