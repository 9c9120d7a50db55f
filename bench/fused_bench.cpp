// Fused kernels beside their parts one after the other. The last argument of each: 0 parts, 1 fused.
#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "kizzasi/kernels/activations.h"
#include "kizzasi/kernels/fused.h"
#include "kizzasi/kernels/norms.h"

namespace {

using namespace kizzasi::kernels;

std::vector<float> uniform(std::size_t n) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
  std::vector<float> values(n);
  for (float& v : values) v = draw(engine);
  return values;
}

// args: rows, width, inner, fused
void feed_forward_rows(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0)), width = static_cast<std::size_t>(state.range(1)),
             inner = static_cast<std::size_t>(state.range(2));
  const auto up = PackedWeight::pack(uniform(inner * width), inner, width), down = PackedWeight::pack(uniform(inner * width), width, inner);
  const auto x = uniform(rows * width);
  std::vector<float> y(rows * width), between(rows * inner);
  for (auto _ : state) {
    if (state.range(3) == 1) {
      feed_forward(up, {}, gelu_tanh, down, {}, {x.data(), rows, width}, {y.data(), rows, width}, between);
    } else {
      linear(up, {x.data(), rows, width}, {}, {between.data(), rows, inner});
      gelu_tanh(between, between);
      linear(down, {between.data(), rows, inner}, {}, {y.data(), rows, width});
    }
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(feed_forward_rows)->ArgsProduct({{1, 64, 512}, {256}, {1024}, {0, 1}})->Unit(benchmark::kMicrosecond);

// args: rows, outputs, inputs, fused
void linear_silu(benchmark::State& state) {
  const auto rows = static_cast<std::size_t>(state.range(0)), outputs = static_cast<std::size_t>(state.range(1)),
             inputs = static_cast<std::size_t>(state.range(2));
  const auto w = PackedWeight::pack(uniform(outputs * inputs), outputs, inputs);
  const auto x = uniform(rows * inputs);
  std::vector<float> y(rows * outputs);
  for (auto _ : state) {
    if (state.range(3) == 1) {
      linear_then(w, {x.data(), rows, inputs}, {}, silu, {y.data(), rows, outputs});
    } else {
      linear(w, {x.data(), rows, inputs}, {}, {y.data(), rows, outputs});
      silu(y, y);
    }
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(linear_silu)->ArgsProduct({{1, 64, 512}, {1024}, {64}, {0, 1}})->Unit(benchmark::kMicrosecond);

// args: numbers in the row, fused
void norm_silu(benchmark::State& state) {
  const auto size = static_cast<std::size_t>(state.range(0));
  const auto x = uniform(size), gain = uniform(size), bias = uniform(size);
  std::vector<float> y(size);
  for (auto _ : state) {
    if (state.range(1) == 1) {
      layer_norm_then(x, gain, bias, 1e-5f, silu, y);
    } else {
      layer_norm(x, gain, bias, 1e-5f, y);
      silu(y, y);
    }
    benchmark::DoNotOptimize(y.data());
  }
}
BENCHMARK(norm_silu)->ArgsProduct({{256, 16384, 1 << 20}, {0, 1}})->Unit(benchmark::kMicrosecond);

}  // namespace
