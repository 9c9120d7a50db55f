// The standard normal and Student's t distributions in double.
#pragma once

namespace kizzasi {

// Real-time: yes. Thread: any. Relative error of the quantiles below 1e-13, absolute error of the rest below 1e-14, unless said otherwise.

double normal_cdf(double x) noexcept;
// Wichura 1988, algorithm AS 241 (PPND16). p in (0, 1); 0 and 1 give -infinity and +infinity, else NaN.
double normal_quantile(double p) noexcept;
double normal_log_density(double x) noexcept;

// Natural logarithm of Gamma(x), x > 0, absolute error below 1e-14 of the greater of 20 and the value. (std::lgamma writes a global.)
double log_gamma(double x) noexcept;

// freedom > 0. Above 1e6 the normal approximation of Abramowitz and Stegun 26.7.8 stands in, error below 1e-11.
double student_t_cdf(double x, double freedom) noexcept;
double student_t_quantile(double p, double freedom) noexcept;  // relative error below 1e-10
double student_t_log_density(double x, double freedom) noexcept;

}  // namespace kizzasi
