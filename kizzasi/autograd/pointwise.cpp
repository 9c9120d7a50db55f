#include "kizzasi/autograd/pointwise.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kizzasi::autograd {
namespace {

double sigmoid_of(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus_of(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// out[i] = f(x[i]), f and its derivative d functions of double.
template <typename T, typename F, typename D>
Var<T> pointwise(Var<T> x, F f, D d) {
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, d](Tape<T>& tape, std::size_t id) {
    const T *g = tape.grad(id).data(), *xv = tape.value(x).data();
    tape.add_to_grad(x, [=](std::size_t i) { return static_cast<T>(static_cast<double>(g[i]) * d(static_cast<double>(xv[i]))); });
  });
  const std::span<T> out = x.tape->mutable_value(y.id);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<T>(f(static_cast<double>(x.value()[i])));
  return y;
}

// NaN passes through.
template <typename T>
Var<T> held(Var<T> x, double low, double high) {
  return pointwise<T>(
      x, [=](double v) { return v < low    ? low
                                : v > high ? high
                                           : v; }, [=](double v) { return v > low && v < high ? 1.0 : 0.0; });
}

constexpr double kSelu = 1.0507009873554804934193349852946, kSeluBelow = 1.6732632423543772848170429916717;

}  // namespace

template <typename T>
Var<T> expm1(Var<T> x) {
  return pointwise<T>(x, [](double v) { return std::expm1(v); }, [](double v) { return std::exp(v); });
}

template <typename T>
Var<T> erf(Var<T> x) {
  return pointwise<T>(x, [](double v) { return std::erf(v); }, [](double v) { return 2 * std::numbers::inv_sqrtpi * std::exp(-v * v); });
}

template <typename T>
Var<T> leaky_relu(Var<T> x, T slope) {
  const double below = static_cast<double>(slope);
  return pointwise<T>(x, [below](double v) { return v > 0 ? v : below * v; }, [below](double v) { return v > 0 ? 1 : below; });
}

template <typename T>
Var<T> elu(Var<T> x) {
  return pointwise<T>(x, [](double v) { return v > 0 ? v : std::expm1(v); }, [](double v) { return v > 0 ? 1 : std::exp(v); });
}

template <typename T>
Var<T> selu(Var<T> x) {
  return pointwise<T>(
      x, [](double v) { return kSelu * (v > 0 ? v : kSeluBelow * std::expm1(v)); },
      [](double v) { return kSelu * (v > 0 ? 1 : kSeluBelow * std::exp(v)); });
}

template <typename T>
Var<T> mish(Var<T> x) {
  return pointwise<T>(
      x, [](double v) { return v * std::tanh(softplus_of(v)); },
      [](double v) {
        const double gate = std::tanh(softplus_of(v));
        const double slope = (1 - gate) * (1 + gate) * sigmoid_of(v);
        return gate + (slope == 0 ? 0 : v * slope);
      });
}

template <typename T>
Var<T> softplus(Var<T> x, T beta, T threshold) {
  const double b = static_cast<double>(beta), from = static_cast<double>(threshold);
  return pointwise<T>(
      x, [=](double v) { return b * v > from ? v : softplus_of(b * v) / b; },
      [=](double v) { return b * v > from ? 1 : sigmoid_of(b * v); });
}

template <typename T>
Var<T> log_sigmoid(Var<T> x) {
  return pointwise<T>(x, [](double v) { return -softplus_of(-v); }, [](double v) { return sigmoid_of(-v); });
}

template <typename T>
Var<T> softsign(Var<T> x) {
  return pointwise<T>(
      x, [](double v) { return v / (1 + std::abs(v)); }, [](double v) { return 1 / ((1 + std::abs(v)) * (1 + std::abs(v))); });
}

template <typename T>
Var<T> relu6(Var<T> x) {
  return held(x, 0, 6);
}

template <typename T>
Var<T> hard_tanh(Var<T> x) {
  return held(x, -1, 1);
}

template <typename T>
Var<T> hard_sigmoid(Var<T> x) {
  return pointwise<T>(
      x, [](double v) { return v <= -3  ? 0
                               : v >= 3 ? 1
                                        : v / 6 + 0.5; }, [](double v) { return v > -3 && v < 3 ? 1.0 / 6 : 0.0; });
}

template <typename T>
Var<T> hard_swish(Var<T> x) {
  return pointwise<T>(
      x, [](double v) { return v <= -3  ? 0
                               : v >= 3 ? v
                                        : v * (v + 3) / 6; },
      [](double v) { return v <= -3  ? 0
                            : v >= 3 ? 1
                                     : v / 3 + 0.5; });
}

