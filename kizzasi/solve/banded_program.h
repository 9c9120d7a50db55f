// Quadratic programs over a course of time: many variables, each tied to its neighbours only. Work grows with their number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/solve/banded_factor.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {

struct SparseRow {
  std::vector<std::uint32_t> index;  // of variables, each once
  std::vector<double> value;
};

// Minimises 1/2 x'Hx + g'x over lo <= A x <= hi. Variables stand in the order of time.
struct BandedProblem {
  std::size_t variables = 0;
  struct Entry {
    std::uint32_t i = 0, j = 0;  // i >= j: the lower triangle; entries of one place add up
    double value = 0;
  };
  std::vector<Entry> hessian;  // positive semidefinite
  std::vector<SparseRow> rows;
  std::vector<std::uint8_t> equality;  // (rows) 1: lo equals hi, whatever their value
};

// A primal-dual interior-point method (Mehrotra 1992) whose linear systems are banded: with p the widest span of a row in variables, a step
// costs O(variables p^2). Equalities stand in the system as quasi-definite rows (Vanderbei 1995), refined against the system as it is.
// Neither warm starts nor the last bit: see QuadraticProgram for small problems. Thread: one at a time. Real-time: every noexcept member.
class BandedProgram {
 public:
  // Errors: sizes, indices, numbers that are not finite. A curvature that is not convex is found by `solve`.
  static Result<BandedProgram> prepare(BandedProblem problem);

  // g: (variables), lo, hi: (rows); infinite: no bound on that side. kOptimal where the conditions of an optimum hold to 1e-9 of the
  // problem's numbers; kInfeasible with a certificate checked: no x
  // obeys whose numbers are below a million times the bounds. kIterationLimit: neither was reached,
  // most often since nothing obeys.
  Status solve(std::span<const double> g, std::span<const double> lo, std::span<const double> hi) noexcept;

  std::span<const double> x() const noexcept { return x_; }
  // Hx + g + A' multipliers = 0; > 0 pushes from hi, < 0 from lo.
  std::span<const double> multipliers() const noexcept { return multipliers_; }
  std::size_t iterations() const noexcept { return iterations_; }
  std::size_t bandwidth() const noexcept { return factor_.bandwidth(); }

  // After kOptimal: derivatives of a loss whose derivative by x is `dx`, by g and by the bound at which each row stands, by implicit
  // differentiation of the conditions of the optimum; where a side is active without pushing, it counts as free. by_g: (variables),
  // by_bound: (rows).
  void gradient(std::span<const double> dx, std::span<double> by_g, std::span<double> by_bound) noexcept;

 private:
  BandedProgram() = default;
  struct Side {  // sign * row x + s = sign * bound
    std::uint32_t row = 0;
    double sign = 1;
  };
  double value(std::uint32_t row, std::span<const double> x) const noexcept;
  void add_row(std::uint32_t row, double factor, std::span<double> y) const noexcept;
  void times_hessian(std::span<const double> x, std::span<double> y) const noexcept;
  bool factor_system() noexcept;
  void solve_system(std::span<const double> dual, std::span<const double> equal) noexcept;
  void residuals() noexcept;
  bool certified() noexcept;
  double stiffness() const noexcept;
  bool polish(double& merit) noexcept;
  Status publish(double merit) noexcept;

  BandedProblem p_;
  std::vector<double> scale_;              // (rows) a power of two
  std::vector<std::uint32_t> place_;       // (variables) in the system
  std::vector<std::uint32_t> row_place_;   // (rows) of equalities in the system
  std::vector<std::uint32_t> equalities_;  // rows
  std::vector<Side> sides_;                // of this solve
  BandedFactor factor_;
  std::vector<double> g_, bound_, equal_bound_;
  std::vector<double> x_, y_, s_, z_, dx_, dy_, ds_, dz_, rd_, rp_, re_, rc_, weight_;
  std::vector<double> right_, left_, system_, hx_, multipliers_, best_x_, best_y_, best_s_, best_z_, kept_x_, kept_y_, kept_s_, kept_z_,
      dual_;
  double g_size_ = 1, b_size_ = 1;
  std::size_t iterations_ = 0;
};

}  // namespace kizzasi::solve
