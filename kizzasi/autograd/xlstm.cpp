#include "kizzasi/autograd/xlstm.h"

#include <algorithm>
#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"
#include "kizzasi/autograd/product.h"

namespace kizzasi::autograd {
namespace {

using kernels::BasicMatrix;
using kernels::Transpose;

template <typename T>
T sigmoid_of(T x) {
  const T e = std::exp(-std::abs(x));
  return (x >= 0 ? T{1} : e) / (1 + e);
}
// log sigmoid(x), of which nothing vanishes.
template <typename T>
T log_sigmoid(T x) {
  return std::min(x, T{0}) - std::log1p(std::exp(-std::abs(x)));
}

// Column block `head` of a row of `gates` D numbers, (4, P), as heads see it: gate g of the head at g D + head P.
struct Sizes {
  std::size_t batch, time, heads, width, d;
  std::size_t row(std::size_t b, std::size_t t) const { return b * time + t; }
};

// raw[b][g P + p] = sum_q r[head][g P + p][q] h[b][head P + q] for one head, all sequences.
template <typename T>
void recurrence(const Sizes& s, const T* r, std::size_t head, BasicMatrix<const T> h, std::vector<T>& raw) {
  product(Transpose::kNo, h.columns(head * s.width, s.width), Transpose::kYes,
          BasicMatrix<const T>(r + head * 4 * s.width * s.width, 4 * s.width, s.width), BasicMatrix<T>(raw.data(), s.batch, 4 * s.width),
          false);
}

}  // namespace

template <typename T>
Var<T> log_max_scan(Var<T> decay, Var<T> in) {
  Tape<T>& tape = *in.tape;
  const Dims dims = in.dims();
  const std::size_t batch = dims[0], time = dims[1], width = dims[2];
  const Var<T> y = tape.record(dims, {decay, in}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> no_decay, no_in, carry(width);
    const std::span<T> to_decay = gradient_sink(on, decay, no_decay), to_in = gradient_sink(on, in, no_in);
    for (std::size_t b = 0; b < batch; ++b) {
      std::fill(carry.begin(), carry.end(), T{0});
      for (std::size_t t = time; t-- > 0;) {
        for (std::size_t j = 0; j < width; ++j) {
          const std::size_t at = (b * time + t) * width + j;
          const T g = on.grad(id)[at] + carry[j];
          const bool entered = on.value(id)[at] == on.value(in.id)[at];
          (entered ? to_in : to_decay)[at] += g;
          carry[j] = entered ? T{0} : g;
        }
      }
    }
  });
  const std::span<T> m = tape.mutable_value(y.id);
  for (std::size_t i = 0; i < m.size(); ++i) {
    const T before = i / width % time == 0 ? T{0} : m[i - width];
    m[i] = std::max(before + decay.value()[i], in.value()[i]);
  }
  return y;
}

