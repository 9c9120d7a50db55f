#include "kizzasi/logic/nearest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace kizzasi::logic {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double clamped(double value, double low, double high) { return value < low ? low : (value > high ? high : value); }

// The slab seen from the side on which the point lies: sum a x must come down to `target`; a is -a where it must go up.
struct Descent {
  const SlabProblem& p;
  double sign, target;

  double slope(std::size_t j) const { return sign * p.a[j]; }
  double speed(std::size_t j) const { return slope(j) * (p.w.empty() ? 1 : p.w[j]); }
  double at(std::size_t j, double lambda) const { return clamped(p.y[j] - lambda * speed(j), p.low[j], p.high[j]); }
  // lambda at which coordinate j begins to move, and at which it stops.
  double begins(std::size_t j) const { return (p.y[j] - near_end(j)) / speed(j); }
  double stops(std::size_t j) const { return (p.y[j] - far_end(j)) / speed(j); }
  double near_end(std::size_t j) const { return slope(j) > 0 ? p.high[j] : p.low[j]; }
  double far_end(std::size_t j) const { return slope(j) > 0 ? p.low[j] : p.high[j]; }
  double height(double lambda) const {
    double sum = -p.softness * lambda;
    for (std::size_t j = 0; j < p.y.size(); ++j) sum += slope(j) * at(j, lambda);
    return sum;
  }
};

// lambda inside the piece (from, to): the moving coordinates are those that have begun and not stopped.
double inside_piece(const Descent& d, double from, double to) {
  double still = 0, moving = 0, speed = d.p.softness;
  for (std::size_t j = 0; j < d.p.y.size(); ++j) {
    if (d.slope(j) == 0) continue;
    if (d.begins(j) <= from && d.stops(j) >= to) {
      moving += d.slope(j) * d.p.y[j];
      speed += d.slope(j) * d.speed(j);
    } else {
      still += d.slope(j) * (d.stops(j) <= from ? d.far_end(j) : d.near_end(j));
    }
  }
  return speed > 0 ? clamped((moving + (still - d.target)) / speed, from, to) : from;
}

}  // namespace

void nearest_in_box_and_slab(const SlabProblem& p, std::span<double> x, std::span<double> breaks) noexcept {
  double height = 0;
  for (std::size_t j = 0; j < p.y.size(); ++j) {
    x[j] = clamped(p.y[j], p.low[j], p.high[j]);
    height += p.a[j] * x[j];
  }
  if (height >= p.lower && height <= p.upper) return;
  const bool above = height > p.upper;
  const Descent d{p, above ? 1.0 : -1.0, above ? p.upper : -p.lower};

  std::size_t count = 0;
  for (std::size_t j = 0; j < p.y.size(); ++j) {
    if (d.slope(j) == 0) continue;
    for (const double lambda : {d.begins(j), d.stops(j)}) {
      if (lambda > 0 && lambda < kInfinity) breaks[count++] = lambda;
    }
  }
  std::sort(breaks.begin(), breaks.begin() + static_cast<std::ptrdiff_t>(count));
  // The first break at which the sum is low enough; the wanted lambda lies in the piece before it.
  const auto last = breaks.begin() + static_cast<std::ptrdiff_t>(count);
  const auto reached = std::partition_point(breaks.begin(), last, [&](double lambda) { return d.height(lambda) > d.target; });
  const double from = reached == breaks.begin() ? 0 : *(reached - 1);
  const double to = reached == last ? kInfinity : *reached;
  const double lambda = inside_piece(d, from, to);
  for (std::size_t j = 0; j < p.y.size(); ++j) {
    if (d.slope(j) != 0) x[j] = d.at(j, lambda);
  }
}

}  // namespace kizzasi::logic
