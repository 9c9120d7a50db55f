// Monitors in nanoseconds a sample: the verdict of a response property, and its robustness, over intervals of growing length.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "kizzasi/logic/monitor/online.h"

namespace {

using namespace kizzasi;

// always[0, w] (a >= 0.5 -> eventually[0, w / 2] b >= 0.5) over a signal that obeys most of the time.
void response(benchmark::State& state, MonitorKind kind) {
  Schema schema;
  schema.channels = {{"a", "", Role::kTarget}, {"b", "", Role::kTarget}};
  schema.step_ns = 1'000'000;
  const std::int64_t width = state.range(0);
  const std::string w = std::to_string(width), half = std::to_string(width / 2);
  ConstraintText text;
  text.that = "always[0," + w + "] (a >= 0.5 -> eventually[0," + half + "] b >= 0.5)";
  const auto monitor = std::move(*Monitor::create(schema, std::span(&text, 1), kind));
  std::vector<std::byte> block(monitor->state_bytes());
  std::vector<double> scratch(monitor->scratch_doubles());
  monitor->reset(block);
  constexpr std::size_t kFrames = 4096;
  std::vector<double> frames(2 * kFrames);
  for (std::size_t i = 0; i < kFrames; ++i) {
    frames[2 * i] = std::sin(0.37 * static_cast<double>(i));
    frames[2 * i + 1] = std::cos(0.11 * static_cast<double>(i));
  }
  MonitorVerdict verdict;
  std::int64_t time = 0;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kFrames; ++i) {
      monitor->step(block, time, std::span(frames).subspan(2 * i, 2), std::span(&verdict, 1), scratch);
      time += schema.step_ns;
    }
    benchmark::DoNotOptimize(verdict);
  }
  state.counters["s/sample"] = benchmark::Counter(static_cast<double>(kFrames) * static_cast<double>(state.iterations()),
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

BENCHMARK_CAPTURE(response, verdict, MonitorKind::kVerdict)->Name("monitor_verdict")->Arg(100)->Arg(1000)->Arg(10'000);
BENCHMARK_CAPTURE(response, robustness, MonitorKind::kRobustness)->Name("monitor_robustness")->Arg(100)->Arg(1000)->Arg(10'000);

}  // namespace
