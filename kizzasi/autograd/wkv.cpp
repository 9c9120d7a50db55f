#include "kizzasi/autograd/wkv.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/wkv4.h"

namespace kizzasi::autograd {
namespace {

// Pointers to one sequence, rows of `channels` numbers; gradients are added to.
template <typename T>
struct Sequence {
  const T *k, *v, *w, *u;
  std::size_t time, channels;
};
template <typename T>
struct Gradients {
  T *k, *v, *w, *u;
};

void forward(const Sequence<float>& in, float* y) {
  std::vector<float> aa(in.channels), bb(in.channels), pp(in.channels, -1e30f);
  kernels::wkv4({{in.w, in.channels}, {in.u, in.channels}}, {in.k, in.time, in.channels}, {in.v, in.time, in.channels}, {aa, bb, pp},
                {y, in.time, in.channels});
}

void backward(const Sequence<float>& in, const float* gy, const Gradients<float>& to) {
  kernels::wkv4_backward({{in.w, in.channels}, {in.u, in.channels}}, {in.k, in.time, in.channels}, {in.v, in.time, in.channels},
                         {gy, in.time, in.channels}, {to.k, in.time, in.channels}, {to.v, in.time, in.channels}, {to.w, in.channels},
                         {to.u, in.channels});
}

// In double as the definition says, without the running exponent: e^k fits for |k| up to 700.
struct Sums {
  double a = 0, b = 0;
};

void forward(const Sequence<double>& in, double* y) {
  std::vector<Sums> sums(in.channels);
  for (std::size_t i = 0; i < in.time * in.channels; ++i) {
    const std::size_t c = i % in.channels;
    const double now = std::exp(in.u[c] + in.k[i]), comes = std::exp(in.k[i]), stays = std::exp(in.w[c]);
    y[i] = (sums[c].a + now * in.v[i]) / (sums[c].b + now);
    sums[c] = {stays * sums[c].a + comes * in.v[i], stays * sums[c].b + comes};
  }
}

void backward(const Sequence<double>& in, const double* gy, const Gradients<double>& to) {
  const std::size_t size = in.time * in.channels;
  std::vector<Sums> before(size + in.channels);
  for (std::size_t i = 0; i < size; ++i) {
    const double comes = std::exp(in.k[i]), stays = std::exp(in.w[i % in.channels]);
    before[i + in.channels] = {stays * before[i].a + comes * in.v[i], stays * before[i].b + comes};
  }
  std::vector<Sums> after(in.channels);  // gradients with respect to the sums after row t
  for (std::size_t i = size; i-- > 0;) {
    const std::size_t c = i % in.channels;
    const double now = std::exp(in.u[c] + in.k[i]), comes = std::exp(in.k[i]), stays = std::exp(in.w[c]);
    const double below = before[i].b + now, y = (before[i].a + now * in.v[i]) / below, share = gy[i] / below;
    const double bonus = share * now * (in.v[i] - y);
    to.k[i] += comes * (in.v[i] * after[c].a + after[c].b) + bonus;
    to.v[i] += comes * after[c].a + share * now;
    to.u[c] += bonus;
    to.w[c] += stays * (before[i].a * after[c].a + before[i].b * after[c].b);
    after[c] = {stays * after[c].a + share, stays * after[c].b - share * y};
  }
}

}  // namespace

template <typename T>
Var<T> wkv4(Var<T> k, Var<T> v, Var<T> w, Var<T> u) {
  Tape<T>& tape = *k.tape;
  const Dims dims = k.dims();
  const std::size_t batch = dims[0], time = dims[1], channels = dims[2], block = time * channels;
  const auto sequence = [=](std::size_t i) {
    return Sequence<T>{k.value().data() + i, v.value().data() + i, w.value().data(), u.value().data(), time, channels};
  };
  const Var<T> y = tape.record(dims, {k, v, w, u}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> no_k, no_v, no_w, no_u;
    const std::span<T> gk = gradient_sink(on, k, no_k), gv = gradient_sink(on, v, no_v);
    const std::span<T> gw = gradient_sink(on, w, no_w), gu = gradient_sink(on, u, no_u);
    for (std::size_t i = 0; i < batch * block; i += block) {
      backward(sequence(i), on.grad(id).data() + i, {gk.data() + i, gv.data() + i, gw.data(), gu.data()});
    }
  });
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t i = 0; i < batch * block; i += block) forward(sequence(i), out + i);
  return y;
}

template <typename T>
Var<T> shifted(Var<T> x) {
  const Dims dims = x.dims();
  const std::vector<T> zeros(dims[0] * dims[2]);
  const Var<T> first = x.tape->constant({dims[0], 1, dims[2]}, zeros);
  if (dims[1] == 1) return first;
  const std::array<Var<T>, 2> parts{first, slice(x, 1, 0, dims[1] - 1)};
  return concat(std::span<const Var<T>>(parts), 1);
}

template <typename T>
Var<T> decay_of(Var<T> x) {
  Tape<T>& tape = *x.tape;
  const Var<T> y = tape.record(x.dims(), {x}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted;
    const std::span<T> gx = gradient_sink(on, x, unwanted);
    for (std::size_t i = 0; i < gx.size(); ++i) {
      const double rate = std::exp(static_cast<double>(on.value(x.id)[i]));
      gx[i] -= static_cast<T>(static_cast<double>(on.grad(id)[i]) * rate * std::exp(-rate));
    }
  });
  const std::span<const T> from = x.value();
  std::transform(from.begin(), from.end(), tape.mutable_value(y.id).begin(),
                 [](T v) { return static_cast<T>(std::exp(-std::exp(static_cast<double>(v)))); });
  return y;
}

template Var<float> decay_of(Var<float>);
template Var<double> decay_of(Var<double>);
template Var<float> wkv4(Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> wkv4(Var<double>, Var<double>, Var<double>, Var<double>);
template Var<float> shifted(Var<float>);
template Var<double> shifted(Var<double>);

}  // namespace kizzasi::autograd
