// Nearest points of sets that smooth functions of the caller's own cut out, by sequential quadratic programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

// g(x), with its derivatives. Called from `nearest`, so what it does there decides whether that is real-time.
class SmoothFunction {
 public:
  virtual ~SmoothFunction() = default;
  // gradient: (n), all of it is written; empty: not asked for.
  virtual double value(std::span<const double> x, std::span<double> gradient) const noexcept = 0;
};

// Minimises 1/2 sum w_j (x_j - y_j)^2 over g_k(x) <= 0 for all k and lower <= x <= upper. An equality is two functions with some room
// between.
//
// Each step solves the quadratic program of the linearised functions at a linear price (Fletcher 1985), with a curvature learned on the way
// (damped BFGS, Powell 1978); it is shortened until distance + price of what is broken falls, after a correction for the bend of the
// functions (Nocedal and Wright 2006, sections 18.3 and 18.4). The price grows until it is exact. At the end every g_k is evaluated as it
// stands: what rounding left above 0 is asked for again, further inside. A y that obeys is returned bit for bit. What is found is a local
// answer near the start: the conditions of optimality hold there to `residual`; where the set is not convex, others may be nearer. Thread:
// one at a time. Real-time: every noexcept member, as far as the functions are.
class SmoothProjection {
 public:
  // The functions must outlive this. At least one variable and one function.
  void prepare(std::size_t variables, std::span<const SmoothFunction* const> functions, int most_steps = 200);

  // weight: (> 0; empty: all 1). lower, upper: (n) or empty. start: (n) where the search begins; empty: y. x: (n), untouched unless
  // kOptimal. kInfeasible: near the start nothing obeys; kIterationLimit: no answer that holds was found in `most_steps`; kBadInput: sizes,
  // a NaN, or a function that is not finite at the start.
  Status nearest(std::span<const double> y, std::span<const double> weight, std::span<const double> lower, std::span<const double> upper,
                 std::span<const double> start, std::span<double> x) noexcept;

  double distance() const noexcept { return distance_; }  // sqrt(sum w (x - y)^2)
  // m_k >= 0: W (x - y) + sum m_k dg_k + box = 0.
  std::span<const double> multipliers() const noexcept { return lambda_; }
  double residual() const noexcept { return residual_; }  // of that sum, relative to its largest term
  int steps() const noexcept { return steps_; }

 private:
  bool evaluate(std::span<const double> at, std::span<double> values, std::span<double> jacobian) const noexcept;
  Status solve_step(std::span<const double> values) noexcept;
  double merit(std::span<const double> at, std::span<const double> values) const noexcept;
  bool advance(bool& tiny) noexcept;
  void learn_curvature() noexcept;
  void price_at_start() noexcept;
  bool dearer() noexcept;
  bool inside(std::span<const double> values) const noexcept;
  bool is_still() noexcept;
  bool ask_further_in() noexcept;
  void reset_curvature() noexcept;
  Status search() noexcept;
  void measure() noexcept;

  std::size_t n_ = 0, m_ = 0;
  int most_steps_ = 200, steps_ = 0;
  std::vector<const SmoothFunction*> functions_;
  QuadraticProgram qp_;
  std::vector<double> y_, w_, lower_, upper_, x_, trial_, d_, pull_, curvature_, learned_, values_, trial_values_, shifted_, jacobian_,
      trial_jacobian_;
  std::vector<double> lo_, hi_, low_box_, high_box_, l1_, l2_, price_, margin_, lambda_, change_, turned_;
  std::vector<std::uint8_t> active_;
  double distance_ = 0, residual_ = 0;
};

}  // namespace kizzasi::solve
