// Nearest points of simple sets, in closed form.
#pragma once

#include <cstdint>
#include <span>

#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

// Every function minimises |x - y|_2 over its set and writes x (as long as y, may be y itself). A y that lies in the set is returned bit
// for bit. Rounding is seen to: x obeys the set's condition as it is written here, evaluated in double from left to right.
// Returns kOptimal; kInfeasible where the set is empty; kBadInput where a number is NaN, y is infinite or a size is wrong: then x is
// untouched. Real-time: yes. Thread: any.

// lower <= x <= upper.
Status nearest_in_box(std::span<const double> y, std::span<const double> lower, std::span<const double> upper,
                      std::span<double> x) noexcept;

// lower <= x <= upper and -rate <= x - previous <= rate. Where a coordinate's two ranges do not meet the box wins: x is the bound next to
// `previous`, the status kInfeasible, and the other coordinates are as they would be.
Status nearest_in_box_and_rate(std::span<const double> y, std::span<const double> lower, std::span<const double> upper,
                               std::span<const double> previous, std::span<const double> rate, std::span<double> x) noexcept;

// lo <= a.x <= hi; half-space where one is infinite, hyperplane where they are equal: that is met to 8 eps (sum |a_j x_j| + |lo|).
// `weight` (> 0; empty: all 1) makes it sum w_j (x_j - y_j)^2. `multiplier` m: W (x - y) + m a = 0.
Status nearest_in_slab(std::span<const double> y, std::span<const double> a, double lo, double hi, std::span<const double> weight,
                       std::span<double> x, double& multiplier) noexcept;

// x >= 0, sum x = total > 0. `scratch`: as long as y.
Status nearest_in_simplex(std::span<const double> y, double total, std::span<double> x, std::span<double> scratch) noexcept;

enum class Norm : std::uint8_t { kL1, kL2, kLInf };

// |x - centre| <= radius; centre empty: the origin. `multiplier` of the l2 norm: x - y + m (x - centre) = 0. `scratch`: 2 |y| values.
Status nearest_in_ball(std::span<const double> y, std::span<const double> centre, double radius, Norm norm, std::span<double> x,
                       std::span<double> scratch, double& multiplier) noexcept;

// |x[1:]| <= slope x[0], slope > 0: the second-order cone where slope is 1.
Status nearest_in_cone(std::span<const double> y, double slope, std::span<double> x) noexcept;

// The l2 norm of x - centre as the functions above check it.
double norm_of(std::span<const double> x, std::span<const double> centre, Norm norm) noexcept;

}  // namespace kizzasi::solve
