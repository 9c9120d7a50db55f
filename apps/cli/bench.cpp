// Speed on this machine: one frame through each preset, beside the least time in which this core can read what a step must read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

#include "apps/cli/bench_layers.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/base/aligned.h"
#include "kizzasi/base/clock.h"
#include "kizzasi/base/float_env.h"
#include "kizzasi/base/suggest.h"
#include "kizzasi/kernels/core_limits.h"
#include "kizzasi/model/presets.h"
#include "kizzasi/model/signal_model.h"

namespace kizzasi::cli {
namespace {

struct Speed {
  std::string preset;
  std::size_t channels = 1, parameters = 0, weight_bytes = 0, state_bytes = 0;
  double step = 0, run = 0;      // seconds a frame: one at a time with its prediction; in blocks without predicting
  double memory = 0, calls = 0;  // seconds: the two parts of the limit
  double bytes_per_second = 0;   // at which a block of this size is read
  double limit() const { return memory + calls; }
};

// As many channels as the signals of a preset usually have.
std::size_t usual_channels(std::string_view preset) {
  if (preset == "robotics") return 7;
  if (preset == "sensor") return 8;
  if (preset == "video") return 64;
  if (preset == "control") return 4;
  return 1;
}

// The least seconds of one call, among tries for `seconds`.
double least_time(const Clock& clock, double seconds, const std::function<void()>& call) {
  double best = 1e9;
  std::size_t repeats = 1;
  const double end = clock.seconds() + seconds;
  do {
    const double before = clock.seconds();
    for (std::size_t r = 0; r < repeats; ++r) call();
    const double took = clock.seconds() - before;
    if (took < 2e-4 && clock.seconds() < end) {
      repeats *= 2;  // too short for the clock
      continue;
    }
    best = std::min(best, took / static_cast<double>(repeats));
  } while (clock.seconds() < end);
  return best;
}

class Stepper {
 public:
  static Result<Stepper> make(const ModelConfig& config, std::size_t channels, Rng rng) {
    const ChannelCounts counts{channels, 0, 0};
    if (auto checked = config.check("bench"); !checked) return fail(checked.error());
    auto model = SignalModel::load(config, counts, SignalModel::initial_weights(config, counts, rng));
    if (!model) return fail(model.error());
    return Stepper(*std::move(model));
  }

  const SignalModel& model() const { return model_; }

  void step() {
    for (float& value : frame_) value = -value;
    model_.push(state_, frame_, 1.0F, scratch_);
    model_.predict(state_, {}, 0, 1, params_, anchor_, spread_, scratch_);
  }

  void run(std::size_t rows) {
    block_.resize(rows * frame_.size(), 0.25F);
    model_.push_rows(state_, {block_.data(), rows, frame_.size()}, 1.0F, scratch_);
  }

 private:
  explicit Stepper(SignalModel model) : model_(std::move(model)) {
    const std::size_t channels = model_.counts().inputs(), targets = model_.counts().targets;
    state_.resize(model_.layout().bytes());
    scratch_.resize(model_.scratch_floats());
    frame_.resize(channels);
    for (std::size_t c = 0; c < channels; ++c) frame_[c] = c % 2 == 0 ? 0.5F : -0.75F;
    params_.resize(targets * model_.shape().parameters);
    anchor_.resize(targets);
    spread_.resize(targets);
    model_.reset(state_);
  }

