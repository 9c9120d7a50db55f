// Control barrier functions as a filter: the nearest input that keeps a system inside h(x) >= 0.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/solve/polytope_projection.h"

namespace kizzasi::solve {

// One barrier, for the present state: the inputs with  slope . u >= least. Every form below fills `slope` (one number an input) and returns
// `least`. Real-time: yes. Thread: any.

// x' = f(x) + g(x) u, relative degree 1 (Ames et al. 2017): Lfh + Lgh . u >= -alpha h. slope = lgh.
double barrier_continuous(double h, double lfh, std::span<const double> lgh, double alpha, std::span<double> slope) noexcept;
// Relative degree 2 (Nguyen and Sreenath 2016, Xiao and Belta 2019): h'' + (alpha + alpha2) h' + alpha alpha2 h >= 0, where
// h'' = lf2h + lglfh . u. It keeps h >= 0 where it starts with h >= 0 and psi1 = h' + alpha h >= 0.
double barrier_second_degree(double h, double h_dot, double lf2h, std::span<const double> lglfh, double alpha, double alpha2,
                             std::span<double> slope) noexcept;
// x+ = A x + B u and h(x) = b - a . x: h(x+) >= (1 - gamma) h(x), 0 < gamma <= 1 (Agrawal and Sreenath 2017). A is (n, n) and B (n, m), by
// rows. `h` receives h(x), and h(x+) is b - a . (A x + B u).
double barrier_discrete(std::span<const double> a_matrix, std::span<const double> b_matrix, std::span<const double> x,
                        std::span<const double> a, double b, double gamma, std::span<double> slope, double& h) noexcept;
// Relative degree 2 in discrete time, for h(x) = b - a . x with a . B = 0: what the next input can still do two steps ahead,
// h(x++) - (2 - gamma - gamma2) h(x+) + (1 - gamma)(1 - gamma2) h(x) >= 0, which is the filter above applied to h(x+) - (1 - gamma) h(x).
double barrier_discrete_second_degree(std::span<const double> a_matrix, std::span<const double> b_matrix, std::span<const double> x,
                                      std::span<const double> a, double b, double gamma, double gamma2, std::span<double> slope) noexcept;

// Minimises |u - nominal| over any number of barriers and bounds on the inputs. One barrier without bounds is a closed form; else the
// quadratic program. kInfeasible is an answer: no input keeps all barriers, and `u` is untouched; the caller's fallback decides, never the
// nominal input by default. Thread: one at a time. Real-time: every noexcept member.
class BarrierFilter {
 public:
  void prepare(std::size_t inputs, std::size_t barriers);

  // slopes: (barriers, inputs) by rows, least: (barriers); u_min, u_max: (inputs), or empty.
  Status filter(std::span<const double> nominal, std::span<const double> slopes, std::span<const double> least,
                std::span<const double> u_min, std::span<const double> u_max, std::span<double> u) noexcept;
  // Of the last answer: u - nominal + slopes' barriers + bounds = 0; a barrier pushes with a value < 0, as rows from their lower end do.
  std::span<const double> barrier_multipliers() const noexcept { return {multipliers_.data(), barriers_}; }
  std::span<const double> bound_multipliers() const noexcept { return {bound_multipliers_.data(), inputs_}; }

 private:
  std::size_t inputs_ = 0, barriers_ = 0;
  PolytopeProjection polytope_;
  std::vector<double> none_, multipliers_, bound_multipliers_;
};

}  // namespace kizzasi::solve
