// What gradients of likelihoods need of the gamma function, for x > 0.
#pragma once

namespace kizzasi {

// The derivative of log_gamma, to 1e-14 of max(1, |value|): recurrence up to x >= 10, then the series of Abramowitz and Stegun 6.3.18.
// Real-time: yes. Thread: any.
double digamma(double x) noexcept;

// log(Gamma(x + 1/2) / Gamma(x)) and its derivative: without the cancellation of two large logarithms, for any size of x.
double log_gamma_half_step(double x) noexcept;
double digamma_half_step(double x) noexcept;

}  // namespace kizzasi
