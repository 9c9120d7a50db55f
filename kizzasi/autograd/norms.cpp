#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

#include "kizzasi/autograd/add_rows.h"
#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

namespace {

// The sum of term(i) for i < n, in double: a row that is small under its epsilon gives back every digit that its norm lost, many times
// over. Eight interleaved sums, one order whatever the machine.
template <typename Term>
double sum_of(std::size_t n, Term term) {
  double partial[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) partial[lane] += term(i + lane);
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) partial[lane] += term(i);
  return ((partial[0] + partial[4]) + (partial[2] + partial[6])) + ((partial[1] + partial[5]) + (partial[3] + partial[7]));
}

template <typename T>
double wide(T value) {
  return static_cast<double>(value);
}

// Of a row: its mean, and 1 / sqrt(variance + epsilon). In double, so that a large offset does not eat the spread.
template <typename T>
std::pair<double, double> mean_and_inverse(const T* from, std::size_t n, T epsilon) {
  const double count = static_cast<double>(n), mean = sum_of(n, [&](std::size_t i) { return wide(from[i]); }) / count;
  const double squares = sum_of(n, [&](std::size_t i) { return (wide(from[i]) - mean) * (wide(from[i]) - mean); });
  return {mean, 1 / std::sqrt(squares / count + wide(epsilon))};
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
        // The two terms cancel along x, so their difference is taken in double.
        const double along = sum_of(n, [&](std::size_t i) { return wide(gain_at(gv, column + i) * g[begin + i]) * wide(xv[begin + i]); });
        const double scale = wide(r[p]), back = along / static_cast<double>(n) * scale * scale * scale;
        for (std::size_t i = 0; i < n; ++i) {
          d[i] =
              (to.first ? T{0} : d[i]) + static_cast<T>(scale * wide(gain_at(gv, column + i) * g[begin + i]) - wide(xv[begin + i]) * back);
        }
      }
    }
    if (gv != nullptr && t.wants_gradient(gain.id)) {
      // Group by group, so that no division stands in the loop.
      for (std::size_t group = 0; group < groups; ++group) {
        add_rows(pieces / groups, t.grad(gain.id).subspan(group * n, n), [=](std::size_t row, std::size_t j) {
          const std::size_t at = (row * groups + group) * n + j;
          return g[at] * xv[at] * r[row * groups + group];
        });
      }
    }
  };
  const Var<T> y = tape.record(x.dims(), {x, gain}, adjoint);
  const T *xv = x.value().data(), *gv = gain.tape != nullptr ? gain.value().data() : nullptr;
  T *r = tape.mutable_value(inverse).data(), *out = tape.mutable_value(y.id).data();
  for (std::size_t p = 0; p < pieces; ++p) {
    const std::span<const T> piece = x.value().subspan(p * n, n);
    const double square = sum_of(n, [&](std::size_t i) { return wide(piece[i]) * wide(piece[i]); });
    r[p] = static_cast<T>(1 / std::sqrt(square / static_cast<double>(n) + wide(epsilon)));
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
  // The normalised row is worked out again in double: rounded to T, it would not cancel what of the gradient lies along it, which is most
  // of it where the spread is small.
  const auto adjoint = [x = x.id, gain, bias, epsilon, n, rows](Tape<T>& t, std::size_t id) {
    const T *g = t.grad(id).data(), *from = t.value(x).data();
    const T* gv = gain.tape != nullptr ? gain.value().data() : nullptr;
    const auto to = t.flow(x);
    std::vector<double> gain_grad(gv != nullptr && t.wants_gradient(gain.id) ? n : 0);
    for (std::size_t row = 0; row < rows && (!to.grad.empty() || !gain_grad.empty()); ++row) {
      const std::size_t begin = row * n;
      const auto [mean, r] = mean_and_inverse(from + begin, n, epsilon);
      const auto h = [&](std::size_t i) { return (wide(from[begin + i]) - mean) * r; };
      for (std::size_t i = 0; i < gain_grad.size(); ++i) gain_grad[i] += wide(g[begin + i]) * h(i);
      if (to.grad.empty()) continue;
      const auto dh = [&](std::size_t i) { return wide(gain_at(gv, i) * g[begin + i]); };
      const double m = sum_of(n, dh) / static_cast<double>(n);
      const double along = sum_of(n, [&](std::size_t i) { return dh(i) * h(i); }) / static_cast<double>(n);
      T* d = to.grad.data() + begin;
      for (std::size_t i = 0; i < n; ++i) d[i] = (to.first ? T{0} : d[i]) + static_cast<T>(r * (dh(i) - m - h(i) * along));
    }
    for (std::size_t i = 0; i < gain_grad.size(); ++i) t.grad(gain.id)[i] += static_cast<T>(gain_grad[i]);
    if (bias.tape != nullptr && t.wants_gradient(bias.id)) {
      add_rows(rows, t.grad(bias.id), [=](std::size_t row, std::size_t i) { return g[row * n + i]; });
    }
  };
  const Var<T> y = tape.record(x.dims(), {x, gain, bias}, adjoint);
  const T* gv = gain.tape != nullptr ? gain.value().data() : nullptr;
  const T* bv = bias.tape != nullptr ? bias.value().data() : nullptr;
  T* out = tape.mutable_value(y.id).data();
  for (std::size_t row = 0; row < rows; ++row) {
    const T* from = x.value().data() + row * n;
    const auto [mean, r] = mean_and_inverse(from, n, epsilon);
    for (std::size_t i = 0; i < n; ++i) {
      out[row * n + i] = gain_at(gv, i) * static_cast<T>((wide(from[i]) - mean) * r) + (bv == nullptr ? T{0} : bv[i]);
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
