// Solving takes no memory.
#include <gtest/gtest.h>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/banded_program.h"
#include "kizzasi/solve/quadratic_program.h"
#include "tests/allocations/count.h"

namespace kizzasi::solve {
namespace {

TEST(Allocation, AQuadraticProgramAllocatesNothingAfterPrepare) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  constexpr std::size_t kVariables = 8, kRows = 16;
  Rng rng(3);
  QuadraticProgram qp;
  qp.prepare(kVariables, kRows, 4);
  std::vector<double> h(kVariables * kVariables), a(kRows * kVariables), g(kVariables), lo(kRows), hi(kRows), l1(kRows, kNoBound),
      l2(kRows);
  for (std::size_t i = 0; i < 4; ++i) l1[i] = 0.5, l2[i] = 1;
  std::vector<std::uint8_t> active(kVariables + kRows);
  const std::size_t before = allocations_so_far();
  int answers = 0, refusals = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    for (std::size_t i = 0; i < kVariables; ++i) h[i * (kVariables + 1)] = trial % 7 == 6 ? 0 : 1 + static_cast<double>(rng.below(9));
    for (double& v : a) v = rng.normal();
    for (std::size_t i = 0; i < kRows; ++i) {
      lo[i] = rng.normal() - 1;
      hi[i] = lo[i] + (trial % 3 == 0 ? 0.1 : 3);
    }
    qp.set_hessian(h);
    qp.set_rows(a, kRows);
    if (trial % 2 == 0) qp.set_softness(l1, l2);
    for (int step = 0; step < 3; ++step) {
      for (double& v : g) v = 3 * rng.normal();
      ++(qp.solve({g, {}, lo, hi, {}, {}}, active) == Status::kOptimal ? answers : refusals);
    }
  }
  EXPECT_EQ(allocations_so_far() - before, 0u);
  EXPECT_GT(answers, 100);
  EXPECT_GT(refusals, 100);
}

TEST(Allocation, ABandedProgramAllocatesNothingAfterPrepare) {
  if (!kAllocationsAreCounted) GTEST_SKIP();
  constexpr std::uint32_t kVariables = 40;
  BandedProblem problem;
  problem.variables = kVariables;
  for (std::uint32_t i = 0; i < kVariables; ++i) {
    problem.hessian.push_back({i, i, 1});
    problem.rows.push_back({{i}, {1}});
    if (i > 0) problem.rows.push_back({{i - 1, i}, {-1, 1}});
  }
  problem.rows.push_back({{0}, {1}});
  problem.equality.assign(problem.rows.size(), 0);
  problem.equality.back() = 1;
  auto program = BandedProgram::prepare(problem);
  ASSERT_TRUE(program);
  Rng rng(5);
  const std::size_t rows = problem.rows.size();
  std::vector<double> g(kVariables), lo(rows), hi(rows), by_g(kVariables), by_bound(rows);
  const std::size_t before = allocations_so_far();
  int answers = 0, refusals = 0;
  for (int trial = 0; trial < 300; ++trial) {
    for (double& v : g) v = 3 * rng.normal();
    for (std::size_t r = 0; r < rows; ++r) {
      hi[r] = 0.1 + rng.uniform();
      lo[r] = trial % 5 == 4 ? hi[r] - 0.01 : -hi[r];
    }
    lo[rows - 1] = hi[rows - 1] = trial % 5 == 3 ? 9 : 0;
    const bool found = program->solve(g, lo, hi) == Status::kOptimal;
    if (found) program->gradient(g, by_g, by_bound);
    ++(found ? answers : refusals);
  }
  EXPECT_EQ(allocations_so_far() - before, 0u);
  EXPECT_GT(answers, 100);
  EXPECT_GT(refusals, 20);
}

}  // namespace
}  // namespace kizzasi::solve
