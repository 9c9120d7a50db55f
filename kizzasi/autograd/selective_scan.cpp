#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/scans.h"
#include "kizzasi/kernels/selective_scan.h"

namespace kizzasi::autograd {
namespace {

struct Sizes {
  std::size_t batch, time, channels, states;
};

// Pointers to one sequence: x, delta, y (time, E); b, c (time, N); a (E, N); d (E).
template <typename T>
struct Sequence {
  const T *x, *delta, *a, *b, *c, *d;
};
template <typename T>
struct Gradients {
  T *x, *delta, *a, *b, *c, *d;
};

// h: (time + 1, E, N), every state of the sequence, the zero before it included; y may be null.
template <typename T>
void states(const Sizes& s, const Sequence<T>& in, std::vector<T>& h, T* y) {
  h.assign((s.time + 1) * s.channels * s.states, T{0});
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const T x = in.x[t * s.channels + e], delta = in.delta[t * s.channels + e];
      const T* before = &h[(t * s.channels + e) * s.states];
      T* after = &h[((t + 1) * s.channels + e) * s.states];
      T sum = in.d[e] * x;
      for (std::size_t n = 0; n < s.states; ++n) {
        after[n] = std::exp(delta * in.a[e * s.states + n]) * before[n] + delta * in.b[t * s.states + n] * x;
        sum += in.c[t * s.states + n] * after[n];
      }
      if (y != nullptr) y[t * s.channels + e] = sum;
    }
  }
}

// With g[t] the gradient of h[t]: g[t] = c[t] gy[t] + exp(delta[t+1] a) g[t+1], walked from the end.
template <typename T>
void backward(const Sizes& s, const Sequence<T>& in, const T* gy, const Gradients<T>& out, std::vector<T>& h, std::vector<T>& carry) {
  states<T>(s, in, h, nullptr);
  carry.assign(s.channels * s.states, T{0});
  for (std::size_t t = s.time; t-- > 0;) {
    for (std::size_t e = 0; e < s.channels; ++e) {
      const std::size_t at = t * s.channels + e;
      const T x = in.x[at], delta = in.delta[at];
      const T* before = &h[at * s.states];
      const T* after = &h[(at + s.channels) * s.states];
      T gx = in.d[e] * gy[at], gdelta = 0;
      for (std::size_t n = 0; n < s.states; ++n) {
        const T a = in.a[e * s.states + n], b = in.b[t * s.states + n];
        const T decay = std::exp(delta * a);
        const T g = in.c[t * s.states + n] * gy[at] + carry[e * s.states + n];
        out.c[t * s.states + n] += gy[at] * after[n];
        out.b[t * s.states + n] += g * delta * x;
        out.a[e * s.states + n] += g * delta * decay * before[n];
        gx += g * delta * b;
        gdelta += g * (b * x + a * decay * before[n]);
        carry[e * s.states + n] = decay * g;
      }
      out.x[at] += gx;
      out.delta[at] += gdelta;
      out.d[e] += gy[at] * x;
    }
  }
}

}  // namespace

