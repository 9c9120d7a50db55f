#include <algorithm>
#include <cassert>
#include <cmath>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

namespace {

// b repeats over a: b is one element, has the dims of a, or those of a trailing part of a.
[[maybe_unused]] bool repeats_over(const Dims& a, const Dims& b) {
  if (elements(b) == 1) return true;
  return b.size() <= a.size() && std::equal(b.begin(), b.end(), a.end() - static_cast<std::ptrdiff_t>(b.size()));
}

// out[i] = f(a[i], b[i mod period]); da, db: the partial derivatives as functions of (a, b).
template <typename T, typename F, typename Da, typename Db>
Var<T> binary(Var<T> a, Var<T> b, F f, Da da, Db db) {
  assert(repeats_over(a.dims(), b.dims()));
  const Var<T> y = a.tape->record(a.dims(), {a, b}, [a = a.id, b = b.id, da, db](Tape<T>& tape, std::size_t id) {
    const T* g = tape.grad(id).data();
    const T *av = tape.value(a).data(), *bv = tape.value(b).data();
    const std::size_t count = tape.value(a).size(), period = tape.value(b).size();
    if (period == count) {
      tape.add_to_grad(a, [=](std::size_t i) { return g[i] * da(av[i], bv[i]); });
      tape.add_to_grad(b, [=](std::size_t i) { return g[i] * db(av[i], bv[i]); });
    } else if (period == 1) {
      tape.add_to_grad(a, [=, bi = bv[0]](std::size_t i) { return g[i] * da(av[i], bi); });
      if (!tape.wants_gradient(b)) return;
      double total = 0;
      for (std::size_t i = 0; i < count; ++i) total += static_cast<double>(g[i] * db(av[i], bv[0]));
      tape.grad(b)[0] += static_cast<T>(total);
    } else {
      const auto to = tape.flow(a);
      for (std::size_t begin = 0; begin < to.grad.size(); begin += period) {
        T* d = to.grad.data() + begin;
        for (std::size_t j = 0; j < period; ++j) d[j] = (to.first ? T{0} : d[j]) + g[begin + j] * da(av[begin + j], bv[j]);
      }
      if (!tape.wants_gradient(b)) return;
      add_rows(count / period, tape.grad(b),
               [=](std::size_t row, std::size_t j) { return g[row * period + j] * db(av[row * period + j], bv[j]); });
    }
  });
  T* out = a.tape->mutable_value(y.id).data();
  const T *av = a.value().data(), *bv = b.value().data();
  const std::size_t count = a.value().size(), period = b.value().size();
  if (period == 1) {
    for (std::size_t i = 0; i < count; ++i) out[i] = f(av[i], bv[0]);
  } else {
    for (std::size_t begin = 0; begin < count; begin += period) {
      for (std::size_t j = 0; j < period; ++j) out[begin + j] = f(av[begin + j], bv[j]);
    }
  }
  return y;
}

// out[i] = f(x[i]); derivative: of (x, y).
template <typename T, typename F, typename D>
Var<T> unary(Var<T> x, F f, D derivative) {
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, derivative](Tape<T>& tape, std::size_t id) {
    const T *g = tape.grad(id).data(), *xv = tape.value(x).data(), *yv = tape.value(id).data();
    tape.add_to_grad(x, [=](std::size_t i) { return g[i] * derivative(xv[i], yv[i]); });
  });
  T* out = x.tape->mutable_value(y.id).data();
  const T* xv = x.value().data();
  for (std::size_t i = 0; i < x.value().size(); ++i) out[i] = f(xv[i]);
  return y;
}

}  // namespace

template <typename T>
Var<T> add(Var<T> a, Var<T> b) {
  return binary<T>(a, b, [](T p, T q) { return p + q; }, [](T, T) { return T{1}; }, [](T, T) { return T{1}; });
}

template <typename T>
Var<T> sub(Var<T> a, Var<T> b) {
  return binary<T>(a, b, [](T p, T q) { return p - q; }, [](T, T) { return T{1}; }, [](T, T) { return T{-1}; });
}

template <typename T>
Var<T> mul(Var<T> a, Var<T> b) {
  return binary<T>(a, b, [](T p, T q) { return p * q; }, [](T, T q) { return q; }, [](T p, T) { return p; });
}

template <typename T>
Var<T> div(Var<T> a, Var<T> b) {
  return binary<T>(a, b, [](T p, T q) { return p / q; }, [](T, T q) { return T{1} / q; }, [](T p, T q) { return -(p / q) / q; });
}

