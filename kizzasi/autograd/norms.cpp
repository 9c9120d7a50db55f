#include <cassert>
#include <cmath>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/norms.h"

namespace kizzasi::autograd {

namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}
float dot(std::span<const float> a, std::span<const float> b) { return kernels::dot(a, b); }

template <typename T>
double mean_of(std::span<const T> x) {
  double total = 0;
  for (const T v : x) total += static_cast<double>(v);
  return total / static_cast<double>(x.size());
}

// A gain is read as gain[i mod its size]; none: ones.
template <typename T>
T gain_at(const T* gain, std::size_t i) {
  return gain == nullptr ? T{1} : gain[i];
}

}  // namespace

template <typename T>
Var<T> rms_norm(Var<T> x, Var<T> gain, T epsilon) {
  return rms_norm_groups(x, 1, gain, epsilon);
}

// With r = 1 / sqrt(mean(x^2) + epsilon) of a group of n: dx = r (g dy) - x r^3 / n sum(g dy x), dg = dy x r.
template <typename T>
Var<T> rms_norm_groups(Var<T> x, std::size_t groups, Var<T> gain, T epsilon) {
  Tape<T>& tape = *x.tape;
  const std::size_t width = x.dims().back(), n = width / groups, pieces = x.value().size() / n;
  assert(n * groups == width && (gain.tape == nullptr || gain.value().size() == width));
  const std::size_t inverse = tape.keep(pieces);
  const auto adjoint = [x = x.id, gain, inverse, n, groups, pieces](Tape<T>& t, std::size_t id) {
    const T *g = t.grad(id).data(), *xv = t.value(x).data(), *r = t.value(inverse).data();
    const T* gv = gain.tape != nullptr ? gain.value().data() : nullptr;
    if (const auto to = t.flow(x); !to.grad.empty()) {
      for (std::size_t p = 0; p < pieces; ++p) {
        const std::size_t begin = p * n, column = p % groups * n;
        T* d = to.grad.data() + begin;
        double along = 0;  // sum(g dy x)
        for (std::size_t i = 0; i < n; ++i) along += static_cast<double>(gain_at(gv, column + i) * g[begin + i] * xv[begin + i]);
        const T back = static_cast<T>(along / static_cast<double>(n)) * r[p] * r[p] * r[p];
        for (std::size_t i = 0; i < n; ++i) {
          d[i] = (to.first ? T{0} : d[i]) + r[p] * gain_at(gv, column + i) * g[begin + i] - xv[begin + i] * back;
        }
      }
    }
    if (gv != nullptr && t.wants_gradient(gain.id)) {
      T* to = t.grad(gain.id).data();
      for (std::size_t p = 0; p < pieces; ++p) {
        const std::size_t begin = p * n, column = p % groups * n;
        for (std::size_t i = 0; i < n; ++i) to[column + i] += g[begin + i] * xv[begin + i] * r[p];
      }
    }
  };
  const Var<T> y = tape.record(x.dims(), {x, gain}, adjoint);
  const T *xv = x.value().data(), *gv = gain.tape != nullptr ? gain.value().data() : nullptr;
  T *r = tape.mutable_value(inverse).data(), *out = tape.mutable_value(y.id).data();
  for (std::size_t p = 0; p < pieces; ++p) {
    const std::span<const T> piece = x.value().subspan(p * n, n);
    r[p] = 1 / std::sqrt(dot(piece, piece) / static_cast<T>(n) + epsilon);
    for (std::size_t i = 0; i < n; ++i) out[p * n + i] = gain_at(gv, p % groups * n + i) * (xv[p * n + i] * r[p]);
  }
  return y;
}

// With xhat = (x - mean) r: dx = r (dh - mean(dh) - xhat mean(dh xhat)), dh = gain dy.
template <typename T>
Var<T> layer_norm(Var<T> x, Var<T> gain, Var<T> bias, T epsilon) {
  Tape<T>& tape = *x.tape;
  const std::size_t n = x.dims().back(), rows = x.value().size() / n;
  assert((gain.tape == nullptr || gain.value().size() == n) && (bias.tape == nullptr || bias.value().size() == n));
  const std::size_t normal = tape.keep(x.value().size()), inverse = tape.keep(rows);
  const auto adjoint = [x = x.id, gain, bias, normal, inverse, n, rows](Tape<T>& t, std::size_t id) {
    const T *g = t.grad(id).data(), *h = t.value(normal).data(), *r = t.value(inverse).data();
    const T* gv = gain.tape != nullptr ? gain.value().data() : nullptr;
    if (const auto to = t.flow(x); !to.grad.empty()) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t begin = row * n;
        double mean = 0, along = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const double dh = static_cast<double>(gain_at(gv, i) * g[begin + i]);
          mean += dh;
          along += dh * static_cast<double>(h[begin + i]);
        }
        const T m = static_cast<T>(mean / static_cast<double>(n)), a = static_cast<T>(along / static_cast<double>(n));
        T* d = to.grad.data() + begin;
        for (std::size_t i = 0; i < n; ++i) {
          d[i] = (to.first ? T{0} : d[i]) + r[row] * (gain_at(gv, i) * g[begin + i] - m - h[begin + i] * a);
        }
      }
    }
    if (gv != nullptr && t.wants_gradient(gain.id)) {
      T* to = t.grad(gain.id).data();
      for (std::size_t begin = 0; begin < rows * n; begin += n) {
        for (std::size_t i = 0; i < n; ++i) to[i] += g[begin + i] * h[begin + i];
      }
    }
    if (bias.tape != nullptr && t.wants_gradient(bias.id)) {
      T* to = t.grad(bias.id).data();
      for (std::size_t begin = 0; begin < rows * n; begin += n) {
        for (std::size_t i = 0; i < n; ++i) to[i] += g[begin + i];
      }
    }
  };
  const Var<T> y = tape.record(x.dims(), {x, gain, bias}, adjoint);
  const T* gv = gain.tape != nullptr ? gain.value().data() : nullptr;
  const T* bv = bias.tape != nullptr ? bias.value().data() : nullptr;
  T *h = tape.mutable_value(normal).data(), *r = tape.mutable_value(inverse).data(), *out = tape.mutable_value(y.id).data();
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const T> from = x.value().subspan(row * n, n);
    // In double, so that a large offset does not eat the spread.
    const double mean = mean_of(from);
    double variance = 0;
    for (const T v : from) variance += (static_cast<double>(v) - mean) * (static_cast<double>(v) - mean);
    r[row] = static_cast<T>(1 / std::sqrt(variance / static_cast<double>(n) + static_cast<double>(epsilon)));
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t k = row * n + i;
      h[k] = static_cast<T>(static_cast<double>(from[i]) - mean) * r[row];
      out[k] = gain_at(gv, i) * h[k] + (bv == nullptr ? T{0} : bv[i]);
    }
  }
  return y;
}

template Var<float> rms_norm(Var<float>, Var<float>, float);
template Var<double> rms_norm(Var<double>, Var<double>, double);
template Var<float> rms_norm_groups(Var<float>, std::size_t, Var<float>, float);
template Var<double> rms_norm_groups(Var<double>, std::size_t, Var<double>, double);
template Var<float> layer_norm(Var<float>, Var<float>, Var<float>, float);
template Var<double> layer_norm(Var<double>, Var<double>, Var<double>, double);

}  // namespace kizzasi::autograd
