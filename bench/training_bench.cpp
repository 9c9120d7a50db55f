// What a training step costs beyond its matrix products: single operations of the tape, a small network, and the optimiser.
#include <benchmark/benchmark.h>

#include <string>

#include "kizzasi/autograd/ops.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/train/head_loss.h"
#include "kizzasi/train/optimizer.h"

namespace {

using namespace kizzasi;
using autograd::Tape;
using autograd::Var;
using benchmark::Counter;

std::vector<float> normal_values(std::size_t n, double deviation = 1) {
  Rng rng(1);
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(deviation * rng.normal());
  return values;
}

void report_ns(benchmark::State& state, const char* name, double amount) {
  state.counters[name] = Counter(amount * static_cast<double>(state.iterations()) * 1e-9, Counter::kIsRate | Counter::kInvert);
}

// Forward and backward of one operation on (512, 256) floats, in ns an element.
template <typename Op>
void operation(benchmark::State& state, const Op& op) {
  const FloatEnv settings;
  const std::size_t rows = 512, columns = 256;
  const auto values = normal_values(rows * columns), gain = normal_values(columns);
  Tape<float> tape;
  for (auto _ : state) {
    tape.clear();
    const auto x = tape.borrow({rows, columns}, values), g = tape.borrow({columns}, gain);
    const auto y = op(x, g);
    tape.backward(y, std::span<const float>(values).first(y.value().size()));
    benchmark::DoNotOptimize(tape.grad(x).data());
  }
  report_ns(state, "ns/element", static_cast<double>(rows * columns));
}

// A network of three layers on (rows, 64) -> width -> width -> 13 quantiles, with norm and gate.
struct Network {
  std::size_t rows, width;
  std::vector<float> x, w1, w2, w3, gain, target, ones;

  Network(std::size_t r, std::size_t w)
      : rows(r),
        width(w),
        x(normal_values(r * 64)),
        w1(normal_values(w * 64, 0.1)),
        w2(normal_values(w * w, 0.05)),
        w3(normal_values(13 * w, 0.05)),
        gain(normal_values(w)),
        target(normal_values(r)),
        ones(r, 1.0f) {}

  double multiplications() const { return 3.0 * static_cast<double>(rows * width) * static_cast<double>(64 + width + 13); }

  void step(Tape<float>& tape) const {
    tape.clear();
    const auto v1 = tape.borrow({width, 64}, w1), v2 = tape.borrow({width, width}, w2), v3 = tape.borrow({13, width}, w3);
    const auto g = tape.borrow({width}, gain);
    auto h = autograd::silu(autograd::linear(tape.constant({rows, 64}, x), v1));
    h = autograd::add(h, autograd::silu(autograd::linear(autograd::rms_norm(h, g, 1e-5f), v2)));
    const auto loss = head_loss(HeadConfig{}, autograd::linear(h, v3), tape.constant({rows}, target), tape.constant({rows}, ones));
    tape.backward(loss);
    benchmark::DoNotOptimize(tape.grad(v1).data());
  }
};

void network_step(benchmark::State& state) {
  const FloatEnv settings;
  const Network network(static_cast<std::size_t>(state.range(0)), static_cast<std::size_t>(state.range(1)));
  Tape<float> tape;
  for (auto _ : state) network.step(tape);
  report_ns(state, "ns/row", static_cast<double>(network.rows));
  state.counters["GFLOP/s"] = Counter(2e-9 * network.multiplications() * static_cast<double>(state.iterations()), Counter::kIsRate);
}

void update(benchmark::State& state, const std::string& name) {
  const FloatEnv settings;
  const std::size_t count = 1 << 20;
  NamedTensors weights{{"w", Tensor({1024, 1024}, normal_values(count))}};
  OptimizerConfig config;
  config.optimizer = name;
  auto optimizer = *Optimizer::of(config, ParameterLayout(weights));
  const auto gradient = normal_values(count, 1e-3);
  for (auto _ : state) optimizer.step(weights, gradient, 1e-4);
  report_ns(state, "ns/parameter", static_cast<double>(count));
}

void head(benchmark::State& state, const std::string& kind) {
  const FloatEnv settings;
  HeadConfig config;
  config.kind = kind;
  const std::size_t rows = 4096;
  const auto params = normal_values(rows * config.parameters()), target = normal_values(rows);
  const std::vector<float> ones(rows, 1.0f);
  Tape<float> tape;
  for (auto _ : state) {
    tape.clear();
    const auto p = tape.borrow({rows, config.parameters()}, params);
    tape.backward(head_loss(config, p, tape.constant({rows}, target), tape.constant({rows}, ones)));
  }
  report_ns(state, "ns/target", static_cast<double>(rows));
}

BENCHMARK_CAPTURE(operation, add, [](auto x, auto) { return autograd::add(x, x); });
BENCHMARK_CAPTURE(operation, mul, [](auto x, auto) { return autograd::mul(x, x); });
BENCHMARK_CAPTURE(operation, mul_row, [](auto x, auto g) { return autograd::mul(x, g); });
BENCHMARK_CAPTURE(operation, silu, [](auto x, auto) { return autograd::silu(x); });
BENCHMARK_CAPTURE(operation, gelu, [](auto x, auto) { return autograd::gelu(x); });
BENCHMARK_CAPTURE(operation, sigmoid, [](auto x, auto) { return autograd::sigmoid(x); });
BENCHMARK_CAPTURE(operation, softplus, [](auto x, auto) { return autograd::softplus(x); });
BENCHMARK_CAPTURE(operation, exp, [](auto x, auto) { return autograd::exp(x); });
BENCHMARK_CAPTURE(operation, rms_norm, [](auto x, auto g) { return autograd::rms_norm(x, g, 1e-5f); });
BENCHMARK_CAPTURE(operation, layer_norm, [](auto x, auto g) { return autograd::layer_norm(x, g, {}, 1e-5f); });
BENCHMARK_CAPTURE(operation, slice, [](auto x, auto) { return autograd::slice(x, 1, 64, 192); });
BENCHMARK_CAPTURE(operation, permute, [](auto x, auto) { return autograd::permute(x, {1, 0}); });
BENCHMARK_CAPTURE(operation, softmax, [](auto x, auto) { return autograd::softmax(x); });
BENCHMARK(network_step)->Args({32, 64})->Args({512, 64})->Args({512, 256})->Args({2048, 256});
BENCHMARK_CAPTURE(update, adamw, std::string("adamw"));
BENCHMARK_CAPTURE(update, sgd, std::string("sgd"));
BENCHMARK_CAPTURE(head, gaussian, std::string("gaussian"));
BENCHMARK_CAPTURE(head, student_t, std::string("student_t"));
BENCHMARK_CAPTURE(head, mixture, std::string("mixture"));
BENCHMARK_CAPTURE(head, quantiles, std::string("quantiles"));

}  // namespace