template <typename T>
Var<T> scale(Var<T> a, T factor) {
  return unary<T>(a, [factor](T v) { return v * factor; }, [factor](T, T) { return factor; });
}

template <typename T>
Var<T> add_scalar(Var<T> a, T term) {
  return unary<T>(a, [term](T v) { return v + term; }, [](T, T) { return T{1}; });
}

template <typename T>
Var<T> log(Var<T> x) {
  return unary<T>(x, [](T v) { return std::log(v); }, [](T v, T) { return T{1} / v; });
}

template <typename T>
Var<T> sqrt(Var<T> x) {
  return unary<T>(x, [](T v) { return std::sqrt(v); }, [](T, T y) { return T{0.5} / y; });
}

template <typename T>
Var<T> sin(Var<T> x) {
  return unary<T>(x, [](T v) { return std::sin(v); }, [](T v, T) { return std::cos(v); });
}

template <typename T>
Var<T> cos(Var<T> x) {
  return unary<T>(x, [](T v) { return std::cos(v); }, [](T v, T) { return -std::sin(v); });
}

template <typename T>
Var<T> square(Var<T> x) {
  return unary<T>(x, [](T v) { return v * v; }, [](T v, T) { return 2 * v; });
}

template <typename T>
Var<T> abs(Var<T> x) {
  return unary<T>(x, [](T v) { return std::abs(v); }, [](T v, T) { return static_cast<T>((v > 0) - (v < 0)); });
}

template <typename T>
Var<T> clamp(Var<T> x, T low, T high) {
  // NaN passes through, to be seen.
  return unary<T>(
      x, [low, high](T v) { return v < low ? low : (v > high ? high : v); },
      [low, high](T v, T) { return static_cast<T>(v >= low && v <= high); });
}

template <typename T>
Var<T> scale_rows(Var<T> x, Var<T> s) {
  Tape<T>& tape = *x.tape;
  const std::size_t rows = s.value().size(), n = x.value().size() / std::max<std::size_t>(rows, 1);
  assert(rows * n == x.value().size());
  const Var<T> y = tape.record(x.dims(), {x, s}, [x = x.id, s = s.id, n](Tape<T>& on, std::size_t id) {
    const T *g = on.grad(id).data(), *xv = on.value(x).data(), *sv = on.value(s).data();
    on.add_to_grad(x, [=](std::size_t i) { return g[i] * sv[i / n]; });
    on.add_to_grad(s, [=](std::size_t row) {
      double sum = 0;
      for (std::size_t i = row * n; i < (row + 1) * n; ++i) sum += static_cast<double>(g[i] * xv[i]);
      return static_cast<T>(sum);
    });
  });
  T* out = tape.mutable_value(y.id).data();
  const T *xv = x.value().data(), *sv = s.value().data();
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = row * n; i < (row + 1) * n; ++i) out[i] = sv[row] * xv[i];
  }
  return y;
}

template Var<float> scale_rows(Var<float>, Var<float>);
template Var<double> scale_rows(Var<double>, Var<double>);
template Var<float> add(Var<float>, Var<float>);
template Var<double> add(Var<double>, Var<double>);
template Var<float> sub(Var<float>, Var<float>);
template Var<double> sub(Var<double>, Var<double>);
template Var<float> mul(Var<float>, Var<float>);
template Var<double> mul(Var<double>, Var<double>);
template Var<float> div(Var<float>, Var<float>);
template Var<double> div(Var<double>, Var<double>);
template Var<float> scale(Var<float>, float);
template Var<double> scale(Var<double>, double);
template Var<float> add_scalar(Var<float>, float);
template Var<double> add_scalar(Var<double>, double);
template Var<float> log(Var<float>);
template Var<double> log(Var<double>);
template Var<float> sqrt(Var<float>);
template Var<double> sqrt(Var<double>);
template Var<float> sin(Var<float>);
template Var<double> sin(Var<double>);
template Var<float> cos(Var<float>);
template Var<double> cos(Var<double>);
template Var<float> square(Var<float>);
template Var<double> square(Var<double>);
template Var<float> abs(Var<float>);
template Var<double> abs(Var<double>);
template Var<float> clamp(Var<float>, float low, float high);
template Var<double> clamp(Var<double>, double low, double high);

}  // namespace kizzasi::autograd
