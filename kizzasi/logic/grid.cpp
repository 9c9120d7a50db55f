#include "kizzasi/logic/grid.h"

#include <initializer_list>

namespace kizzasi::logic {

Grid::Grid(int decimals) : decimals_(decimals) {
  for (int i = 0; i < decimals; ++i) power_ *= 10;
  step_ = 1 / power_;
}

bool Grid::coarse(double x) const noexcept {
  const double size = std::abs(x);
  return std::nextafter(size, std::numeric_limits<double>::infinity()) - size >= step_;
}

double Grid::nearest(double x) const noexcept {
  if (all_doubles() || !std::isfinite(x) || coarse(x)) return x;
  // k / 10^n is the double that the decimal text of k / 10^n reads to: both are whole below 2^53 and 10^22, and division rounds once.
  const double guess = std::nearbyint(x * power_);
  double best = guess / power_, distance = std::abs(best - x);
  for (const double k : {guess - 1, guess + 1}) {  // the product may have been rounded across a half
    const double other = k / power_;
    if (std::abs(other - x) < distance) {
      best = other;
      distance = std::abs(other - x);
    }
  }
  return best + 0.0;  // no minus before a zero
}

double Grid::floor(double x) const noexcept {
  if (all_doubles() || !std::isfinite(x) || coarse(x)) return x;
  return below_or_at(x) / power_ + 0.0;
}

double Grid::above(double x) const noexcept {
  if (!std::isfinite(x)) return x;
  const double next = std::nextafter(x, std::numeric_limits<double>::infinity());
  if (all_doubles() || coarse(x)) return next;
  const double up = (below_or_at(x) + 1) / power_ + 0.0;
  return up > next ? up : next;
}

double Grid::below_or_at(double x) const noexcept {
  double k = std::floor(x * power_);
  while (k / power_ > x) k -= 1;
  while ((k + 1) / power_ <= x) k += 1;
  return k;
}

}  // namespace kizzasi::logic
