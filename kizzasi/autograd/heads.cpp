#include "kizzasi/autograd/heads.h"

#include <algorithm>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/product.h"

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

template <typename T>
Var<T> headwise_linear(Var<T> x, Var<T> w) {
  using kernels::BasicMatrix, kernels::Transpose;
  const std::size_t heads = w.dims()[0], width = w.dims()[2], d = heads * width, rows = x.value().size() / d;
  const auto head_of = [=](auto* all, std::size_t h) { return BasicMatrix(all + h * width, rows, width, d); };
  const auto matrix_of = [=](auto* all, std::size_t h) { return BasicMatrix(all + h * width * width, width, width); };
  const Var<T> y = x.tape->record(x.dims(), {x, w}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[2];
    const std::span<T> gx = gradient_sink(on, x, unwanted[0]), gw = gradient_sink(on, w, unwanted[1]);
    const T *g = on.grad(id).data(), *xv = on.value(x.id).data(), *wv = on.value(w.id).data();
    for (std::size_t h = 0; h < heads; ++h) {
      product(Transpose::kNo, head_of(g, h), Transpose::kNo, matrix_of(wv, h), head_of(gx.data(), h), true);
      product(Transpose::kYes, head_of(g, h), Transpose::kNo, head_of(xv, h), matrix_of(gw.data(), h), true);
    }
  });
  T* out = x.tape->mutable_value(y.id).data();
  const T *xv = x.value().data(), *wv = w.value().data();
  for (std::size_t h = 0; h < heads; ++h) {
    product(Transpose::kNo, head_of(xv, h), Transpose::kYes, matrix_of(wv, h), head_of(out, h), false);
  }
  return y;
}

template Var<float> headwise_linear(Var<float>, Var<float>);
template Var<double> headwise_linear(Var<double>, Var<double>);
template Var<float> head_outer(Var<float>, Var<float>, std::size_t);
template Var<double> head_outer(Var<double>, Var<double>, std::size_t);
template Var<float> head_contract(Var<float>, Var<float>, std::size_t);
template Var<double> head_contract(Var<double>, Var<double>, std::size_t);

}  // namespace kizzasi::autograd
