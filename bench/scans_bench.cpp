// Scans forward and backward in nanoseconds a state element: time / (rows * channels * states).
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <vector>

#include "kizzasi/autograd/scans.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/kernels/conv1d.h"
#include "kizzasi/kernels/diagonal_scan.h"
#include "kizzasi/kernels/selective_scan.h"
#include "kizzasi/kernels/ssd.h"

namespace {

using namespace kizzasi;
using benchmark::Counter;
using Values = std::vector<float>;

Values uniform_values(std::size_t n, float low = -1.0f, float high = 1.0f) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(low, high);
  Values values(n);
  for (float& v : values) v = uniform(engine);
  return values;
}

// benchmark's inverted rate: seconds an element; the suffix n then means nanoseconds
void report(benchmark::State& state, std::size_t elements) {
  state.counters["s/element"] =
      Counter(static_cast<double>(elements) * static_cast<double>(state.iterations()), Counter::kIsRate | Counter::kInvert);
}

struct Sizes {
  std::size_t rows, channels, states;
  explicit Sizes(const benchmark::State& state)
      : rows(static_cast<std::size_t>(state.range(0))),
        channels(static_cast<std::size_t>(state.range(1))),
        states(static_cast<std::size_t>(state.range(2))) {}
  std::size_t elements() const { return rows * channels * states; }
};

struct Selective : Sizes {
  Values x, delta, b, c, a, d, y, kept, scratch;
  kernels::SelectiveScan scan;
  explicit Selective(const benchmark::State& state)
      : Sizes(state),
        x(uniform_values(rows * channels)),
        delta(uniform_values(rows * channels, 0.001f, 0.1f)),
        b(uniform_values(rows * states)),
        c(b),
        a(uniform_values(states * channels, -16.0f, -1.0f)),
        d(uniform_values(channels)),
        y(x),
        kept((kernels::checkpoints(rows) + 1) * states * channels),
        scan{channels, states, a, d} {
    scratch.resize(kernels::selective_scan_backward_scratch(scan));
  }
  kernels::MatrixView wide(const Values& v) const { return {v.data(), rows, channels}; }
  kernels::MatrixView narrow(const Values& v) const { return {v.data(), rows, states}; }
};

void selective_scan(benchmark::State& state) {
  const FloatEnv env;
  Selective s(state);
  Values h(s.states * s.channels);
  for (auto _ : state) {
    kernels::selective_scan(s.scan, s.wide(s.x), s.wide(s.delta), s.narrow(s.b), s.narrow(s.c), h, {s.y.data(), s.rows, s.channels});
    benchmark::DoNotOptimize(s.y.data());
  }
  report(state, s.elements());
}
BENCHMARK(selective_scan)->Args({1, 1536, 16})->Args({512, 64, 16})->Args({512, 1536, 16});

void selective_scan_keeping(benchmark::State& state) {
  const FloatEnv env;
  Selective s(state);
  for (auto _ : state) {
    kernels::selective_scan_keeping(s.scan, s.wide(s.x), s.wide(s.delta), s.narrow(s.b), s.narrow(s.c), s.kept,
                                    {s.y.data(), s.rows, s.channels});
    benchmark::DoNotOptimize(s.y.data());
  }
  report(state, s.elements());
}
BENCHMARK(selective_scan_keeping)->Args({512, 64, 16})->Args({512, 1536, 16});

void selective_scan_backward(benchmark::State& state) {
  const FloatEnv env;
  Selective s(state);
  kernels::selective_scan_keeping(s.scan, s.wide(s.x), s.wide(s.delta), s.narrow(s.b), s.narrow(s.c), s.kept,
                                  {s.y.data(), s.rows, s.channels});
  const Values gy = uniform_values(s.rows * s.channels);
  Values gx(gy.size()), gdelta(gy.size()), gb(s.rows * s.states), gc(gb), ga(s.a.size()), gd(s.d.size());
  const kernels::SelectiveScanGradients out{{gx.data(), s.rows, s.channels},
                                            {gdelta.data(), s.rows, s.channels},
                                            {gb.data(), s.rows, s.states},
                                            {gc.data(), s.rows, s.states},
                                            ga,
                                            gd};
  for (auto _ : state) {
    kernels::selective_scan_backward(s.scan, s.wide(s.x), s.wide(s.delta), s.narrow(s.b), s.narrow(s.c), s.kept, s.wide(gy), out,
                                     s.scratch);
    benchmark::DoNotOptimize(gx.data());
  }
  report(state, s.elements());
}
BENCHMARK(selective_scan_backward)->Args({512, 64, 16})->Args({512, 1536, 16});

void diagonal_scan(benchmark::State& state) {
  const FloatEnv env;
  const Sizes s(state);
  const Values a = uniform_values(2 * s.states * s.channels, -0.7f, 0.7f), c = uniform_values(a.size()), d = uniform_values(s.channels);
  const Values x = uniform_values(s.rows * s.channels);
  Values h(a.size()), y(x.size());
  const kernels::DiagonalScan scan{s.channels, s.states, a, c, d};
  for (auto _ : state) {
    kernels::diagonal_scan(scan, {x.data(), s.rows, s.channels}, h, {y.data(), s.rows, s.channels});
    benchmark::DoNotOptimize(y.data());
  }
  report(state, s.elements());
}
BENCHMARK(diagonal_scan)->Args({1, 512, 32})->Args({512, 64, 32})->Args({512, 512, 32});

