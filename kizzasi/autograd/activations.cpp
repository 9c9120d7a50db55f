#include "kizzasi/kernels/activations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include "kizzasi/autograd/ops.h"

namespace kizzasi::autograd {

namespace {

// Values in f64 come from the standard library, in f32 from the kernels that step and run use.
double sigmoid_of(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double gelu_of(double x) { return x * 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double softplus_of(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

using KernelFunction = void (*)(std::span<const float>, std::span<float>) noexcept;

void apply(double (*plain)(double), KernelFunction, std::span<const double> x, std::span<double> out) {
  std::transform(x.begin(), x.end(), out.begin(), plain);
}
void apply(double (*)(double), KernelFunction kernel, std::span<const float> x, std::span<float> out) { kernel(x, out); }

// derivative: of (x, y).
template <typename T, typename D>
Var<T> activation(Var<T> x, double (*plain)(double), KernelFunction kernel, D derivative) {
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, derivative](Tape<T>& tape, std::size_t id) {
    const T *g = tape.grad(id).data(), *xv = tape.value(x).data(), *yv = tape.value(id).data();
    tape.add_to_grad(x, [=](std::size_t i) { return g[i] * derivative(xv[i], yv[i]); });
  });
  apply(plain, kernel, x.value(), x.tape->mutable_value(y.id));
  return y;
}

// The gate of x g(x), from the product: exact but for rounding, as the product is.
template <typename T>
T gate_of(T x, T y) {
  constexpr T tiny = std::numeric_limits<T>::min() * 4;
  return std::abs(x) < tiny ? T{0.5} : y / x;
}

}  // namespace

template <typename T>
Var<T> exp(Var<T> x) {
  return activation<T>(x, [](double v) { return std::exp(v); }, kernels::exp, [](T, T y) { return y; });
}

template <typename T>
Var<T> sigmoid(Var<T> x) {
  return activation<T>(x, sigmoid_of, kernels::sigmoid, [](T, T y) { return y * (1 - y); });
}

template <typename T>
Var<T> tanh(Var<T> x) {
  return activation<T>(x, [](double v) { return std::tanh(v); }, kernels::tanh, [](T, T y) { return (1 - y) * (1 + y); });
}

// The same where the derivative needs another function of x: prepare(x, z) fills a block z from one of x; derivative: of (x, y, z).
template <typename T, typename Prepare, typename D>
Var<T> activation(Var<T> x, double (*plain)(double), KernelFunction kernel, Prepare prepare, D derivative) {
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, prepare, derivative](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    const T *g = tape.grad(id).data(), *xv = tape.value(x).data(), *yv = tape.value(id).data();
    constexpr std::size_t block = 256;
    std::array<T, block> z;
    for (std::size_t begin = 0; begin < to.grad.size(); begin += block) {
      const std::size_t count = std::min(block, to.grad.size() - begin);
      prepare(std::span<const T>(xv + begin, count), std::span<T>(z.data(), count));
      T* d = to.grad.data() + begin;
      for (std::size_t i = 0; i < count; ++i) {
        d[i] = (to.first ? T{0} : d[i]) + g[begin + i] * derivative(xv[begin + i], yv[begin + i], z[i]);
      }
    }
  });
  apply(plain, kernel, x.value(), x.tape->mutable_value(y.id));
  return y;
}

// y' = s + y (1 - s), where 1 - s is sigmoid(-x): the difference itself has lost the digits that y multiplies.
template <typename T>
Var<T> silu(Var<T> x) {
  return activation<T>(
      x, [](double v) { return v * sigmoid_of(v); }, kernels::silu,
      [](std::span<const T> v, std::span<T> rest) {
        std::transform(v.begin(), v.end(), rest.begin(), std::negate<>());
        apply(sigmoid_of, kernels::sigmoid, std::span<const T>(rest), rest);
      },
      [](T v, T y, T rest) { return gate_of(v, y) + y * rest; });
}

template <typename T>
Var<T> gelu(Var<T> x) {
  return activation<T>(
      x, gelu_of, kernels::gelu,
      [](std::span<const T> v, std::span<T> density) {
        // Held at an exponent whose exponential is 0 and whose square does not overflow.
        for (std::size_t i = 0; i < v.size(); ++i) density[i] = T{-0.5} * std::min(v[i] * v[i], T{3200});
        apply([](double e) { return std::exp(e); }, kernels::exp, std::span<const T>(density), density);
      },
      [](T v, T y, T density) {
        constexpr T scale = static_cast<T>(std::numbers::inv_sqrtpi / std::numbers::sqrt2);
        return gate_of(v, y) + (density == 0 ? T{0} : v * scale * density);
      });
}

