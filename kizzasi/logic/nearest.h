// The nearest point of a box cut by one pair of parallel planes, in closed form.
#pragma once

#include <span>

namespace kizzasi::logic {

// Minimises  sum_j (x_j - y_j)^2 / w_j  +  weight * slack^2
// over low_j <= x_j <= high_j and lower - slack <= sum_j a_j x_j <= upper + slack  (slack 0 where weight is infinite).
// The answer is x_j = clamp(y_j - lambda w_j a_j, low_j, high_j) with one multiplier lambda (KKT); sum_j a_j x_j falls piecewise linearly
// as lambda grows, so lambda is found by search over the places where a coordinate meets its bound, then exactly inside one piece.
// Where the box does not reach the planes, x is a point of the box that comes nearest to them.
struct SlabProblem {
  std::span<const double> y, low, high, a;  // (m); bounds may be infinite, y may lie outside them
  std::span<const double> w;                // (m), > 0; empty: all 1
  double lower = 0, upper = 0;              // either may be infinite, lower <= upper
  double softness = 0;                      // 1 / weight; 0: hard
};

// `breaks` is scratch of 2 m. O(m log m). Real-time: yes.
void nearest_in_box_and_slab(const SlabProblem& problem, std::span<double> x, std::span<double> breaks) noexcept;

}  // namespace kizzasi::logic
