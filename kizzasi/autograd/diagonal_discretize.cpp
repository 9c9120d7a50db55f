#include "kizzasi/autograd/diagonal_discretize.h"

#include <cmath>

#include "kizzasi/autograd/gradient_sink.h"

namespace kizzasi::autograd {
namespace {

using Complex = std::complex<double>;

constexpr double kNearZero = 1e-3;  // |z| below which the series is the more exact

// phi(z) = (e^z - 1) / z and its derivative.
Complex phi(Complex z) {
  if (std::abs(z) < kNearZero) return 1.0 + z * (1.0 / 2 + z * (1.0 / 6 + z * (1.0 / 24 + z / 120.0)));
  return (std::exp(z) - 1.0) / z;
}
Complex phi_slope(Complex z) {
  if (std::abs(z) < kNearZero) return 1.0 / 2 + z * (1.0 / 3 + z * (1.0 / 8 + z * (1.0 / 30 + z / 144.0)));
  return (std::exp(z) - phi(z)) / z;
}

struct Gradient {
  double log_dt, log_a_real, a_imag;
  Complex c;
};

// Gradients of a real function through analytic ones: with g_w = dL/dRe w + i dL/dIm w, w = f(z) gives g_z = g_w conj(f'(z)).
Gradient adjoint(Discretization rule, Complex lambda, double dt, Complex c, Complex ga, Complex gc) {
  const Complex z = dt * lambda;
  const DiscreteElement element = discretize(rule, lambda, dt);
  const Complex gb = 2.0 * gc * std::conj(c);
  Complex gz, slope_dt;  // slope_dt: db/d(dt) with z held
  if (rule == Discretization::kZoh) {
    gz = ga * std::conj(element.a) + gb * std::conj(dt * phi_slope(z));
    slope_dt = phi(z);
  } else if (rule == Discretization::kEuler) {
    gz = ga;
    slope_dt = 1;
  } else {
    const Complex inverse = 1.0 / (1.0 - 0.5 * z);
    gz = ga * std::conj(inverse * inverse) + gb * std::conj(0.5 * dt * inverse * inverse);
    slope_dt = inverse;
  }
  const double gdt = (gz * std::conj(lambda)).real() + (gb * std::conj(slope_dt)).real();
  const Complex glambda = gz * dt;
  return {gdt * dt, glambda.real() * lambda.real(), glambda.imag(), 2.0 * gc * std::conj(element.b)};
}

}  // namespace

DiscreteElement discretize(Discretization rule, Complex lambda, double dt) noexcept {
  const Complex z = dt * lambda;
  if (rule == Discretization::kZoh) return {std::exp(z), dt * phi(z)};
  if (rule == Discretization::kEuler) return {1.0 + z, dt};
  const Complex inverse = 1.0 / (1.0 - 0.5 * z);
  return {(1.0 + 0.5 * z) * inverse, dt * inverse};
}

template <typename T>
Var<T> diagonal_discretize(Discretization rule, Var<T> log_dt, Var<T> log_a_real, Var<T> a_imag, Var<T> c) {
  Tape<T>& tape = *log_dt.tape;
  const std::size_t channels = log_a_real.dims()[0], states = log_a_real.dims()[1], plane = channels * states;
  const auto element = [=](const Tape<T>& on, std::size_t e, std::size_t n, Complex& lambda, double& dt, Complex& weight) {
    const std::size_t i = e * states + n;
    lambda = {-std::exp(static_cast<double>(on.value(log_a_real.id)[i])), static_cast<double>(on.value(a_imag.id)[i])};
    dt = std::exp(static_cast<double>(on.value(log_dt.id)[e]));
    weight = {static_cast<double>(on.value(c.id)[2 * i]), static_cast<double>(on.value(c.id)[2 * i + 1])};
  };

  const Var<T> out = tape.record({2, 2, states, channels}, {log_dt, log_a_real, a_imag, c}, [=](Tape<T>& on, std::size_t id) {
    std::vector<T> unwanted[4];
    const auto g_dt = gradient_sink(on, log_dt, unwanted[0]), g_real = gradient_sink(on, log_a_real, unwanted[1]),
               g_imag = gradient_sink(on, a_imag, unwanted[2]), g_c = gradient_sink(on, c, unwanted[3]);
    const std::span<const T> g = on.grad(id);
    for (std::size_t e = 0; e < channels; ++e) {
      for (std::size_t n = 0; n < states; ++n) {
        Complex lambda, weight;
        double dt = 0;
        element(on, e, n, lambda, dt, weight);
        const std::size_t at = n * channels + e, i = e * states + n;
        const Complex ga(static_cast<double>(g[at]), static_cast<double>(g[plane + at]));
        const Complex gc(static_cast<double>(g[2 * plane + at]), static_cast<double>(g[3 * plane + at]));
        const Gradient gradient = adjoint(rule, lambda, dt, weight, ga, gc);
        g_dt[e] += static_cast<T>(gradient.log_dt);
        g_real[i] += static_cast<T>(gradient.log_a_real);
        g_imag[i] += static_cast<T>(gradient.a_imag);
        g_c[2 * i] += static_cast<T>(gradient.c.real());
        g_c[2 * i + 1] += static_cast<T>(gradient.c.imag());
      }
    }
  });

  const std::span<T> value = tape.mutable_value(out.id);
  for (std::size_t e = 0; e < channels; ++e) {
    for (std::size_t n = 0; n < states; ++n) {
      Complex lambda, weight;
      double dt = 0;
      element(tape, e, n, lambda, dt, weight);
      const DiscreteElement d = discretize(rule, lambda, dt);
      const Complex cb = 2.0 * weight * d.b;
      const std::size_t at = n * channels + e;
      value[at] = static_cast<T>(d.a.real());
      value[plane + at] = static_cast<T>(d.a.imag());
      value[2 * plane + at] = static_cast<T>(cb.real());
      value[3 * plane + at] = static_cast<T>(cb.imag());
    }
  }
  return out;
}

template Var<float> diagonal_discretize(Discretization, Var<float>, Var<float>, Var<float>, Var<float>);
template Var<double> diagonal_discretize(Discretization, Var<double>, Var<double>, Var<double>, Var<double>);

}  // namespace kizzasi::autograd
