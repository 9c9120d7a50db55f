#include "kizzasi/decode/standard_laws.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kNearlyNormal = 1e6;  // degrees of freedom

template <std::size_t N>
double polynomial(const std::array<double, N>& c, double x) noexcept {
  double sum = 0;
  for (std::size_t i = N; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

// The rational functions of AS 241, lowest power first.
constexpr std::array<double, 8> kA{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
                                   4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr std::array<double, 8> kB{1.0,
                                   4.2313330701600911252e1,
                                   6.8718700749205790830e2,
                                   5.3941960214247511077e3,
                                   2.1213794301586595867e4,
                                   3.9307895800092710610e4,
                                   2.8729085735721942674e4,
                                   5.2264952788528545610e3};
constexpr std::array<double, 8> kC{1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array<double, 8> kD{1.0,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};
constexpr std::array<double, 8> kE{6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                                   2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                   2.71155556874348757815e-5, 2.01033439929228813265e-7};
constexpr std::array<double, 8> kF{1.0,
                                   5.99832206555887937690e-1,
                                   1.36929880922735805310e-1,
                                   1.48753612908506148525e-2,
                                   7.86869131145613259100e-4,
                                   1.84631831751005468180e-5,
                                   1.42151175831644588870e-7,
                                   2.04426310338993978564e-15};

// I_x(a, b) by its continued fraction (DLMF 8.17.22), evaluated by Lentz's method; good for x < (a + 1) / (a + b + 2).
double beta_fraction(double x, double a, double b) noexcept {
  constexpr double kTiny = 1e-300;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double h = d;
  for (int m = 1; m < 20000; ++m) {
    for (const double term :
         {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))}) {
      d = 1 + term * d;
      d = 1 / (std::abs(d) < kTiny ? kTiny : d);
      c = 1 + term / c;
      if (std::abs(c) < kTiny) c = kTiny;
      h *= d * c;
    }
    if (std::abs(d * c - 1) < 1e-16) break;
  }
  return h;
}

// log(Gamma(a + 1/2) / Gamma(a)): for large a by its series, since the difference of two large logarithms cancels (DLMF 5.11.8).
double log_half_step(double a) noexcept {
  if (a < 20) return log_gamma(a + 0.5) - log_gamma(a);
  const double inverse = 1 / a;
  constexpr std::array<double, 4> kSeries{-1.0 / 8, 1.0 / 192, -1.0 / 640, 17.0 / 14336};
  return 0.5 * std::log(a) + inverse * polynomial(kSeries, inverse * inverse);
}

// P(T < -|x|): the lower tail, without cancellation. I_y(v/2, 1/2) / 2 with y = v / (v + x^2).
double student_t_tail(double x, double v) noexcept {
  if (std::isinf(x)) return 0;
  if (v > kNearlyNormal) return normal_cdf(-std::abs(x) * (1 - 0.25 / v) / std::sqrt(1 + 0.5 * x * x / v));
  const double a = 0.5 * v, b = 0.5;
  // y and 1 - y, each without cancellation and without overflow of x^2.
  const double ratio = x / std::sqrt(v), square = ratio * ratio;
  const double y = 1 / (1 + square), rest = square > 1 ? 1 / (1 + 1 / square) : square / (1 + square);
  const double log_y = std::isinf(square) ? -2 * std::log(std::abs(ratio)) : -std::log1p(square);
  const double log_front = log_half_step(a) - 0.5 * std::log(std::numbers::pi) + a * log_y + (rest > 0 ? b * std::log(rest) : -kInfinity);
  if (y < (a + 1) / (a + b + 2)) return 0.5 * std::exp(log_front) * beta_fraction(y, a, b) / a;
  return 0.5 * (1 - std::exp(log_front) * beta_fraction(rest, b, a) / b);
}

}  // namespace

double normal_cdf(double x) noexcept { return 0.5 * std::erfc(-x * std::numbers::sqrt2 / 2); }

double normal_log_density(double x) noexcept { return -0.5 * x * x - 0.5 * std::log(2 * std::numbers::pi); }

double normal_quantile(double p) noexcept {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(kA, r) / polynomial(kB, r);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double z = r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6) : polynomial(kE, r - 5) / polynomial(kF, r - 5);
  return q < 0 ? -z : z;
}

double log_gamma(double x) noexcept {
  // Stirling's series (DLMF 5.11.1) from 12 upwards; below, the recurrence brings x there.
  double product = 1;
  while (x < 12) product *= x++;
  constexpr std::array<double, 7> kSeries{1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  const double inverse = 1 / x;
  return (x - 0.5) * std::log(x) - x + 0.5 * std::log(2 * std::numbers::pi) + inverse * polynomial(kSeries, inverse * inverse) -
         std::log(product);
}

double student_t_cdf(double x, double freedom) noexcept {
  if (std::isnan(x)) return kNan;
  const double tail = student_t_tail(x, freedom);
  return x < 0 ? tail : 1 - tail;
}

double student_t_log_density(double x, double freedom) noexcept {
  const double ratio = x / std::sqrt(freedom);
  const double log_one_plus = std::abs(ratio) > 1e150 ? 2 * std::log(std::abs(ratio)) : std::log1p(ratio * ratio);
  return log_half_step(0.5 * freedom) - 0.5 * std::log(std::numbers::pi * freedom) - 0.5 * (freedom + 1) * log_one_plus;
}

double student_t_quantile(double p, double freedom) noexcept {
  if (!(p >= 0 && p <= 1)) return kNan;
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (p == 0.5) return 0;
  const double tail = p < 0.5 ? p : 1 - p;  // solve for t > 0 with P(T < -t) = tail
  // In x = log t the logarithm of the tail falls steadily and is nearly straight far out: Newton's steps, kept inside a bracket.
  const double target = std::log(tail);
  double low = -50, high = 1;
  while (std::log(student_t_tail(std::exp(high), freedom)) > target && high < 700) high *= 2;
  double x = std::log(-normal_quantile(tail) + 1e-300);
  for (int i = 0; i < 200; ++i) {
    if (!(x > low && x < high)) x = 0.5 * (low + high);
    const double t = std::exp(x), value = student_t_tail(t, freedom), miss = std::log(value) - target;
    if (miss == 0) break;
    (miss > 0 ? low : high) = x;
    const double slope = -std::exp(student_t_log_density(t, freedom)) * t / value;
    const double next = x - miss / slope;
    const bool done = std::abs(next - x) <= 4e-16 * std::abs(x) + 1e-16 || high - low <= 4e-16 * std::abs(x);
    x = next;
    if (done) break;
  }
  return p < 0.5 ? -std::exp(x) : std::exp(x);
}

}  // namespace kizzasi
