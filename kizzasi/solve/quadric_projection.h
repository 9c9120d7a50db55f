// Nearest points of balls and ellipsoids, alone and cut by a polytope.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/solve/polytope_projection.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

// q(x) = x'Qx + c'x <= b with a positive semidefinite Q (n x n, row-major): an ellipsoid, or a cylinder or paraboloid where Q is singular.
//
// The nearest point alone is (I + 2 m Q) x = y - m c with the multiplier m >= 0 at which q(x) = b, found by Newton's method in the axes of
// Q. Cut by a polytope it is the answer of a quadratic program with the curvature I + 2 m Q, whose q falls as m grows; the derivative of
// that by m is exact, so that a few steps suffice. A y inside is returned bit for bit; every other x is pulled inwards by as many roundings
// as q(x) <= b, evaluated here, needs. Thread: one at a time. Real-time: every noexcept member.
class QuadricProjection {
 public:
  // `rows`: of the polytope, 0 where there is none.
  void prepare(std::size_t variables, std::size_t rows);
  // kNotConvex where Q has a negative axis.
  Curvature set_quadric(std::span<const double> q, std::span<const double> c, double b) noexcept;
  // |x - centre| <= radius.
  Curvature set_ball(std::span<const double> centre, double radius) noexcept;
  bool set_rows(std::span<const double> a, std::size_t rows) noexcept;

  Status nearest(std::span<const double> y, std::span<double> x) noexcept;
  // kInfeasible: either one is empty, or they do not meet; `polytope_is_empty` tells.
  Status nearest(std::span<const double> y, const Polytope& set, std::span<double> x) noexcept;

  double multiplier() const noexcept { return multiplier_; }  // x - y + m (2 Q x + c) + ... = 0; of a ball x - y + m (x - centre) + ... = 0
  std::span<const double> row_multipliers() const noexcept { return {rows_.data(), m_}; }
  std::span<const double> box_multipliers() const noexcept { return {box_.data(), n_}; }
  bool polytope_is_empty() const noexcept { return polytope_empty_; }
  // q(x) <= b, or |x - centre| <= radius, as it is checked.
  bool obeys(std::span<const double> x) const noexcept;

 private:
  double level(std::span<const double> x) const noexcept;  // q(x), or |x - centre|^2
  void steepest(std::span<const double> x, std::span<double> gradient) const noexcept;
  bool pull(std::span<double> x, std::span<const double> inside) const noexcept;
  void axes() noexcept;

  std::size_t n_ = 0, m_ = 0;
  bool ball_ = false, ready_ = false, polytope_empty_ = false, bottomless_ = false;
  double b_ = 0, radius_ = 0, lowest_ = 0;  // the least of q
  std::vector<double> q_, c_, axes_, curve_, bottom_;
  std::vector<double> h_, g_, a_, t_, turned_, turned_c_, inside_, slope_, move_, rows_, box_, by_bound_;
  PolytopeProjection polytope_;
  QuadraticProgram qp_;
  double multiplier_ = 0;
};

}  // namespace kizzasi::solve