// x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3): the tanh form. From sigmoid(-|2 u|), which keeps its digits where the gate is shut
// or open.
template <typename T>
Var<T> gelu_tanh(Var<T> x) {
  constexpr double kScale = 2 * 0.79788456080286535588, kCube = 0.044715;
  return activation<T>(
      x, [](double v) { return v * sigmoid_of(kScale * (v + kCube * v * v * v)); }, kernels::gelu_tanh,
      [](std::span<const T> v, std::span<T> rest) {
        for (std::size_t i = 0; i < v.size(); ++i) {
          const T far = std::min(std::abs(v[i]), T{40});  // where the exponential is 0 and the cube does not overflow
          rest[i] = -static_cast<T>(kScale) * (far + static_cast<T>(kCube) * far * far * far);
        }
        apply(sigmoid_of, kernels::sigmoid, std::span<const T>(rest), rest);
      },
      [](T v, T, T rest) {
        const T near = std::clamp(v, T{-40}, T{40}), slope = static_cast<T>(kScale) * (1 + 3 * static_cast<T>(kCube) * near * near);
        return (v >= 0 ? 1 - rest : rest) + near * slope * rest * (1 - rest);
      });
}

template <typename T>
Var<T> relu(Var<T> x) {
  return activation<T>(x, [](double v) { return v < 0 ? 0 : v; }, kernels::relu, [](T v, T) { return static_cast<T>(v > 0); });
}

template <typename T>
Var<T> softplus(Var<T> x) {
  return activation<T>(
      x, softplus_of, kernels::softplus, [](std::span<const T> v, std::span<T> s) { apply(sigmoid_of, kernels::sigmoid, v, s); },
      [](T v, T, T s) { return v > 20 ? T{1} : s; });
}

template <typename T>
Var<T> softmax(Var<T> x) {
  const std::size_t width = x.dims().back();
  const Var<T> y = x.tape->record(x.dims(), {x}, [x = x.id, width](Tape<T>& tape, std::size_t id) {
    const auto to = tape.flow(x);
    const T *g = tape.grad(id).data(), *yv = tape.value(id).data();
    for (std::size_t begin = 0; begin < to.grad.size(); begin += width) {
      T mean = 0;
      for (std::size_t i = begin; i < begin + width; ++i) mean += g[i] * yv[i];
      for (std::size_t i = begin; i < begin + width; ++i) to.grad[i] = (to.first ? T{0} : to.grad[i]) + yv[i] * (g[i] - mean);
    }
  });
  const std::span<T> out = x.tape->mutable_value(y.id);
  for (std::size_t begin = 0; begin < out.size(); begin += width) {
    const std::span<const T> from = x.value().subspan(begin, width);
    const std::span<T> row = out.subspan(begin, width);
    if constexpr (std::is_same_v<T, float>) {
      kernels::softmax(from, row);
    } else {
      const T highest = *std::max_element(from.begin(), from.end());
      T total = 0;
      for (std::size_t i = 0; i < width; ++i) total += row[i] = std::exp(from[i] - highest);
      for (T& v : row) v /= total;
    }
  }
  return y;
}

template <typename T>
Var<T> log_sum_exp(Var<T> x) {
  const std::size_t width = x.dims().back(), rows = x.value().size() / width;
  // Of each row the shift and the sum of shifted exponentials: exp(x - y) would lose digits of large values.
  const std::size_t kept = x.tape->keep(2 * rows);
  const Var<T> y = x.tape->record(leading(x.dims()), {x}, [x = x.id, kept, width](Tape<T>& tape, std::size_t id) {
    const T *g = tape.grad(id).data(), *xv = tape.value(x).data(), *shift_and_total = tape.value(kept).data();
    const auto to = tape.flow(x);
    for (std::size_t row = 0, i = 0; i < to.grad.size(); ++row) {
      const T shift = shift_and_total[2 * row], total = shift_and_total[2 * row + 1];
      const T factor = total > 0 ? g[row] / total : T{0};
      for (std::size_t end = i + width; i < end; ++i) to.grad[i] = (to.first ? T{0} : to.grad[i]) + factor * std::exp(xv[i] - shift);
    }
  });
  const std::span<T> out = x.tape->mutable_value(y.id), shift_and_total = x.tape->mutable_value(kept);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::span<const T> from = x.value().subspan(row * width, width);
    const T highest = *std::max_element(from.begin(), from.end());
    const T shift = std::isinf(highest) ? T{0} : highest;  // all -infinity: the sum is 0 and its logarithm right
    T total = 0;
    for (const T v : from) total += std::exp(v - shift);
    shift_and_total[2 * row] = shift;
    shift_and_total[2 * row + 1] = total;
    out[row] = shift + std::log(total);
  }
  return y;
}

template Var<float> exp(Var<float>);
template Var<double> exp(Var<double>);
template Var<float> sigmoid(Var<float>);
template Var<double> sigmoid(Var<double>);
template Var<float> tanh(Var<float>);
template Var<double> tanh(Var<double>);
template Var<float> silu(Var<float>);
template Var<double> silu(Var<double>);
template Var<float> gelu(Var<float>);
template Var<double> gelu(Var<double>);
template Var<float> gelu_tanh(Var<float>);
template Var<double> gelu_tanh(Var<double>);
template Var<float> relu(Var<float>);
template Var<double> relu(Var<double>);
template Var<float> softplus(Var<float>);
template Var<double> softplus(Var<double>);
template Var<float> softmax(Var<float>);
template Var<double> softmax(Var<double>);
template Var<float> log_sum_exp(Var<float>);
template Var<double> log_sum_exp(Var<double>);

}  // namespace kizzasi::autograd
