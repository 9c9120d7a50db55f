#include "kizzasi/train/gamma_function.h"

#include <cmath>

namespace kizzasi {

double digamma(double x) noexcept {
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  const double u = 1 / (x * x);
  const double series =
      u * (1.0 / 12 - u * (1.0 / 120 - u * (1.0 / 252 - u * (1.0 / 240 - u * (1.0 / 132 - u * (691.0 / 32760 - u / 12))))));
  return std::log(x) - 0.5 / x - series - below;
}

// From Stirling's series: 1/2 log x - 1/(8x) + 1/(192x^3) - 1/(640x^5) + 17/(14336x^7) - 31/(18432x^9).
double log_gamma_half_step(double x) noexcept {
  double below = 1;
  for (; x < 20; x += 1) below *= x / (x + 0.5);
  const double u = 1 / (x * x);
  const double series = (1.0 / 8 - u * (1.0 / 192 - u * (1.0 / 640 - u * (17.0 / 14336 - u * 31 / 18432)))) / x;
  return 0.5 * std::log(x) - series + std::log(below);
}

double digamma_half_step(double x) noexcept {
  double below = 0;
  for (; x < 20; x += 1) below += 0.5 / (x * (x + 0.5));
  const double u = 1 / (x * x);
  return 0.5 / x + u * (1.0 / 8 - u * (1.0 / 64 - u * (1.0 / 128 - u * (17.0 / 2048 - u * 31 / 2048)))) + below;
}

}  // namespace kizzasi
