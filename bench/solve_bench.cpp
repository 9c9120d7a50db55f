// Time of one answer of each solver: from nothing, and from the answer before.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "kizzasi/base/rng.h"
#include "kizzasi/solve/banded_predictive.h"
#include "kizzasi/solve/model_predictive.h"
#include "kizzasi/solve/projection.h"
#include "kizzasi/solve/quadratic_program.h"

namespace kizzasi::solve {
namespace {

struct Problems {
  static constexpr std::size_t kVariables = 12, kRows = 24, kCount = 64;
  std::vector<double> h, a;
  std::vector<std::vector<double>> g, lo, hi;
};

// One curvature and one set of rows; linear terms and bounds that walk, so that each problem is a small step from the one before.
Problems walk(double step) {
  Problems p;
  Rng rng(11);
  const std::size_t n = Problems::kVariables, m = Problems::kRows;
  std::vector<double> root(n * n);
  for (double& v : root) v = rng.normal();
  p.h.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) p.h[i * n + j] += root[i * n + k] * root[j * n + k] / static_cast<double>(n);
    }
    p.h[i * n + i] += 0.5;
  }
  p.a.resize(m * n);
  for (double& v : p.a) v = rng.normal();
  std::vector<double> g(n), lo(m), hi(m);
  for (double& v : g) v = 3 * rng.normal();
  for (std::size_t i = 0; i < m; ++i) {
    lo[i] = -0.2 - 0.01 * static_cast<double>(rng.below(100));
    hi[i] = 0.2 + 0.01 * static_cast<double>(rng.below(100));
  }
  for (std::size_t k = 0; k < Problems::kCount; ++k) {
    for (double& v : g) v += step * rng.normal();
    p.g.push_back(g);
    p.lo.push_back(lo);
    p.hi.push_back(hi);
  }
  return p;
}

// Factors, scales and solves: all that a problem never seen before needs.
void qp_cold(benchmark::State& state) {
  const Problems p = walk(1);
  QuadraticProgram qp;
  qp.prepare(Problems::kVariables, Problems::kRows);
  std::size_t k = 0, iterations = 0;
  for (auto _ : state) {
    qp.set_hessian(p.h);
    qp.set_rows(p.a, Problems::kRows);
    if (qp.solve({p.g[k], {}, p.lo[k], p.hi[k], {}, {}}) != Status::kOptimal) state.SkipWithError("no answer");
    iterations += qp.iterations();
    k = (k + 1) % Problems::kCount;
  }
  state.counters["iterations"] = benchmark::Counter(static_cast<double>(iterations), benchmark::Counter::kAvgIterations);
}
BENCHMARK(qp_cold);

void qp_warm(benchmark::State& state) {
  const Problems p = walk(0.01);
  QuadraticProgram qp;
  qp.prepare(Problems::kVariables, Problems::kRows);
  qp.set_hessian(p.h);
  qp.set_rows(p.a, Problems::kRows);
  std::vector<std::uint8_t> active(Problems::kVariables + Problems::kRows);
  std::size_t k = 0, iterations = 0;
  for (auto _ : state) {
    if (qp.solve({p.g[k], {}, p.lo[k], p.hi[k], {}, {}}, active) != Status::kOptimal) state.SkipWithError("no answer");
    iterations += qp.iterations();
    k = (k + 1) % Problems::kCount;
  }
  state.counters["iterations"] = benchmark::Counter(static_cast<double>(iterations), benchmark::Counter::kAvgIterations);
  state.counters["active"] = static_cast<double>(std::count_if(active.begin(), active.end(), [](std::uint8_t c) { return c != 0; }));
}
BENCHMARK(qp_warm);

void box_and_rate(benchmark::State& state) {
  const auto channels = static_cast<std::size_t>(state.range(0));
  Rng rng(12);
  std::vector<double> y(channels), lower(channels, -1), upper(channels, 1), previous(channels), rate(channels, 0.3), x(channels);
  for (std::size_t j = 0; j < channels; ++j) {
    y[j] = 2 * rng.normal();
    previous[j] = 0.01 * static_cast<double>(rng.below(200)) - 1;
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(nearest_in_box_and_rate(y, lower, upper, previous, rate, x));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(box_and_rate)->Arg(64);

// A cart with a pole near the upright: 4 states, 1 input, bounds on input, rate and states.
PredictiveProblem cart(std::size_t horizon) {
  PredictiveProblem p;
  p.states = 4;
  p.inputs = 1;
  p.horizon = horizon;
  p.a = {1, 0.05, 0.0012, 0, 0, 1, 0.049, 0.0012, 0, 0, 1.027, 0.0504, 0, 0, 1.08, 1.027};
  p.b = {0.00125, 0.05, -0.0025, -0.1};
  p.q = {10, 0, 0, 0, 0, 1, 0, 0, 0, 0, 10, 0, 0, 0, 0, 1};
  p.p = {50, 0, 0, 0, 0, 20, 0, 0, 0, 0, 100, 0, 0, 0, 0, 20};
  p.r = {0.1};
  p.u_min = {-3}, p.u_max = {3}, p.du_max = {1.5};
  p.x_min = {-2, -1.5, -0.3, -1.5}, p.x_max = {2, 1.5, 0.3, 1.5};
  p.soft_l1 = 100, p.soft_l2 = 100;
  return p;
}

// A loop closed with a shifted start.
void predictive_warm(benchmark::State& state) {
  auto c = ModelPredictive::prepare(cart(20));
  if (!c) {
    state.SkipWithError("not prepared");
    return;
  }
  std::vector<std::uint8_t> active(c->active_bytes());
  std::vector<double> x(4, 0), reference(4, 0), previous(1, 0);
  std::size_t step = 0, iterations = 0;
  for (auto _ : state) {
    reference[0] = step++ % 200 < 100 ? 0.5 : -0.5;
    if (c->solve(x, reference, previous, active) != Status::kOptimal) state.SkipWithError("no answer");
    iterations += c->program().iterations();
    std::copy_n(c->states().begin(), 4, x.begin());
    previous[0] = c->inputs()[0];
    c->shift(active);
  }
  state.counters["iterations"] = benchmark::Counter(static_cast<double>(iterations), benchmark::Counter::kAvgIterations);
}
BENCHMARK(predictive_warm);

// One plan from nothing, in both forms: where they cross.
template <typename Form>
void predictive_cold(benchmark::State& state) {
  auto c = Form::prepare(cart(static_cast<std::size_t>(state.range(0))));
  if (!c) {
    state.SkipWithError("not prepared");
    return;
  }
  const std::vector<double> x(4, 0), reference{0.5, 0, 0, 0}, previous(1, 0);
  for (auto _ : state) {
    if (c->solve(x, reference, previous) != Status::kOptimal) state.SkipWithError("no answer");
  }
  state.counters["iterations"] = static_cast<double>(c->program().iterations());
}
BENCHMARK(predictive_cold<ModelPredictive>)->Arg(20)->Arg(50)->Arg(100)->Arg(200)->Arg(400);
BENCHMARK(predictive_cold<BandedPredictive>)->Arg(20)->Arg(50)->Arg(100)->Arg(200)->Arg(400)->Arg(2000);

}  // namespace
}  // namespace kizzasi::solve
