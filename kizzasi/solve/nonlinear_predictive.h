// Predictive control of a plant of the caller's own, by sequential quadratic programs.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/solve/model_predictive.h"

namespace kizzasi::solve {

// x(k+1) = next(x(k), u(k)), with its derivatives. Called from `solve`, so what it does there decides whether that is real-time.
class NonlinearPlant {
 public:
  virtual ~NonlinearPlant() = default;
  virtual void next(std::span<const double> x, std::span<const double> u, std::span<double> to) const noexcept = 0;
  // a: (n, n) by x; b: (n, m) by u; by rows.
  virtual void jacobians(std::span<const double> x, std::span<const double> u, std::span<double> a, std::span<double> b) const noexcept = 0;
};

// The problem of PredictiveProblem (A and B empty) with the plant in their place.
//
// Each step linearises the plant along the plan and solves the quadratic program of the Gauss-Newton curvature; bounds of states enter it
// at a linear price, so that it always has an answer (Fletcher 1985), and the price grows until it is exact. Steps are shortened until
// cost + price of what is broken falls as it should (Nocedal and Wright 2006, section 18.4). Bounds and rates of the inputs hold in every
// plan on the way. What is found is a local answer: the conditions of optimality hold there, and `residual` says how well.
// Thread: one at a time. Real-time: `solve` takes no memory and ends after `most_steps`.
class NonlinearPredictive {
 public:
  // `plant` must outlive this. Errors as of ModelPredictive::prepare; R must be positive definite.
  static Result<NonlinearPredictive> prepare(PredictiveProblem problem, const NonlinearPlant& plant, int most_steps = 100);

  // `plan`: (N, m) inputs to begin with, and the answer. kInfeasible: no plan near the one it began with keeps the states inside their
  // bounds by less than 1e-7; the plan breaks them as little as it found. kIterationLimit: it was still getting better.
  Status solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous,
               std::span<double> plan) noexcept;

  std::span<const double> states() const noexcept { return x_; }  // x(1)..x(N), by rows
  double cost() const noexcept { return cost_; }
  double broken() const noexcept { return broken_; }      // the largest violation of a state's bound, soft ones included
  double residual() const noexcept { return residual_; }  // of the gradient of the Lagrangian, relative to the steepest gradient on the way
  int steps() const noexcept { return steps_; }

 private:
  NonlinearPredictive() = default;
  bool roll_out(std::span<const double> x0, std::span<const double> plan, std::span<double> states) const noexcept;
  double cost_of(std::span<const double> plan, std::span<const double> states, std::span<const double> reference) const noexcept;
  double price_of(std::span<const double> states, double& worst) const noexcept;
  void linearise(std::span<const double> x0, std::span<const double> plan, std::span<const double> reference) noexcept;
  bool keeps_inputs(std::span<const double> plan, std::span<const double> previous) const noexcept;

  PredictiveProblem problem_;
  const NonlinearPlant* plant_ = nullptr;
  int most_steps_ = 100, steps_ = 0;
  std::size_t rates_ = 0, state_rows_ = 0;
  double price_ = 0, cost_ = 0, broken_ = 0, residual_ = 0;
  QuadraticProgram qp_;
  std::vector<double> x_, trial_x_, trial_, a_, b_, forced_, weighted_, h_, g_, rows_, lo_, hi_, lower_, upper_, l1_, l2_;
  std::vector<std::uint8_t> active_;
};

}  // namespace kizzasi::solve