void diagonal_scan_backward(benchmark::State& state) {
  const FloatEnv env;
  const Sizes s(state);
  const Values a = uniform_values(2 * s.states * s.channels, -0.7f, 0.7f), c = uniform_values(a.size()), d = uniform_values(s.channels);
  const Values x = uniform_values(s.rows * s.channels), gy = x;
  const kernels::DiagonalScan scan{s.channels, s.states, a, c, d};
  Values y(x.size()), kept((kernels::diagonal_checkpoints(s.rows) + 1) * a.size()), scratch(kernels::diagonal_scan_backward_scratch(scan));
  kernels::diagonal_scan_keeping(scan, {x.data(), s.rows, s.channels}, kept, {y.data(), s.rows, s.channels});
  Values gx(x.size()), ga(a.size()), gc(a.size()), gd(s.channels);
  for (auto _ : state) {
    kernels::diagonal_scan_backward(scan, {x.data(), s.rows, s.channels}, kept, {gy.data(), s.rows, s.channels},
                                    {{gx.data(), s.rows, s.channels}, ga, gc, gd}, scratch);
    benchmark::DoNotOptimize(gx.data());
  }
  report(state, s.elements());
}
BENCHMARK(diagonal_scan_backward)->Args({512, 64, 32})->Args({512, 512, 32});

// args: rows, heads, states; head_dim 64
void ssd_step(benchmark::State& state) {
  const FloatEnv env;
  const Sizes s(state);
  const std::size_t head_dim = 64, width = s.channels * head_dim;
  const Values a = uniform_values(s.channels, -16.0f, -1.0f), d = a, x = uniform_values(s.rows * width),
               delta = uniform_values(s.rows * s.channels, 0.001f, 0.1f), b = uniform_values(s.rows * s.states), c = b;
  Values y(x.size()), h(width * s.states);
  const kernels::Ssd scan{s.channels, head_dim, s.states, 1, a, d};
  for (auto _ : state) {
    kernels::ssd_step(scan, {x.data(), s.rows, width}, {delta.data(), s.rows, s.channels}, {b.data(), s.rows, s.states},
                      {c.data(), s.rows, s.states}, h, {y.data(), s.rows, width});
    benchmark::DoNotOptimize(y.data());
  }
  report(state, s.rows * width * s.states);
}
BENCHMARK(ssd_step)->Args({1, 48, 128})->Args({512, 48, 128})->Args({512, 8, 64})->Args({512, 4, 16});

// The whole operation of the tape: forward, or forward and backward. args: rows, heads, states; head_dim 64, batch 4
void ssd_op(benchmark::State& state, bool backward) {
  const FloatEnv env;
  const Sizes s(state);
  const std::size_t head_dim = 64, batch = 4;
  autograd::Tape<float> tape;
  const Values ones(batch * s.rows * s.channels * head_dim, 1.0f);
  const Values x = uniform_values(ones.size()), delta = uniform_values(batch * s.rows * s.channels, 0.001f, 0.1f),
               a = uniform_values(s.channels, -16.0f, -1.0f), b = uniform_values(batch * s.rows * s.states);
  for (auto _ : state) {
    tape.clear();
    const auto vx = tape.leaf({batch, s.rows, s.channels, head_dim}, x), vdelta = tape.leaf({batch, s.rows, s.channels}, delta);
    const auto va = tape.leaf({s.channels}, a), vb = tape.leaf({batch, s.rows, 1, s.states}, b),
               vc = tape.leaf({batch, s.rows, 1, s.states}, b);
    const auto y = autograd::ssd(vx, vdelta, va, vb, vc, tape.leaf({s.channels}, a), 64);
    if (backward) tape.backward(y, std::span<const float>(ones));
    benchmark::DoNotOptimize(y.value().data());
  }
  report(state, batch * s.elements() * head_dim);
}
BENCHMARK_CAPTURE(ssd_op, forward, false)->Args({256, 24, 128})->Args({256, 4, 64})->Args({256, 4, 16});
BENCHMARK_CAPTURE(ssd_op, forward_and_backward, true)->Args({256, 24, 128})->Args({256, 4, 64})->Args({256, 4, 16});

// args: rows, channels, taps
void conv1d(benchmark::State& state) {
  const FloatEnv env;
  const Sizes s(state);
  const Values w = uniform_values(s.states * s.channels), bias = uniform_values(s.channels), x = uniform_values(s.rows * s.channels);
  Values window(w.size()), y(x.size());
  for (auto _ : state) {
    kernels::conv1d_step(w, bias, s.states, window, {x.data(), s.rows, s.channels}, {y.data(), s.rows, s.channels});
    benchmark::DoNotOptimize(y.data());
  }
  report(state, s.rows * s.channels);
}
BENCHMARK(conv1d)->Args({1, 3328, 4})->Args({512, 3328, 4})->Args({512, 128, 4});

void conv1d_backward(benchmark::State& state) {
  const FloatEnv env;
  const Sizes s(state);
  const Values w = uniform_values(s.states * s.channels), x = uniform_values(s.rows * s.channels), gy = x;
  Values gx(x.size()), gw(w.size()), gbias(s.channels);
  for (auto _ : state) {
    kernels::conv1d_backward(w, s.states, {x.data(), s.rows, s.channels}, {gy.data(), s.rows, s.channels}, {gx.data(), s.rows, s.channels},
                             gw, gbias);
    benchmark::DoNotOptimize(gx.data());
  }
  report(state, s.rows * s.channels);
}
BENCHMARK(conv1d_backward)->Args({512, 3328, 4})->Args({512, 128, 4});

}  // namespace