// In f32, through the kernels: states stand (N, E), so a and its gradient are turned.
template <>
Var<float> selective_scan(Var<float> x, Var<float> delta, Var<float> a, Var<float> b, Var<float> c, Var<float> d) {
  Tape<float>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], a.dims()[1]};
  const std::size_t size = s.channels * s.states;
  const std::size_t kept_size = (kernels::checkpoints(s.time) + 1) * size;
  const std::size_t turned = tape.keep(size), kept = tape.keep(s.batch * kept_size);
  const auto scan = [=](const Tape<float>& on) { return kernels::SelectiveScan{s.channels, s.states, on.value(turned), on.value(d.id)}; };
  const std::size_t scratch = tape.keep(size + kernels::selective_scan_backward_scratch(scan(tape)));
  const auto rows = [=](auto* values, std::size_t i, std::size_t cols) {
    return kernels::BasicMatrix(values + i * s.time * cols, s.time, cols);
  };
  const Var<float> inputs[] = {x, delta, a, b, c, d};
  const Var<float> y = tape.record(dims, inputs, [=](Tape<float>& on, std::size_t id) {
    std::vector<float> unwanted[6];
    float* g[6];
    for (std::size_t i = 0; i < 6; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    const float* gy = on.grad(id).data();
    const std::span<float> ga = on.mutable_value(scratch).first(size), rest = on.mutable_value(scratch).subspan(size);
    for (std::size_t i = 0; i < s.batch; ++i) {  // each sequence summed by itself, so that many of them cost no digits
      std::fill(ga.begin(), ga.end(), 0.0f);
      const kernels::SelectiveScanGradients out{
          rows(g[0], i, s.channels), rows(g[1], i, s.channels), rows(g[3], i, s.states), rows(g[4], i, s.states), ga, {g[5], s.channels}};
      kernels::selective_scan_backward(scan(on), rows(on.value(x.id).data(), i, s.channels), rows(on.value(delta.id).data(), i, s.channels),
                                       rows(on.value(b.id).data(), i, s.states), rows(on.value(c.id).data(), i, s.states),
                                       on.value(kept).subspan(i * kept_size, kept_size), rows(gy, i, s.channels), out, rest);
      for (std::size_t e = 0; e < s.channels; ++e) {
        for (std::size_t n = 0; n < s.states; ++n) g[2][e * s.states + n] += ga[n * s.channels + e];
      }
    }
  });
  const std::span<float> a_turned = tape.mutable_value(turned);
  for (std::size_t e = 0; e < s.channels; ++e) {
    for (std::size_t n = 0; n < s.states; ++n) a_turned[n * s.channels + e] = a.value()[e * s.states + n];
  }
  for (std::size_t i = 0; i < s.batch; ++i) {
    kernels::selective_scan_keeping(scan(tape), rows(x.value().data(), i, s.channels), rows(delta.value().data(), i, s.channels),
                                    rows(b.value().data(), i, s.states), rows(c.value().data(), i, s.states),
                                    tape.mutable_value(kept).subspan(i * kept_size, kept_size),
                                    rows(tape.mutable_value(y.id).data(), i, s.channels));
  }
  return y;
}

template <typename T>
Var<T> selective_scan(Var<T> x, Var<T> delta, Var<T> a, Var<T> b, Var<T> c, Var<T> d) {
  Tape<T>& tape = *x.tape;
  const Dims dims = x.dims();
  const Sizes s{dims[0], dims[1], dims[2], a.dims()[1]};
  const std::size_t wide = s.time * s.channels, narrow = s.time * s.states;
  const auto sequence = [=](const Tape<T>& on, std::size_t i) {
    return Sequence<T>{on.value(x.id).data() + i * wide,   on.value(delta.id).data() + i * wide, on.value(a.id).data(),
                       on.value(b.id).data() + i * narrow, on.value(c.id).data() + i * narrow,   on.value(d.id).data()};
  };
  const Var<T> inputs[] = {x, delta, a, b, c, d};
  const Var<T> y = tape.record(dims, inputs, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[6], h, carry;
    T* g[6];
    for (std::size_t i = 0; i < 6; ++i) g[i] = gradient_sink(on, inputs[i], unwanted[i]).data();
    const T* gy = on.grad(id).data();
    for (std::size_t i = 0; i < s.batch; ++i) {
      const Gradients<T> out{g[0] + i * wide, g[1] + i * wide, g[2], g[3] + i * narrow, g[4] + i * narrow, g[5]};
      backward<T>(s, sequence(on, i), gy + i * wide, out, h, carry);
    }
  });
  T* out = tape.mutable_value(y.id).data();
  std::vector<T> h;
  for (std::size_t i = 0; i < s.batch; ++i) states<T>(s, sequence(tape, i), h, out + i * wide);
  return y;
}

template Var<double> selective_scan(Var<double>, Var<double>, Var<double>, Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