template <typename T>
Var<T> slstm(Var<T> x, Var<T> r) {
  Tape<T>& tape = *x.tape;
  const Sizes s{x.dims()[0], x.dims()[1], r.dims()[0], r.dims()[2], r.dims()[0] * r.dims()[2]};
  // Of every step: i', f', tanh(z), sigmoid(o); c; n; and sigmoid(-f), what f' changes with f by.
  const std::size_t gates = tape.keep(s.batch * s.time * 4 * s.d), cells = tape.keep(s.batch * s.time * s.d);
  const std::size_t norms = tape.keep(s.batch * s.time * s.d), slopes = tape.keep(s.batch * s.time * s.d);
  // c / n does not depend on m, so m is a constant to the adjoint.
  const Var<T> y = tape.record({s.batch, s.time, s.d}, {x, r}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> no_x, no_r;
    const std::span<T> gx = gradient_sink(on, x, no_x), gr = gradient_sink(on, r, no_r);
    const T *a = on.value(gates).data(), *c = on.value(cells).data(), *n = on.value(norms).data(), *slope = on.value(slopes).data();
    const T *h = on.value(id).data(), *gy = on.grad(id).data();
    std::vector<T> gh(s.batch * s.d), gc(s.batch * s.d), gn(s.batch * s.d), pre(s.batch * 4 * s.width), back(s.batch * s.width);
    std::vector<T> raw(s.batch * 4 * s.d);
    for (std::size_t t = s.time; t-- > 0;) {
      for (std::size_t b = 0; b < s.batch; ++b) {
        const std::size_t row = s.row(b, t);
        for (std::size_t j = 0; j < s.d; ++j) {
          const std::size_t at = row * s.d + j, to = b * s.d + j;
          const T in = a[row * 4 * s.d + j], keep = a[row * 4 * s.d + s.d + j];
          const T z = a[row * 4 * s.d + 2 * s.d + j], o = a[row * 4 * s.d + 3 * s.d + j];
          const T before_c = t > 0 ? c[at - s.d] : T{0}, before_n = t > 0 ? n[at - s.d] : T{0};
          const T dh = gy[at] + gh[to], ratio = c[at] / n[at];
          const T dc = gc[to] + dh * o / n[at], dn = gn[to] - dh * o * ratio / n[at];
          raw[b * 4 * s.d + j] = (dc * z + dn) * in;
          raw[b * 4 * s.d + s.d + j] = (dc * before_c + dn * before_n) * keep * slope[at];
          raw[b * 4 * s.d + 2 * s.d + j] = dc * in * (1 - z * z);
          raw[b * 4 * s.d + 3 * s.d + j] = dh * ratio * o * (1 - o);
          gc[to] = dc * keep;
          gn[to] = dn * keep;
        }
        for (std::size_t j = 0; j < 4 * s.d; ++j) gx[row * 4 * s.d + j] += raw[b * 4 * s.d + j];
      }
      if (t == 0) break;
      for (std::size_t head = 0; head < s.heads; ++head) {
        for (std::size_t b = 0; b < s.batch; ++b) {
          for (std::size_t g = 0; g < 4; ++g) {
            const T* from = raw.data() + b * 4 * s.d + g * s.d + head * s.width;
            std::copy_n(from, s.width, pre.data() + (b * 4 + g) * s.width);
          }
        }
        const BasicMatrix<const T> by(pre.data(), s.batch, 4 * s.width);
        const BasicMatrix<const T> last(h + (t - 1) * s.d + head * s.width, s.batch, s.width, s.time * s.d);
        const std::size_t matrix = head * 4 * s.width * s.width;
        product(Transpose::kNo, by, Transpose::kNo, BasicMatrix<const T>(on.value(r.id).data() + matrix, 4 * s.width, s.width),
                BasicMatrix<T>(back.data(), s.batch, s.width), false);
        for (std::size_t b = 0; b < s.batch; ++b) {
          std::copy_n(back.data() + b * s.width, s.width, gh.data() + b * s.d + head * s.width);
        }
        product(Transpose::kYes, by, Transpose::kNo, last, BasicMatrix<T>(gr.data() + matrix, 4 * s.width, s.width), true);
      }
    }
  });
  T *h = tape.mutable_value(y.id).data(), *a = tape.mutable_value(gates).data(), *c = tape.mutable_value(cells).data();
  T *n = tape.mutable_value(norms).data(), *slope = tape.mutable_value(slopes).data();
  std::vector<T> m(s.batch * s.d), inside(s.batch * 4 * s.width);
  std::copy(x.value().begin(), x.value().end(), a);
  for (std::size_t t = 0; t < s.time; ++t) {
    for (std::size_t head = 0; head < s.heads && t > 0; ++head) {
      recurrence<T>(s, r.value().data(), head, BasicMatrix<const T>(h + (t - 1) * s.d, s.batch, s.d, s.time * s.d), inside);
      for (std::size_t b = 0; b < s.batch; ++b) {
        for (std::size_t j = 0; j < 4 * s.width; ++j) {
          a[s.row(b, t) * 4 * s.d + j / s.width * s.d + head * s.width + j % s.width] += inside[b * 4 * s.width + j];
        }
      }
    }
    for (std::size_t b = 0; b < s.batch; ++b) {
      const std::size_t row = s.row(b, t);
      T* g = a + row * 4 * s.d;
      for (std::size_t j = 0; j < s.d; ++j) {
        const std::size_t at = row * s.d + j;
        const T in = g[j], kept = log_sigmoid(g[s.d + j]) + m[b * s.d + j];
        const T most = t == 0 ? in : std::max(in, kept);
        slope[at] = sigmoid_of(-g[s.d + j]);
        g[j] = std::exp(in - most);
        g[s.d + j] = t == 0 ? T{0} : std::exp(kept - most);
        g[2 * s.d + j] = std::tanh(g[2 * s.d + j]);
        g[3 * s.d + j] = sigmoid_of(g[3 * s.d + j]);
        m[b * s.d + j] = most;
        c[at] = (t > 0 ? g[s.d + j] * c[at - s.d] : T{0}) + g[j] * g[2 * s.d + j];
        n[at] = (t > 0 ? g[s.d + j] * n[at - s.d] : T{0}) + g[j];
        h[at] = g[3 * s.d + j] * c[at] / n[at];
      }
    }
  }
  return y;
}

template Var<float> log_max_scan(Var<float>, Var<float>);
template Var<double> log_max_scan(Var<double>, Var<double>);
template Var<float> slstm(Var<float>, Var<float>);
template Var<double> slstm(Var<double>, Var<double>);

}  // namespace kizzasi::autograd
