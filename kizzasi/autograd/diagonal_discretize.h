// From the continuous diagonal system to the recurrence of diagonal_scan (S4D, Gu et al. 2022, equations 4 and 5; S4, equation 3).
#pragma once

#include <complex>
#include <cstddef>
#include <span>

#include "kizzasi/autograd/tape.h"

namespace kizzasi::autograd {

enum class Discretization { kZoh, kBilinear, kEuler };

// One element of the diagonal: with lambda the eigenvalue, dt the step and z = dt lambda,
//   zoh:      a = exp(z),                  b = dt (exp(z) - 1) / z, by its series near 0
//   bilinear: a = (1 + z/2) / (1 - z/2),   b = dt / (1 - z/2)
//   euler:    a = 1 + z,                   b = dt: grows without end where |1 + z| > 1
struct DiscreteElement {
  std::complex<double> a, b;
};
DiscreteElement discretize(Discretization rule, std::complex<double> lambda, double dt) noexcept;

// log_dt (E), log_a_real (E, N), a_imag (E, N), c (E, N, 2), with lambda = -exp(log_a_real) + i a_imag -> (2, 2, N, E): the a of the
// recurrence, then its c = 2 C b (the conjugate half counted in, B folded in), each as a real and an imaginary plane. Computed in double
// for either T, so that steps of many radians keep their phase.
template <typename T>
Var<T> diagonal_discretize(Discretization rule, Var<T> log_dt, Var<T> log_a_real, Var<T> a_imag, Var<T> c);

}  // namespace kizzasi::autograd
