// Nearest points of polytopes, by weights and priorities, and what comes nearest where a polytope is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

// lo <= A x <= hi and lower <= x <= upper; A is m x n, row-major. Infinite: no bound. lower and upper may be empty.
struct Polytope {
  std::span<const double> a, lo, hi;
  std::span<const double> lower, upper;
};

// Minimises 1/2 sum w_j (x_j - y_j)^2 over a polytope.
//
// A y inside is returned bit for bit: inside as evaluated in double, or exactly; an equality holds to 8 eps (sum |a_j x_j| + |lo|).
// Every other answer is checked as a user would: a.x summed from left to right, against lo and hi. What rounding left outside is solved
// again with its bound a few roundings further in; `obeys` says whether that was possible (a set thinner than rounding has no such point).
// Thread: one at a time. Real-time: every noexcept member.
class PolytopeProjection {
 public:
  void prepare(std::size_t variables, std::size_t rows);
  // Keeps A and the weights (> 0; empty: all 1) until the next call; m may be below what was prepared.
  bool set_rows(std::span<const double> a, std::size_t rows, std::span<const double> weight = {}) noexcept;

  // `active` as in QuadraticProgram::solve. x: (n).
  Status nearest(std::span<const double> y, const Polytope& set, std::span<double> x, std::span<std::uint8_t> active = {}) noexcept;
  bool obeys() const noexcept { return obeys_; }
  bool unchanged() const noexcept { return unchanged_; }
  double distance() const noexcept { return distance_; }
  // Of the last call: x, multipliers, certificate.
  const QuadraticProgram& program() const noexcept { return qp_; }
  std::span<const double> row_multipliers() const noexcept;
  std::span<const double> box_multipliers() const noexcept;

  // The box kept, the levels of rows in order (lower number first; empty: one level): in each, the smallest |slack|_2 among what the levels
  // before leave, slack_i = a_i . x - clamp(a_i . x, lo_i, hi_i); of all such x the nearest to y. kInfeasible: the box itself is empty.
  Status least_slack(std::span<const double> y, const Polytope& set, std::span<const int> priority, std::span<double> x,
                     std::span<double> slack) noexcept;

 private:
  bool inside(std::span<const double> x, const Polytope& set, bool exactly) const noexcept;
  double distance_to(std::span<const double> y, std::span<const double> x) const noexcept;
  double broken(const Polytope& set) const noexcept;
  bool settle_roundings(const Polytope& set) noexcept;
  Status settle_level(std::span<const double> y, int level, std::span<const int> priority, const Polytope& set) noexcept;

  std::size_t n_ = 0, m_ = 0;
  QuadraticProgram qp_, level_qp_;
  std::vector<double> a_, weight_, lo_, hi_, value_, x_, low_box_, high_box_, zeros_, l1_, l2_, small_;
  bool obeys_ = true, unchanged_ = false;
  double distance_ = 0;
};

}  // namespace kizzasi::solve
