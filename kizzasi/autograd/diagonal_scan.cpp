#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, states;
  std::size_t plane() const { return states * channels; }
};

// h: (time + 1, 2, N, E), every state of one sequence, the zero before it included; y may be null.
template <typename T>
void states(const Sizes& s, const T* x, const T* a, const T* c, const T* d, std::vector<T>& h, T* y) {
  const std::size_t plane = s.plane();
  h.assign((s.time + 1) * 2 * plane, T{0});
  for (std::size_t t = 0; t < s.time; ++t) {
    const T* before = &h[t * 2 * plane];
    T* after = &h[(t + 1) * 2 * plane];
    for (std::size_t e = 0; e < s.channels; ++e) {
      T sum = d[e] * x[t * s.channels + e];
      for (std::size_t i = e; i < plane; i += s.channels) {
        after[i] = a[i] * before[i] - a[plane + i] * before[plane + i] + x[t * s.channels + e];
        after[plane + i] = a[i] * before[plane + i] + a[plane + i] * before[i];
        sum += c[i] * after[i] - c[plane + i] * after[plane + i];
      }
      if (y != nullptr) y[t * s.channels + e] = sum;
    }
  }
}

// With (gr, gi) the gradients of the real and the imaginary part of h[t], walked from the end.
template <typename T>
void backward(const Sizes& s, const T* x, const T* a, const T* c, const T* d, const T* gy, T* gx, T* ga, T* gc, T* gd, std::vector<T>& h,
              std::vector<T>& carry) {
  const std::size_t plane = s.plane();
  states<T>(s, x, a, c, d, h, nullptr);
  carry.assign(2 * plane, T{0});
  for (std::size_t t = s.time; t-- > 0;) {
    const T* before = &h[t * 2 * plane];
    const T* after = &h[(t + 1) * 2 * plane];
    for (std::size_t e = 0; e < s.channels; ++e) {
      const T g = gy[t * s.channels + e];
      T input = d[e] * g;
      for (std::size_t i = e; i < plane; i += s.channels) {
        const T gr = carry[i] + c[i] * g, gi = carry[plane + i] - c[plane + i] * g;
        gc[i] += g * after[i];
        gc[plane + i] -= g * after[plane + i];
        ga[i] += gr * before[i] + gi * before[plane + i];
        ga[plane + i] += gi * before[i] - gr * before[plane + i];
        input += gr;
        carry[i] = a[i] * gr + a[plane + i] * gi;
        carry[plane + i] = a[i] * gi - a[plane + i] * gr;
      }
      gx[t * s.channels + e] += input;
      gd[e] += g * x[t * s.channels + e];
    }
  }
}

}  // namespace

// In f32, through the kernels.
template <>
Var<float> diagonal_scan(Var<float> x, Var<float> a, Var<float> c, Var<float> d) {
  Tape<float>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], a.dims()[1]};
  const std::size_t block = s.time * s.channels, kept_size = (kernels::diagonal_checkpoints(s.time) + 1) * 2 * s.plane();
  const auto scan = [=](const Tape<float>& on) {
    return kernels::DiagonalScan{s.channels, s.states, on.value(a.id), on.value(c.id), on.value(d.id)};
  };
  const std::size_t kept = tape.keep(s.batch * kept_size), scratch = tape.keep(kernels::diagonal_scan_backward_scratch(scan(tape)));
  const auto rows = [=](auto* values, std::size_t i) { return kernels::BasicMatrix(values + i * block, s.time, s.channels); };
  const Var<float> inputs[] = {x, a, c, d};
  const Var<float> y = tape.record(dims, inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> unwanted[4];
    std::span<float> g[4];
    for (std::size_t i = 0; i < 4; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]);
    const float* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      kernels::diagonal_scan_backward(scan(on), rows(on.value(x.id).data(), i), on.value(kept).subspan(i * kept_size, kept_size),
                                      rows(gy, i), {rows(g[0].data(), i), g[1], g[2], g[3]}, on.mutable_value(scratch));
    }
  });
  for (std::size_t i = 0; i < s.batch; ++i) {
    kernels::diagonal_scan_keeping(scan(tape), rows(x.value().data(), i), tape.mutable_value(kept).subspan(i * kept_size, kept_size),
                                   rows(tape.mutable_value(y.id).data(), i));
  }
  return y;
}

template <typename T>
Var<T> diagonal_scan(Var<T> x, Var<T> a, Var<T> c, Var<T> d) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], a.dims()[1]};
  const std::size_t block = s.time * s.channels;
  const Var<T> inputs[] = {x, a, c, d};
  const Var<T> y = tape.record(dims, inputs, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[4], h, carry;
    T* g[4];
    for (std::size_t i = 0; i < 4; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    const T* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      backward<T>(s, on.value(x.id).data() + i * block, on.value(a.id).data(), on.value(c.id).data(), on.value(d.id).data(), gy + i * block,
                  g[0] + i * block, g[1], g[2], g[3], h, carry);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  std::vector<T> h;
  for (std::size_t i = 0; i < s.batch; ++i) {
    states<T>(s, x.value().data() + i * block, a.value().data(), c.value().data(), d.value().data(), h, out + i * block);
  }
  return y;
}

template Var<double> diagonal_scan(Var<double>, Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
