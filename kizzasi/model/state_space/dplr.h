// From the continuous diagonal-plus-low-rank system to the recurrence of dplr_scan.
#pragma once

#include <complex>
#include <span>

#include "kizzasi/autograd/tape.h"

namespace kizzasi {

// One channel: A = diag(lambda) - p p^*, one of each conjugate pair.
struct DplrSystem {
  std::span<const std::complex<double>> lambda, p, b, c;
};

// Its bilinear discretisation with step dt, with w = 2 / dt, D = 1 / (w - lambda) and k = 1 / (1 + 2 Re(p^* D p)):
//   A_bar = -I + 2 w R and B_bar = 2 R b with R = (w - A)^-1 = D - k D p p^* D
// that is h[n] = a h[n] + b u + r q with the shared number q = Re(sum shared[n] h[n]), and y = Re(sum c[n] h[n]).
struct DplrElement {
  std::complex<double> a, b, c, shared, r;
};
void discretize_dplr(const DplrSystem& system, double dt, std::span<DplrElement> out) noexcept;

// The same on a tape, in double for either T: log_dt (E), a_real, a_imag (E, N) with lambda = -exp(a_real) - i a_imag; p, b, c (E, N, 2).
// -> (5, 2, N, E): a, b, c, shared, r as planes.
template <typename T>
autograd::Var<T> discretize_dplr(autograd::Var<T> log_dt, autograd::Var<T> a_real, autograd::Var<T> a_imag, autograd::Var<T> p,
                                 autograd::Var<T> b, autograd::Var<T> c);

}  // namespace kizzasi
