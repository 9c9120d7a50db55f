// Linear model predictive control: the best inputs over a horizon, under bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

// x(k+1) = A x(k) + B u(k), k = 0..N-1. Minimises, with e(k) = x(k) - reference,
//
//   sum_{k=1}^{N-1} e'Q e + e(N)'P e(N) + sum_{k=0}^{N-1} u'R u      (no factor 1/2; x(0) costs nothing)
//
// under u_min <= u <= u_max, |u(k) - u(k-1)| <= du_max with u(-1) = previous, x_min <= x(k) <= x_max for k = 1..N.
// Matrices by rows; every list of bounds may be empty, and an infinite bound is none.
struct PredictiveProblem {
  std::size_t states = 0, inputs = 0, horizon = 0;
  std::size_t control_horizon = 0;    // inputs from here on stay as they are; 0: as long as the horizon
  std::vector<double> a, b, q, r, p;  // (n,n), (n,m), (n,n), (m,m), (n,n)
  std::vector<double> u_min, u_max, du_max, x_min, x_max;
  std::vector<double> terminal;  // x(N) equals this, in place of its bounds; empty: free
  // Bounds of states may give way by s >= 0 at the price l1 s + l2 s^2 for each state and step. l1 infinite: they hold.
  double soft_l1 = kNoBound, soft_l2 = 0;
};

// What does not fit, if anything. A plant of the caller's own has neither A nor B.
Result<void> check(const PredictiveProblem& problem, bool with_matrices = true);

// The states put into the inputs ("condensed"): one quadratic program over control_horizon * m variables, whose curvature and rows are
// built once; its work grows with the square of the horizon. Thread: one at a time. Real-time: every noexcept member.
class ModelPredictive {
 public:
  // Errors: a size that does not fit, a number that is not finite, Q, R or P that make the cost not strictly convex in the inputs.
  static Result<ModelPredictive> prepare(PredictiveProblem problem);

  // `active`, if not empty: active_bytes() of what was active, read and written as in QuadraticProgram::solve.
  Status solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous,
               std::span<std::uint8_t> active = {}) noexcept;
  std::size_t active_bytes() const noexcept { return qp_.rows() + qp_.variables(); }
  // What is active one step later, the plan being followed: the natural warm start of the next call.
  void shift(std::span<std::uint8_t> active) const noexcept;

  const PredictiveProblem& problem() const noexcept { return problem_; }
  // Of the last answer. u: (N, m), x(1)..x(N): (N, n), slack: (N, n), by rows.
  std::span<const double> inputs() const noexcept { return u_; }
  std::span<const double> states() const noexcept { return x_; }
  std::span<const double> slack() const noexcept { return slack_; }
  double cost() const noexcept { return cost_; }
  const QuadraticProgram& program() const noexcept { return qp_; }
  std::vector<std::string> active_names() const;  // "u3.0 hi", "du2.1 lo", "x5.1 hi", "x5.1< hi" softened, "s5.1 lo" no slack, "end.0="

  // After kOptimal: derivatives of a loss of the first input, whose derivative by it is `by_first` (m), by x0 (n), the reference (n) and
  // the previous input (m). By implicit differentiation; on the active side where two meet.
  void gradient(std::span<const double> by_first, std::span<double> by_x0, std::span<double> by_reference,
                std::span<double> by_previous) noexcept;

 private:
  ModelPredictive() = default;
  std::size_t step_of(std::size_t k) const { return std::min(k, moves_ - 1); }
  std::size_t rate_row(std::size_t k, std::size_t i) const { return k * problem_.inputs + i; }
  std::size_t state_row(std::size_t k, std::size_t i) const { return rates_ + k * problem_.states + i; }

  PredictiveProblem problem_;
  std::size_t moves_ = 0, rates_ = 0, state_rows_ = 0;
  QuadraticProgram qp_;
  std::vector<double> free_, forced_;            // x(1..N) = free_ x0 + forced_ u
  std::vector<double> by_state_, by_reference_;  // g = by_state_ x0 - by_reference_ reference
  std::vector<double> g_, lo_, hi_, lower_, upper_, drift_, u_, x_, slack_;
  std::vector<double> dx_, dg_, dbound_, dbox_;
  double cost_ = 0;
};

}  // namespace kizzasi::solve
