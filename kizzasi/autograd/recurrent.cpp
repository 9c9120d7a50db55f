#include "kizzasi/autograd/recurrent.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/product.h"
#include "kizzasi/kernels/activations.h"

namespace kizzasi::autograd {
namespace {

using kernels::BasicMatrix;
using kernels::Transpose;

void sigmoid_of(std::span<float> x) { kernels::sigmoid(x, x); }
void tanh_of(std::span<float> x) { kernels::tanh(x, x); }
void sigmoid_of(std::span<double> x) {
  for (double& v : x) v = v >= 0 ? 1 / (1 + std::exp(-v)) : std::exp(v) / (1 + std::exp(v));
}
void tanh_of(std::span<double> x) {
  for (double& v : x) v = std::tanh(v);
}

// (batch, time, width) as the matrix of all sequences at one time, or of one sequence.
template <typename T>
BasicMatrix<T> at_time(T* values, std::size_t t, std::size_t batch, std::size_t time, std::size_t width) {
  return {values + t * width, batch, width, time * width};
}

// to[t] (batch, G) += h[t - 1] u^T: what the last outputs say to the gates.
template <typename T>
void add_recurrence(Var<T> u, const T* h, T* to, std::size_t t, std::size_t batch, std::size_t time) {
  const std::size_t gates = u.dims()[0], width = u.dims()[1];
  if (t == 0) return;
  product(Transpose::kNo, at_time<const T>(h, t - 1, batch, time, width), Transpose::kYes,
          BasicMatrix<const T>(u.value().data(), gates, width), at_time(to, t, batch, time, gates), true);
}

// gh (batch, H) = g[t] u, or += where `accumulate`: the same on the way back.
template <typename T>
void back_through_recurrence(Var<T> u, const T* g, std::vector<T>& gh, std::size_t t, std::size_t batch, std::size_t time,
                             bool accumulate) {
  const std::size_t gates = u.dims()[0], width = u.dims()[1];
  product(Transpose::kNo, at_time<const T>(g, t, batch, time, gates), Transpose::kNo, BasicMatrix<const T>(u.value().data(), gates, width),
          BasicMatrix<T>(gh.data(), batch, width), accumulate);
}

// gu += sum over steps of (gradient of U h)^T h_before, one product a sequence. g: (batch, time, G), h: (batch, time, H).
template <typename T>
void add_recurrent_gradient(const T* g, const T* h, std::size_t batch, std::size_t time, std::size_t gates, std::size_t width, T* gu) {
  if (time < 2) return;
  for (std::size_t b = 0; b < batch; ++b) {
    product(Transpose::kYes, BasicMatrix<const T>(g + (b * time + 1) * gates, time - 1, gates), Transpose::kNo,
            BasicMatrix<const T>(h + b * time * width, time - 1, width), BasicMatrix<T>(gu, gates, width), true);
  }
}

}  // namespace

template <typename T>
Var<T> lstm(Var<T> x, Var<T> u) {
  Tape<T>& tape = *x.tape;
  const std::size_t batch = x.dims()[0], time = x.dims()[1], gates = x.dims()[2], width = gates / 4;
  const std::size_t kept = tape.keep(batch * time * gates), cells = tape.keep(batch * time * width);  // gates after their functions, c
  const Var<T> y = tape.record({batch, time, width}, {x, u}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted_x, unwanted_u;
    const std::span<T> gx = gradient_sink(on, x, unwanted_x), gu = gradient_sink(on, u, unwanted_u);
    const T* gy = on.grad(id).data();
    const T* act = on.value(kept).data();
    const T* c = on.value(cells).data();
    std::vector<T> pre(batch * time * gates), gh(batch * width), gc(batch * width);
    for (std::size_t t = time; t-- > 0;) {
      for (std::size_t b = 0; b < batch; ++b) {
        const std::size_t row = b * time + t;
        const T* a = act + row * gates;
        T* g = pre.data() + row * gates;
        for (std::size_t j = 0; j < width; ++j) {
          const T i = a[j], f = a[width + j], n = a[2 * width + j], o = a[3 * width + j];
          const T before = t > 0 ? c[(row - 1) * width + j] : T{0}, s = std::tanh(c[row * width + j]);
          const T dh = gy[row * width + j] + gh[b * width + j];
          const T dc = gc[b * width + j] + dh * o * (1 - s * s);
          g[j] = dc * n * i * (1 - i);
          g[width + j] = dc * before * f * (1 - f);
          g[2 * width + j] = dc * i * (1 - n * n);
          g[3 * width + j] = dh * s * o * (1 - o);
          gc[b * width + j] = dc * f;
        }
      }
      back_through_recurrence<T>(u, pre.data(), gh, t, batch, time, false);
    }
    for (std::size_t i = 0; i < pre.size(); ++i) gx[i] += pre[i];
    add_recurrent_gradient(pre.data(), on.value(id).data(), batch, time, gates, width, gu.data());
  });
  T* h = tape.mutable_value(y.id).data();
  T* act = tape.mutable_value(kept).data();
  T* c = tape.mutable_value(cells).data();
  std::copy(x.value().begin(), x.value().end(), act);
  for (std::size_t t = 0; t < time; ++t) {
    add_recurrence<T>(u, h, act, t, batch, time);
    for (std::size_t b = 0; b < batch; ++b) {
      const std::size_t row = b * time + t;
      const std::span<T> a(act + row * gates, gates);
      sigmoid_of(a.first(2 * width));
      tanh_of(a.subspan(2 * width, width));
      sigmoid_of(a.last(width));
      const std::span<T> out(h + row * width, width);
      for (std::size_t j = 0; j < width; ++j) {
        const T before = t > 0 ? c[(row - 1) * width + j] : T{0};
        out[j] = c[row * width + j] = a[width + j] * before + a[j] * a[2 * width + j];
      }
      tanh_of(out);
      for (std::size_t j = 0; j < width; ++j) out[j] *= a[3 * width + j];
    }
  }
  return y;
}

