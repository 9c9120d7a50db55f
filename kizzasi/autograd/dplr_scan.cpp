#include "kizzasi/kernels/dplr_scan.h"

#include <array>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, states;
  std::size_t plane() const { return states * channels; }
  std::size_t block() const { return time * channels; }
};

enum : std::size_t { kX, kA, kB, kC, kP, kR, kD, kInputs };

template <typename T>
using Pointers = std::array<const T*, kInputs>;
template <typename T>
using Sinks = std::array<T*, kInputs>;

kernels::DplrScan kernel(const Sizes& s, const Pointers<float>& in) {
  const std::size_t size = 2 * s.plane();
  return {s.channels, s.states, {in[kA], size}, {in[kB], size}, {in[kC], size}, {in[kP], size}, {in[kR], size}, {in[kD], s.channels}};
}

// One sequence, at in[kX].
void forward(const Sizes& s, const Pointers<float>& in, float* y) {
  std::vector<float> h(2 * s.plane());
  kernels::dplr_scan(kernel(s, in), {in[kX], s.time, s.channels}, h, {y, s.time, s.channels});
}

void backward(const Sizes& s, const Pointers<float>& in, const float* gy, const Sinks<float>& g) {
  const kernels::DplrScan scan = kernel(s, in);
  const std::size_t size = 2 * s.plane();
  std::vector<float> scratch(kernels::dplr_scan_backward_scratch(scan, s.time));
  kernels::dplr_scan_backward(
      scan, {in[kX], s.time, s.channels}, {gy, s.time, s.channels},
      {{g[kX], s.time, s.channels}, {g[kA], size}, {g[kB], size}, {g[kC], size}, {g[kP], size}, {g[kR], size}, {g[kD], s.channels}},
      scratch);
}

// h: (time + 1, 2, N, E), every state, the zero before the first included; q: (time, E).
void states(const Sizes& s, const Pointers<double>& in, std::vector<double>& h, std::vector<double>& q, double* y) {
  const std::size_t plane = s.plane();
  h.assign((s.time + 1) * 2 * plane, 0.0);
  q.assign(s.block(), 0.0);
  for (std::size_t t = 0; t < s.time; ++t) {
    const double* before = &h[t * 2 * plane];
    double* after = &h[(t + 1) * 2 * plane];
    for (std::size_t e = 0; e < s.channels; ++e) {
      const double x = in[kX][t * s.channels + e];
      double& shared = q[t * s.channels + e];
      double sum = in[kD][e] * x;
      for (std::size_t i = e; i < plane; i += s.channels) shared += in[kP][i] * before[i] - in[kP][plane + i] * before[plane + i];
      for (std::size_t i = e, j = plane + e; i < plane; i += s.channels, j += s.channels) {
        after[i] = in[kA][i] * before[i] - in[kA][j] * before[j] + in[kB][i] * x + in[kR][i] * shared;
        after[j] = in[kA][i] * before[j] + in[kA][j] * before[i] + in[kB][j] * x + in[kR][j] * shared;
        sum += in[kC][i] * after[i] - in[kC][j] * after[j];
      }
      if (y != nullptr) y[t * s.channels + e] = sum;
    }
  }
}

void forward(const Sizes& s, const Pointers<double>& in, double* y) {
  std::vector<double> h, q;
  states(s, in, h, q, y);
}

// With g the gradient of h[t], walked from the end.
void backward(const Sizes& s, const Pointers<double>& in, const double* gy, const Sinks<double>& g) {
  const std::size_t plane = s.plane();
  std::vector<double> h, q, carry(2 * plane);
  states(s, in, h, q, nullptr);
  for (std::size_t t = s.time; t-- > 0;) {
    const double *before = &h[t * 2 * plane], *after = &h[(t + 1) * 2 * plane];
    for (std::size_t e = 0; e < s.channels; ++e) {
      const double out = gy[t * s.channels + e], x = in[kX][t * s.channels + e], shared = q[t * s.channels + e];
      double gx = in[kD][e] * out, gq = 0;
      for (std::size_t i = e, j = plane + e; i < plane; i += s.channels, j += s.channels) {
        const double re = carry[i] += in[kC][i] * out, im = carry[j] -= in[kC][j] * out;
        g[kC][i] += out * after[i], g[kC][j] -= out * after[j];
        g[kA][i] += re * before[i] + im * before[j], g[kA][j] += im * before[i] - re * before[j];
        g[kB][i] += re * x, g[kB][j] += im * x;
        g[kR][i] += re * shared, g[kR][j] += im * shared;
        gx += re * in[kB][i] + im * in[kB][j];
        gq += re * in[kR][i] + im * in[kR][j];
      }
      for (std::size_t i = e, j = plane + e; i < plane; i += s.channels, j += s.channels) {
        const double re = carry[i], im = carry[j];
        g[kP][i] += gq * before[i], g[kP][j] -= gq * before[j];
        carry[i] = in[kA][i] * re + in[kA][j] * im + in[kP][i] * gq;
        carry[j] = in[kA][i] * im - in[kA][j] * re - in[kP][j] * gq;
      }
      g[kX][t * s.channels + e] += gx;
      g[kD][e] += out * x;
    }
  }
}

}  // namespace

template <typename T>
Var<T> dplr_scan(Var<T> x, const DplrCoefficients<T>& k) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], k.a.dims()[1]};
  const std::array<Var<T>, kInputs> inputs{x, k.a, k.b, k.c, k.p, k.r, k.d};
  const auto sequence = [=](const Tape<T>& on, std::size_t i) {
    Pointers<T> in;
    for (std::size_t j = 0; j < kInputs; ++j) in[j] = on.value(inputs[j].id).data();
    in[kX] += i * s.block();
    return in;
  };
  const Var<T> y = tape.record(dims, std::span<const Var<T>>(inputs), [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[kInputs];
    Sinks<T> g;
    for (std::size_t j = 0; j < kInputs; ++j) g[j] = gradient_sink(on, inputs[j], unwanted[j]).data();
    const T* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i, g[kX] += s.block()) backward(s, sequence(on, i), gy + i * s.block(), g);
  });
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < s.batch; ++i) forward(s, sequence(tape, i), out + i * s.block());
  return y;
}

template Var<float> dplr_scan(Var<float>, const DplrCoefficients<float>&);
template Var<double> dplr_scan(Var<double>, const DplrCoefficients<double>&);

}  // namespace kizzasi::autograd