  SignalModel model_;
  AlignedVector<std::byte> state_;
  AlignedVector<float> scratch_, frame_, params_, anchor_, spread_, block_;
};

// A model of the same layers and of the least widths: its step is calls and little else.
ModelConfig least_widths(ModelConfig config) {
  config.backbone.d_model = 8;
  config.backbone.d_inner = 0;
  config.backbone.head_dim = 8;
  config.backbone.d_state = 4;
  config.backbone.n_groups = 1;
  config.d_decoder = 8;
  return config;
}

Result<Speed> measure(std::string_view name, double seconds, std::uint64_t seed, const Clock& clock) {
  const auto config = preset(name);
  if (!config) return fail(config.error());
  Speed out;
  out.preset = name;
  out.channels = usual_channels(name);
  auto stepper = Stepper::make(*config, out.channels, Rng(seed));
  if (!stepper) return fail(stepper.error());
  auto least = Stepper::make(least_widths(*config), 1, Rng(seed));
  if (!least) return fail(least.error());
  const FloatEnv environment;
  out.parameters = stepper->model().parameter_count();
  out.weight_bytes = stepper->model().weight_bytes();
  out.state_bytes = stepper->model().layout().bytes();

  const double touched = static_cast<double>(out.weight_bytes + 2 * out.state_bytes);
  const std::vector<float> block(static_cast<std::size_t>(touched) / sizeof(float) + 1, 1.0F);

  constexpr std::size_t kBlock = 64;
  constexpr int kTurns = 4;  // in turn, so that a neighbour on the machine disturbs all or none
  out.step = out.run = out.calls = 1e9;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double share = seconds / kTurns;
    out.step = std::min(out.step, least_time(clock, 0.5 * share, [&] { stepper->step(); }));
    out.bytes_per_second = std::max(out.bytes_per_second, kernels::read_bytes_per_second(block));
    out.run = std::min(out.run, least_time(clock, 0.3 * share, [&] { stepper->run(kBlock); }) / kBlock);
    out.calls = std::min(out.calls, least_time(clock, 0.2 * share, [&] { least->step(); }));
  }
  out.memory = touched / out.bytes_per_second;
  return out;
}

Json to_json(const Speed& speed) {
  Json row = Json::object();
  row["preset"] = speed.preset;
  row["channels"] = speed.channels;
  row["parameters"] = speed.parameters;
  row["weight_bytes"] = speed.weight_bytes;
  row["state_bytes"] = speed.state_bytes;
  row["step_us"] = speed.step * 1e6;
  row["run_us"] = speed.run * 1e6;
  row["limit_us"] = speed.limit() * 1e6;
  row["memory_us"] = speed.memory * 1e6;
  row["calls_us"] = speed.calls * 1e6;
  row["gb_per_s"] = speed.bytes_per_second * 1e-9;
  row["times_limit"] = speed.step / speed.limit();
  return row;
}

std::vector<std::string> cells(const Speed& speed) {
  return {speed.preset,
          fmt::format("{}", speed.channels),
          fmt::format("{}", speed.parameters),
          fmt::format("{:.0f}", static_cast<double>(speed.weight_bytes) / 1024),
          fmt::format("{:.0f}", static_cast<double>(speed.state_bytes) / 1024),
          fmt::format("{:.1f}", speed.step * 1e6),
          fmt::format("{:.1f}", speed.limit() * 1e6),
          fmt::format("{:.2f}", speed.step / speed.limit()),
          fmt::format("{:.1f}", speed.run * 1e6),
          fmt::format("{:.1f}", speed.bytes_per_second * 1e-9)};
}

}  // namespace

Result<int> bench(Options& options, const Context& context) {
  double seconds = 4;
  std::vector<std::string> names;
  options.option("--seconds", seconds, "How long to measure, all in all.");
  std::string model;
  options.option("--model FILE", model, "Takes a step of this model apart, layer by layer, and names its bottleneck.");
  options.option("--preset NAME", names, "Which preset; may be repeated. Without it, all.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (!(seconds > 0 && seconds <= 3600)) {
    return fail({Fault::kBadUse, fmt::format("{} is out of range", seconds), "--seconds", "more than 0 and at most 3600", ""});
  }
  if (!model.empty()) {
    if (!names.empty()) return fail({Fault::kBadUse, "it is given beside --preset", "--model", "one of the two", ""});
    return bench_layers(model, seconds, context);
  }
  const std::vector<std::string> known(preset_names().begin(), preset_names().end());
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return fail({Fault::kBadUse, fmt::format("there is no preset '{}'", name), "--preset", fmt::format("one of {}", fmt::join(known, ", ")),
                 did_you_mean(name, known)});
  }
  if (names.empty()) names = known;

  const SteadyClock clock;
  Json answer = Json::object();
  answer["threads"] = 1;
  answer["gflop_per_s"] = kernels::fused_flops_per_second() * 1e-9;
  std::vector<std::vector<std::string>> rows{
      {"preset", "channels", "parameters", "weights KiB", "state KiB", "step us", "limit us", "times limit", "run us", "GB/s"}};
  for (const std::string& name : names) {
    const auto speed = measure(name, seconds / static_cast<double>(names.size()), context.seed, clock);
    if (!speed) return fail(speed.error());
    answer["presets"].push_back(to_json(*speed));
    rows.push_back(cells(*speed));
  }
  if (context.json) {
    print_json(answer);
    return 0;
  }
  print(columns(rows));
  print(
      "\nstep: one frame and its prediction, one thread. run: a frame inside a block of 64, without predicting.\n"
      "limit: weights once and the state twice at the measured GB/s of a block of that size, and the same calls on the least widths.\n");
  return 0;
}

}  // namespace kizzasi::cli