template <typename T>
Var<T> gru(Var<T> x, Var<T> u, Var<T> c) {
  Tape<T>& tape = *x.tape;
  const std::size_t batch = x.dims()[0], time = x.dims()[1], gates = x.dims()[2], width = gates / 3;
  const std::size_t kept = tape.keep(batch * time * gates), inner = tape.keep(batch * time * gates);  // r, z, n; U h + c
  const Var<T> y = tape.record({batch, time, width}, {x, u, c}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted_x, unwanted_u;
    const std::span<T> gx = gradient_sink(on, x, unwanted_x), gu = gradient_sink(on, u, unwanted_u);
    const T* gy = on.grad(id).data();
    const T* act = on.value(kept).data();
    const T* uh = on.value(inner).data();
    const T* h = on.value(id).data();
    std::vector<T> pre(batch * time * gates), gh(batch * width), through(batch * width);  // pre: with respect to U h + c
    for (std::size_t t = time; t-- > 0;) {
      for (std::size_t b = 0; b < batch; ++b) {
        const std::size_t row = b * time + t;
        const T* a = act + row * gates;
        T* g = pre.data() + row * gates;
        T* to_x = gx.data() + row * gates;
        for (std::size_t j = 0; j < width; ++j) {
          const T r = a[j], z = a[width + j], n = a[2 * width + j], before = t > 0 ? h[(row - 1) * width + j] : T{0};
          const T dh = gy[row * width + j] + gh[b * width + j];
          const T dn = dh * (1 - z) * (1 - n * n);
          g[j] = dn * uh[row * gates + 2 * width + j] * r * (1 - r);
          g[width + j] = dh * (before - n) * z * (1 - z);
          g[2 * width + j] = dn * r;
          to_x[j] += g[j];
          to_x[width + j] += g[width + j];
          to_x[2 * width + j] += dn;
          through[b * width + j] = dh * z;
        }
      }
      std::copy(through.begin(), through.end(), gh.begin());
      back_through_recurrence<T>(u, pre.data(), gh, t, batch, time, true);
    }
    add_recurrent_gradient(pre.data(), h, batch, time, gates, width, gu.data());
    if (c.tape != nullptr && on.wants_gradient(c.id)) {
      add_rows(batch * time, on.grad(c.id), [&](std::size_t row, std::size_t j) { return pre[row * gates + j]; });
    }
  });
  T* h = tape.mutable_value(y.id).data();
  T* act = tape.mutable_value(kept).data();
  T* uh = tape.mutable_value(inner).data();
  for (std::size_t row = 0; row < batch * time; ++row) {
    for (std::size_t j = 0; j < gates; ++j) uh[row * gates + j] = c.tape != nullptr ? c.value()[j] : T{0};
  }
  for (std::size_t t = 0; t < time; ++t) {
    add_recurrence<T>(u, h, uh, t, batch, time);
    for (std::size_t b = 0; b < batch; ++b) {
      const std::size_t row = b * time + t;
      const T* in = x.value().data() + row * gates;
      const T* inside = uh + row * gates;
      const std::span<T> a(act + row * gates, gates);
      for (std::size_t j = 0; j < 2 * width; ++j) a[j] = in[j] + inside[j];
      sigmoid_of(a.first(2 * width));
      for (std::size_t j = 2 * width; j < gates; ++j) a[j] = in[j] + a[j - 2 * width] * inside[j];
      tanh_of(a.last(width));
      for (std::size_t j = 0; j < width; ++j) {
        const T before = t > 0 ? h[(row - 1) * width + j] : T{0}, z = a[width + j];
        h[row * width + j] = (1 - z) * a[2 * width + j] + z * before;
      }
    }
  }
  return y;
}

template Var<float> lstm(Var<float>, Var<float>);
template Var<double> lstm(Var<double>, Var<double>);
template Var<float> gru(Var<float>, Var<float>, Var<float>);
template Var<double> gru(Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
