// Linear model predictive control over long horizons: the states stay variables, and work grows with the horizon, not with its square.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/solve/banded_program.h"
#include "kizzasi/solve/model_predictive.h"

namespace kizzasi::solve {

// The same problems as ModelPredictive ("sparse" beside "condensed"; Wang and Boyd 2010), by an interior-point method: no warm start, and
// plans to about 1e-9. The condensed form is faster for short horizons; docs/solve.md says from where on this one is. Thread: one at a
// time. Real-time: every noexcept member.
class BandedPredictive {
 public:
  // Errors: as ModelPredictive::prepare, but a cost that does not determine the inputs is not found.
  static Result<BandedPredictive> prepare(PredictiveProblem problem);

  Status solve(std::span<const double> x0, std::span<const double> reference, std::span<const double> previous) noexcept;

  const PredictiveProblem& problem() const noexcept { return problem_; }
  // Of the last answer. u: (N, m), x(1)..x(N): (N, n), slack: (N, n), by rows.
  std::span<const double> inputs() const noexcept { return u_; }
  std::span<const double> states() const noexcept { return x_; }
  std::span<const double> slack() const noexcept { return slack_; }
  double cost() const noexcept { return cost_; }
  const BandedProgram& program() const noexcept { return program_; }

  // As ModelPredictive::gradient.
  void gradient(std::span<const double> by_first, std::span<double> by_x0, std::span<double> by_reference,
                std::span<double> by_previous) noexcept;

 private:
  BandedPredictive(PredictiveProblem problem, BandedProgram program) : problem_(std::move(problem)), program_(std::move(program)) {}

  PredictiveProblem problem_;
  BandedProgram program_;
  std::vector<std::size_t> input_at_, state_at_, slack_at_;  // (N) first variable of each step; slack: kNone where it has none
  std::vector<double> weight_, end_weight_;                  // Q and P made even
  std::vector<double> g_, lo_, hi_, u_, x_, slack_, by_g_, by_bound_, dx_;
  std::size_t rate_rows_ = 0;   // the first m rows are those of the first step's change; 0: there are none
  std::size_t plant_rows_ = 0;  // the first of the n rows that hold x(1) = A x(0) + B u(0)
  double cost_ = 0;
};

}  // namespace kizzasi::solve