template <typename T>
Var<T> quick_gelu(Var<T> x) {
  constexpr double kSharpness = 1.702;
  return pointwise<T>(
      x, [](double v) { return v * sigmoid_of(kSharpness * v); },
      [](double v) {
        const double open = sigmoid_of(kSharpness * v), shut = sigmoid_of(-kSharpness * v);
        const double slope = kSharpness * open * shut;
        return open + (slope == 0 ? 0 : v * slope);
      });
}

template <typename T>
Var<T> relu_squared(Var<T> x) {
  return pointwise<T>(x, [](double v) { return v > 0 ? v * v : 0 * v; }, [](double v) { return v > 0 ? 2 * v : 0; });
}

template <typename T>
Var<T> log_softmax(Var<T> x) {
  const std::size_t width = x.dims().back();
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, width](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    const T *g = tape.grad(id).data(), *yv = tape.value(id).data();
    for (std::size_t begin = 0; begin < to.grad.size(); begin += width) {
      double total = 0;
      for (std::size_t i = begin; i < begin + width; ++i) total += static_cast<double>(g[i]);
      for (std::size_t i = begin; i < begin + width; ++i) {
        const double d = static_cast<double>(g[i]) - std::exp(static_cast<double>(yv[i])) * total;
        to.grad[i] = (to.first ? T{0} : to.grad[i]) + static_cast<T>(d);
      }
    }
  });
  const std::span<T> out = x.tape->mutable_value(y.id);
  for (std::size_t begin = 0; begin < out.size(); begin += width) {
    const std::span<const T> from = x.value().subspan(begin, width);
    const double highest = static_cast<double>(*std::max_element(from.begin(), from.end()));
    double total = 0;
    for (const T v : from) total += std::exp(static_cast<double>(v) - highest);
    for (std::size_t i = 0; i < width; ++i) out[begin + i] = static_cast<T>(static_cast<double>(from[i]) - highest - std::log(total));
  }
  return y;
}

// With s_i = g_i + e^(y_i - y_(i+1)) s_(i+1) from the end: dx_i = e^(x_i - y_i) s_i. No exponent is above 0.
template <typename T>
Var<T> cumulative_log_sum_exp(Var<T> x) {
  const std::size_t width = x.dims().back();
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, width](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    const T *g = tape.grad(id).data(), *yv = tape.value(id).data(), *xv = tape.value(x).data();
    const auto apart = [](T a, T b) { return std::exp(static_cast<double>(a) - static_cast<double>(b)); };
    for (std::size_t begin = 0; begin < to.grad.size(); begin += width) {
      double s = 0;
      for (std::size_t i = begin + width; i-- > begin;) {
        s = static_cast<double>(g[i]) + (i + 1 < begin + width ? apart(yv[i], yv[i + 1]) * s : 0);
        to.grad[i] = (to.first ? T{0} : to.grad[i]) + static_cast<T>(apart(xv[i], yv[i]) * s);
      }
    }
  });
  const std::span<T> out = x.tape->mutable_value(y.id);
  for (std::size_t begin = 0; begin < out.size(); begin += width) {
    double sum = static_cast<double>(x.value()[begin]);
    out[begin] = static_cast<T>(sum);
    for (std::size_t i = begin + 1; i < begin + width; ++i) {
      const double v = static_cast<double>(x.value()[i]), high = std::max(sum, v), low = std::min(sum, v);
      sum = high + std::log1p(std::exp(low - high));
      out[i] = static_cast<T>(sum);
    }
  }
  return y;
}

#define KIZZASI_POINTWISE(T)              \
  template Var<T> expm1(Var<T>);          \
  template Var<T> erf(Var<T>);            \
  template Var<T> leaky_relu(Var<T>, T);  \
  template Var<T> elu(Var<T>);            \
  template Var<T> selu(Var<T>);           \
  template Var<T> mish(Var<T>);           \
  template Var<T> softplus(Var<T>, T, T); \
  template Var<T> log_sigmoid(Var<T>);    \
  template Var<T> softsign(Var<T>);       \
  template Var<T> relu6(Var<T>);          \
  template Var<T> hard_tanh(Var<T>);      \
  template Var<T> hard_sigmoid(Var<T>);   \
  template Var<T> hard_swish(Var<T>);     \
  template Var<T> quick_gelu(Var<T>);     \
  template Var<T> relu_squared(Var<T>);   \
  template Var<T> log_softmax(Var<T>);    \
  template Var<T> cumulative_log_sum_exp(Var<T>);
KIZZASI_POINTWISE(float)
KIZZASI_POINTWISE(double)
#undef KIZZASI_POINTWISE

}  // namespace kizzasi::autograd
