// One step of every architecture and size beside its limit: weights read, state read and written, at the bandwidth that this core has for
// that much memory, and the fixed cost of the kernel calls; all measured in the same run.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "bench/step_limit.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/model/architectures.h"

namespace {

using namespace kizzasi;
using benchmark::Counter;

// Weights stand in memory twice while they are packed.
bool fits(std::size_t parameters) {
  const double free = static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return 2.2 * sizeof(float) * static_cast<double>(parameters) < free;
}

void step(benchmark::State& state, const std::string& architecture, const std::string& size) {
  const auto config = sized(architecture, size);
  const auto found = find_architecture(architecture);
  if (!config || !found) return state.SkipWithError("no such architecture or size");
  if (!fits(parameter_count(*config))) return state.SkipWithError("this machine has not the memory for its weights");
  const auto backbone = (*found)->load(*config, (*found)->initial_weights(*config, Rng(1)));
  if (!backbone) return state.SkipWithError("the initial weights do not load");
  const std::size_t width = static_cast<std::size_t>(config->d_model), state_bytes = (*backbone)->layout().bytes();
  AlignedVector<std::byte> stream(state_bytes);
  (*backbone)->reset(stream);
  std::vector<float> in(width, 0.1f), out(width), scratch((*backbone)->scratch_floats(1));
  const Lane lane{stream.data()};
  const FloatEnv env;
  for (auto _ : state) {
    (*backbone)->step({&lane, 1}, {in.data(), 1, width}, {out.data(), 1, width}, scratch);
    benchmark::DoNotOptimize(out.data());
  }
  const double traffic = static_cast<double>(parameter_count(*config) * sizeof(float) + 2 * state_bytes);
  const double limit = bench::step_limit(traffic, static_cast<std::size_t>(config->n_layers));
  state.counters["bytes"] = Counter(traffic, Counter::kDefaults, Counter::kIs1024);
  state.counters["limit_us"] = limit * 1e6;
  state.counters["of_limit"] = Counter(static_cast<double>(state.iterations()) * limit, Counter::kIsRate | Counter::kInvert);
}

// A frame of a stream at another rate than the training's: dt 1, dt 1/2 announced, and dt 1/2 unannounced (discretised anew each time).
void step_at_rate(benchmark::State& state, const std::string& architecture, float dt, bool announced) {
  const auto config = sized(architecture, "base");
  const auto found = find_architecture(architecture);
  if (!config || !found) return state.SkipWithError("no such architecture or size");
  const auto backbone = (*found)->load(*config, (*found)->initial_weights(*config, Rng(1)));
  if (!backbone) return state.SkipWithError("the initial weights do not load");
  if (announced) (*backbone)->prepare_rate(dt);
  const std::size_t width = static_cast<std::size_t>(config->d_model);
  AlignedVector<std::byte> stream((*backbone)->layout().bytes());
  (*backbone)->reset(stream);
  std::vector<float> in(width, 0.1f), out(width), scratch((*backbone)->scratch_floats(1));
  const Lane lane{stream.data(), dt};
  const FloatEnv env;
  for (auto _ : state) {
    (*backbone)->step({&lane, 1}, {in.data(), 1, width}, {out.data(), 1, width}, scratch);
    benchmark::DoNotOptimize(out.data());
  }
}

const bool kRegistered = [] {
  for (const Architecture& architecture : architectures()) {
    if (!architecture.in_time) continue;
    const std::string name(architecture.name);
    benchmark::RegisterBenchmark(("rate/" + name + "/1").c_str(), [name](benchmark::State& state) {
      step_at_rate(state, name, 1.0f, false);
    })->Unit(benchmark::kMicrosecond);
    for (const bool announced : {true, false}) {
      benchmark::RegisterBenchmark(("rate/" + name + (announced ? "/half" : "/half_unannounced")).c_str(), [=](benchmark::State& state) {
        step_at_rate(state, name, 0.5f, announced);
      })->Unit(benchmark::kMicrosecond);
    }
  }
  for (const Architecture& architecture : architectures()) {
    for (const char* size : {"tiny", "small", "base", "large", "xlarge"}) {
      const std::string name(architecture.name);
      if (!sized(name, size)) continue;
      benchmark::RegisterBenchmark(std::string("step/").append(name).append("/").append(size).c_str(), [name,
                                                                                                        size](benchmark::State& state) {
        step(state, name, size);
      })->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

}  // namespace
