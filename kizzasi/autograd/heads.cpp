#include "kizzasi/autograd/heads.h"

#include <algorithm>

#include "kizzasi/autograd/gradient_sink.h"

namespace kizzasi::autograd {

template <typename T>
Var<T> head_outer(Var<T> a, Var<T> b, std::size_t width) {
  Tape<T>& tape = *a.tape;
  Dims dims = a.dims();
  dims.back() *= width;
  const std::size_t count = a.value().size();
  const Var<T> y = tape.record(dims, {a, b}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[2];
    const std::span<T> ga = gradient_sink(on, a, unwanted[0]), gb = gradient_sink(on, b, unwanted[1]);
    const T *g = on.grad(id).data(), *av = on.value(a.id).data(), *bv = on.value(b.id).data();
    for (std::size_t i = 0; i < count; ++i, g += width) {
      const std::size_t head = i / width * width;
      T sum = 0;
      for (std::size_t j = 0; j < width; ++j) {
        sum += g[j] * bv[head + j];
        gb[head + j] += g[j] * av[i];
      }
      ga[i] += sum;
    }
  });
  T* out = tape.mutable_value(y.id).data();
  const T *av = a.value().data(), *bv = b.value().data();
  for (std::size_t i = 0; i < count; ++i, out += width) {
    for (std::size_t j = 0; j < width; ++j) out[j] = av[i] * bv[i / width * width + j];
  }
  return y;
}

template <typename T>
Var<T> head_contract(Var<T> q, Var<T> m, std::size_t width) {
  Tape<T>& tape = *q.tape;
  const std::size_t count = q.value().size();
  const Var<T> y = tape.record(q.dims(), {q, m}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[2];
    const std::span<T> gq = gradient_sink(on, q, unwanted[0]), gm = gradient_sink(on, m, unwanted[1]);
    const T *g = on.grad(id).data(), *qv = on.value(q.id).data(), *mv = on.value(m.id).data();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t head = i / width * width;
      T sum = 0;
      for (std::size_t j = 0; j < width; ++j) {
        sum += g[head + j] * mv[i * width + j];
        gm[i * width + j] += g[head + j] * qv[i];
      }
      gq[i] += sum;
    }
  });
  T* out = tape.mutable_value(y.id).data();
  const T *qv = q.value().data(), *mv = m.value().data();
  std::fill_n(out, count, T{0});
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < width; ++j) out[i / width * width + j] += qv[i] * mv[i * width + j];
  }
  return y;
}

template Var<float> head_outer(Var<float>, Var<float>, std::size_t);
template Var<double> head_outer(Var<double>, Var<double>, std::size_t);
template Var<float> head_contract(Var<float>, Var<float>, std::size_t);
template Var<double> head_contract(Var<double>, Var<double>, std::size_t);

}  // namespace kizzasi::autograd
