// Kernels beside the limits of the core that runs them, measured in the same run.
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/core_limits.h"
#include "kizzasi/kernels/gemm.h"
#include "kizzasi/kernels/linear.h"
#include "kizzasi/kernels/norms.h"

namespace {

using namespace kizzasi::kernels;
using benchmark::Counter;

std::vector<float> uniform_values(std::size_t n, float low = -1.0f, float high = 1.0f) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(n);
  for (float& v : values) v = uniform(engine);
  return values;
}

double per_iteration(const benchmark::State& state, double amount) { return amount * static_cast<double>(state.iterations()); }

// flops a second, and how much of what the core can do that is
void report_flops(benchmark::State& state, double flops_an_iteration) {
  const double peak = fused_flops_per_second();
  state.counters["GFLOP/s"] = Counter(per_iteration(state, flops_an_iteration) * 1e-9, Counter::kIsRate);
  state.counters["of_peak"] = Counter(per_iteration(state, flops_an_iteration) / peak, Counter::kIsRate);
}

// args: outputs, inputs, precision
void gemv(benchmark::State& state) {
  const auto outputs = static_cast<std::size_t>(state.range(0)), inputs = static_cast<std::size_t>(state.range(1));
  const Precision precision = kPrecisions[static_cast<std::size_t>(state.range(2))];
  const PackedWeight w = PackedWeight::pack(uniform_values(outputs * inputs), outputs, inputs, precision);
  state.SetLabel(std::string(precision_name(precision)));
  const auto x = uniform_values(inputs);
  std::vector<float> y(outputs);
  for (auto _ : state) {
    linear(w, {x.data(), 1, inputs}, {}, {y.data(), 1, outputs});
    benchmark::DoNotOptimize(y.data());
  }
  const double bandwidth = read_bytes_per_second(std::vector<float>(w.bytes() / sizeof(float)));
  state.counters["GB/s"] = Counter(per_iteration(state, static_cast<double>(w.bytes())) * 1e-9, Counter::kIsRate);
  state.counters["of_bandwidth"] = Counter(per_iteration(state, static_cast<double>(w.bytes())) / bandwidth, Counter::kIsRate);
}
BENCHMARK(gemv)->ArgsProduct({{256, 1024}, {256}, {0, 1, 2, 3, 4}})->ArgsProduct({{3072, 8192}, {4096}, {0, 1, 2, 3, 4}});

// args: rows, outputs, inputs, precision
void linear_rows(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0)), outputs = static_cast<std::size_t>(state.range(1)),
             inputs = static_cast<std::size_t>(state.range(2));
  const Precision precision = kPrecisions[static_cast<std::size_t>(state.range(3))];
  const PackedWeight w = PackedWeight::pack(uniform_values(outputs * inputs), outputs, inputs, precision);
  state.SetLabel(std::string(precision_name(precision)));
  const auto x = uniform_values(rows * inputs);
  std::vector<float> y(rows * outputs);
  for (auto _ : state) {
    linear(w, {x.data(), rows, inputs}, {}, {y.data(), rows, outputs});
    benchmark::DoNotOptimize(y.data());
  }
  report_flops(state, 2.0 * static_cast<double>(rows * outputs * inputs));
}
BENCHMARK(linear_rows)
    ->ArgsProduct({{2, 8, 64}, {768}, {256}, {0, 1, 2, 3, 4}})
    ->Args({64, 256, 64, 0})
    ->Args({512, 768, 256, 0})
    ->Args({512, 3072, 768, 0});

// args: m, n, k, kind: 0 a b, 1 a^T b, 2 a b^T
void gemm_of(benchmark::State& state) {
  const auto m = static_cast<std::size_t>(state.range(0)), n = static_cast<std::size_t>(state.range(1)),
             k = static_cast<std::size_t>(state.range(2));
  const bool swap_a = state.range(3) == 1, swap_b = state.range(3) == 2;
  const auto a = uniform_values(m * k), b = uniform_values(k * n);
  std::vector<float> c(m * n);
  const MatrixView left(a.data(), swap_a ? k : m, swap_a ? m : k), right(b.data(), swap_b ? n : k, swap_b ? k : n);
  for (auto _ : state) {
    gemm(Transpose{swap_a}, left, Transpose{swap_b}, right, {c.data(), m, n}, false);
    benchmark::DoNotOptimize(c.data());
  }
  report_flops(state, 2.0 * static_cast<double>(m * n * k));
}
void gemm_sizes(benchmark::internal::Benchmark* b) {
  for (const int kind : {0, 1, 2}) {
    b->Args({64, 64, 64, kind})->Args({512, 256, 64, kind})->Args({512, 512, 512, kind})->Args({2048, 768, 256, kind});
  }
}
BENCHMARK(gemm_of)->Apply(gemm_sizes);

using Activation = void (*)(std::span<const float>, std::span<float>) noexcept;
void activation(benchmark::State& state, Activation f) {
  const auto x = uniform_values(4096, -6.0f, 6.0f);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    f(x, y);
    benchmark::DoNotOptimize(y.data());
  }
  state.counters["elements/s"] = Counter(per_iteration(state, static_cast<double>(x.size())), Counter::kIsRate);
}
BENCHMARK_CAPTURE(activation, exp, exp);
BENCHMARK_CAPTURE(activation, sigmoid, sigmoid);
BENCHMARK_CAPTURE(activation, silu, silu);
BENCHMARK_CAPTURE(activation, tanh, tanh);
BENCHMARK_CAPTURE(activation, softplus, softplus);
BENCHMARK_CAPTURE(activation, gelu, gelu);
BENCHMARK_CAPTURE(activation, softmax, softmax);
BENCHMARK_CAPTURE(activation, rms_norm, +[](std::span<const float> x, std::span<float> y) noexcept { rms_norm(x, {}, 1e-5f, y); });

void dot_of(benchmark::State& state) {
  const auto a = uniform_values(4096), b = uniform_values(4096);
  for (auto _ : state) benchmark::DoNotOptimize(dot(a, b));
  report_flops(state, 2.0 * 4096);
}
BENCHMARK(dot_of);

}  // namespace
