// Learns a model from a recording.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <optional>

#include "apps/cli/load.h"
#include "apps/cli/options.h"
#include "apps/cli/print.h"
#include "apps/cli/progress.h"
#include "apps/cli/verbs.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/forecast/backtest.h"
#include "kizzasi/forecast/baselines.h"
#include "kizzasi/forecast/learn.h"
#include "kizzasi/forecast/model_forecaster.h"
#include "kizzasi/io/file.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/model/architectures.h"
#include "kizzasi/model/presets.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

std::atomic<bool> interrupted{false};

// While it lives, Ctrl-C and the signal of a machine that goes down ask the training to stop; the second one ends the program.
class StopOnInterrupt {
 public:
  StopOnInterrupt() {
    interrupted = false;
    for (std::size_t i = 0; i < kSignals.size(); ++i) before_[i] = std::signal(kSignals[i], &StopOnInterrupt::note);
  }
  ~StopOnInterrupt() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], before_[i]);
  }
  StopOnInterrupt(const StopOnInterrupt&) = delete;
  StopOnInterrupt& operator=(const StopOnInterrupt&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM};
  static void note(int) {
    interrupted = true;
    for (const int each : kSignals) std::signal(each, SIG_DFL);
  }
  std::array<void (*)(int), kSignals.size()> before_{};
};

struct Request {
  std::string file, output, preset, size, budget, checkpoint;
  bool resume = false;
  LoadOptions load;
  LimitOptions limits;
  LearnOptions learning;
};

// The fields that the user gave, on top of what a preset or size says.
Result<void> take_given(const Options& options, ModelConfig& base, const ModelConfig& user) {
  const Json values = to_json(user);
  Json chosen = Json::object();
  for (const auto& [name, value] : values.members()) {
    if (options.given(name)) chosen[name] = value;
  }
  return apply_fields(base, chosen, "model");
}

std::int64_t patch_for(std::int64_t context) {
  for (const std::int64_t patch : {8, 6, 4, 3, 2}) {
    if (context % patch == 0 && context / patch >= 16) return patch;
  }
  return 1;
}

// What follows from the data and from other fields, where the user did not say.
void complete(const Options& options, const std::vector<Series>& series, double train_share, ModelConfig& model) {
  std::size_t rows = 0;
  for (const Series& one : series) rows = std::max(rows, one.rows());
  const auto training = static_cast<std::int64_t>(train_share * static_cast<double>(rows));
  // A look-back that nobody asked for leaves most of the training part to windows.
  const std::int64_t fitting = std::max<std::int64_t>((training - model.horizon) / 4, 1);
  if (!options.given("context")) model.context = std::min(model.context, fitting);
  if (!options.given("recent")) model.recent = std::min(model.recent, fitting);
  if (model.season > 0 && !options.given("seasons")) model.seasons = std::clamp<std::int64_t>(training / 3 / model.season, 1, 7);
  if (model.windowed && !options.given("recent")) {
    // Where the same slots of past seasons are known, the linear part reads them alone; the backbone reads the recent past.
    model.recent = model.seasons > 0 ? 0 : std::min<std::int64_t>(model.context, 48);
  }
  if (model.windowed && !options.given("patch")) model.patch = patch_for(model.context);
  if (!model.windowed && model.horizon > 1 && !options.given("window_norm")) model.window_norm = "last";
}

Result<ModelConfig> configuration(const Options& options, const Request& request, const std::vector<Series>& series) {
  const ModelConfig& user = request.learning.model;
  ModelConfig base;
  const Schema& schema = series[0].schema;
  if (!request.preset.empty()) {
    const auto found = preset(request.preset, schema.step_ns > 0 ? 1e9 / static_cast<double>(schema.step_ns) : 44100);
    if (!found) return fail(found.error());
    base = *found;
  } else if (user.horizon > 1 || user.season > 0) {
    base = presets::forecast(1).config;
  } else {
    base = presets::sensor(schema.size()).config;
  }
  if (!request.size.empty()) {
    const std::string architecture = options.given("architecture") ? user.backbone.architecture : base.backbone.architecture;
    const auto found = sized(architecture, request.size);
    if (!found) return fail(found.error());
    base.backbone = *found;
  }
  if (auto taken = take_given(options, base, user); !taken) return fail(taken.error());
  complete(options, series, request.learning.train_share, base);
  if (auto good = base.check("model"); !good) return fail(good.error());
  return base;
}

// About what a step must hold at once: inputs, and what each layer keeps for its gradient (numbers a vector as measured, rounded down).
// More than the machine has is refused here, where the reason can be told.
Result<void> check_memory(const ModelConfig& model, const TrainConfig& training, const std::vector<Series>& series) {
  const SignalShape shape(model, channel_counts(series[0].schema));
  if (!shape.has_backbone) return {};
  const auto number = [](std::int64_t n) { return static_cast<double>(n); };
  std::size_t rows = 0;  // a context longer than the recording is refused by `learn`, in those words
  for (const Series& one : series) rows = std::max(rows, one.rows());
  const double vectors = number(training.batch) * static_cast<double>(std::min(shape.rows(), rows));
  const double a_layer = model.backbone.architecture == "s4d" ? 28 * number(model.backbone.d_model) : 36 * number(model.backbone.inner());
  const double a_vector = static_cast<double>(shape.vector()) + number(model.backbone.n_layers) * a_layer;
  const double least = vectors * a_vector * sizeof(float);
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  if (least <= memory) return {};
  return fail({Fault::kUnavailable, fmt::format("a training step would hold at least {:.0f} GB", least * 1e-9), "memory",
               fmt::format("at most the {:.0f} GB of this machine", memory * 1e-9),
               "Take a smaller --context, --batch, --d-model or --n-layers."});
}

// How much better than the seasonal naive (or, without a season, the last value) on the rows after validation.
struct Comparison {
  std::string baseline, best_baseline;
  double model_mae = 0, baseline_mae = 0, best_mae = 0;
  std::size_t forecasts = 0;
};

Result<Comparison> compare(const ModelFile& file, const std::vector<Series>& series, const LearnOptions& learning, ThreadPool& pool) {
  auto predictor = Predictor::make(file);
  if (!predictor) return fail(predictor.error());
  const auto season = static_cast<std::size_t>(file.config.season);
  std::vector<std::unique_ptr<Forecaster>> methods;
  methods.push_back(model_forecaster("model", *predictor));
  methods.push_back(season > 0 ? seasonal_naive_forecaster(season) : naive_forecaster());
  methods.push_back(naive_forecaster());
  if (season > 0) methods.push_back(seasonal_mean_forecaster(season, 7));
  std::vector<Forecaster*> list;
  for (const auto& method : methods) list.push_back(method.get());
  std::vector<BacktestResult> parts;
  for (const Series& one : series) {
    const auto split = data::split_rows(one.rows(), learning.train_share, learning.validation_share);
    if (!split) return fail(split.error());
    BacktestOptions options;
    options.split = *split;
    options.horizon = static_cast<std::size_t>(file.config.horizon);
    options.stride = std::max<std::size_t>(1, (split->rows - split->validation_end) / 300);
    options.season = std::max<std::size_t>(season, 1);
    auto result = backtest(one, list, options, &pool);
    if (!result) return fail(result.error());
    parts.push_back(std::move(*result));
  }
  const auto joined = join(parts);
  if (!joined) return fail(joined.error());
  Comparison out;
  const auto mae = [&](std::size_t i) { return joined->methods[i].points_over(0, joined->horizon).mae(); };
  out.model_mae = mae(0);
  out.baseline = joined->methods[1].name;
  out.baseline_mae = out.best_mae = mae(1);
  out.best_baseline = out.baseline;
  out.forecasts = joined->methods[0].forecasts;
  for (std::size_t i = 2; i < joined->methods.size(); ++i) {
    if (mae(i) < out.best_mae) out.best_mae = mae(i), out.best_baseline = joined->methods[i].name;
  }
  return out;
}

// 0.25, 12 or 1530 windows a second: no small speed reads as none.
std::string speed_text(double windows) { return windows < 10 ? fmt::format("{:.2g}", windows) : fmt::format("{:.0f}", windows); }

// One line a validation on a log, a bar on a terminal.
TrainWatch watch_with(Progress& progress, const TrainConfig& training) {
  return [&progress, &training](const TrainProgress& at) {
    const double by_steps = static_cast<double>(at.step) / static_cast<double>(std::max<std::int64_t>(at.steps, 1));
    const double by_time = training.budget_s > 0 ? at.seconds / training.budget_s : 0;
    progress.show(std::max(by_steps, by_time),
                  fmt::format("step {}  loss {:.4f}  validation {:.4f}  {} windows/s  {} left", at.step, at.loss, at.validation,
                              speed_text(at.samples_per_second), seconds_text(at.seconds_left)));
    if (at.validated) {
      progress.line(fmt::format("step {:>6}  loss {:.5f}  validation {:.5f}  best {:.5f} at step {}  {} windows/s", at.step, at.loss,
                                at.validation, at.best, at.best_step, speed_text(at.samples_per_second)));
    }
    return !interrupted.load();
  };
}

std::string verdict(const Comparison& c) {
  const double change = 100 * (c.baseline_mae - c.model_mae) / c.baseline_mae;
  std::string text =
      fmt::format("{} than {} by {:.1f} % (MAE {} against {}, {} forecasts that training never saw)", change >= 0 ? "better" : "worse",
                  c.baseline, std::abs(change), number_text(c.model_mae), number_text(c.baseline_mae), c.forecasts);
  if (c.best_mae < c.model_mae)
    text += fmt::format("\nThe better choice for this data is {} (MAE {}).", c.best_baseline, number_text(c.best_mae));
  return text;
}

Json breaches_json(const Breaches& breaches) {
  Json json, list = Json::array();
  const ConditionSum all = breaches.all();
  json["checks"] = static_cast<std::int64_t>(all.checks);
  json["share"] = share(all);
  json["mean_size"] = mean_size(all);
  for (std::size_t i = 0; i < breaches.labels.size(); ++i) {
    Json one;
    one["condition"] = breaches.labels[i];
    one["checks"] = static_cast<std::int64_t>(breaches.conditions[i].checks);
    one["share"] = share(breaches.conditions[i]);
    one["mean_size"] = mean_size(breaches.conditions[i]);
    list.push_back(std::move(one));
  }
  json["conditions"] = std::move(list);
  return json;
}

// "0.52 % of 9600 checks, by 0.0031 standard deviations on average"
std::string breaches_text(const Breaches& breaches) {
  const ConditionSum all = breaches.all();
  return fmt::format("{:.3g} % of {} checks, by {:.2g} standard deviations on average over all of them", 100 * share(all), all.checks,
                     mean_size(all));
}

Json answer(const Request& request, const Learned& learned, const std::optional<Comparison>& comparison) {
  Json json;
  json["model"] = request.output;
  json["parameters"] = learned.file.training.find("parameters") != nullptr ? *learned.file.training.find("parameters") : Json();
  json["steps"] = learned.outcome.steps;
  json["best_step"] = learned.outcome.best_step;
  json["end"] = to_string(learned.outcome.end);
  json["shortcut_validation_loss"] = learned.outcome.start_validation;
  json["validation_loss"] = learned.outcome.best_validation;
  if (comparison) {
    json["mae"] = comparison->model_mae;
    json["baseline"] = comparison->baseline;
    json["baseline_mae"] = comparison->baseline_mae;
    json["best_baseline"] = comparison->best_baseline;
    json["best_baseline_mae"] = comparison->best_mae;
  }
  if (learned.breaches) {
    json["broken_before_projection"]["shortcut"] = breaches_json(*learned.shortcut_breaches);
    json["broken_before_projection"]["model"] = breaches_json(*learned.breaches);
  }
  json["history"] = learned.outcome.history;
  return json;
}

}  // namespace

Result<int> train(Options& options, const Context& context) {
  Request request;
  request.learning.training.steps = 600;
  options.positional("FILE", request.file, "The recording: CSV, WAV, npy or npz.");
  options.output("-o,--output MODEL", request.output, "Where the model goes; has to be given.");
  options.option("--preset NAME", request.preset,
                 "A starting point: forecast, sensor, robotics, audio, lightweight, video, control, custom. Without it: forecast where a "
                 "horizon or a season is given, else sensor.");
  options.option("--size NAME", request.size, "Size of the backbone: tiny, small, base, large, xlarge.");
  options.option("--budget DURATION", request.budget, "Stop training after this time, such as 60s or 5min.");
  options.output("--checkpoint FILE", request.checkpoint,
                 "Where the training's state is kept. Without it: beside the model, MODEL.checkpoint.");
  options.flag("--resume", request.resume, "Go on from the checkpoint of an interrupted training with the same options.");
  request.limits.declare(options);
  request.load.declare(options);
  options.fields(request.learning.model, "The model");
  options.fields(request.learning.training, "Training");
  options.fields(request.learning, "What is learned from which rows");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (request.output.empty())
    return fail({Fault::kBadUse, "there is no place for the model", "train", "-o MODEL", "For example -o plant.kizzasi"});
  if (request.checkpoint.empty()) {
    request.checkpoint = request.output + ".checkpoint";
    if (auto good = io::check_writable(request.checkpoint); !good) return fail(good.error());
    if (auto good = io::check_apart(request.checkpoint, request.file); !good) return fail(good.error());
  }
  request.learning.training.seed = static_cast<std::int64_t>(context.seed);
  if (!request.budget.empty()) {
    const auto budget = parse_duration(request.budget, "--budget");
    if (!budget) return fail(budget.error());
    if (*budget <= 0) return fail({Fault::kBadUse, "a budget of no length", "--budget", "a duration above 0", "For example --budget 60s."});
    request.learning.training.budget_s = static_cast<double>(*budget) * 1e-9;
    if (!options.given("steps")) request.learning.training.steps = 1'000'000;
  }

  const auto limits = load_limits(request.limits);
  if (!limits) return fail(limits.error());
  const auto series = load_series(request.file, request.load, context);
  if (!series) return fail(series.error());
  const auto model = configuration(options, request, *series);
  if (!model) return fail(model.error());
  if (auto good = check_memory(*model, request.learning.training, *series); !good) return fail(good.error());
  request.learning.model = *model;
  request.learning.limits = *limits;
  if (limits->empty() && request.learning.penalty.kind() != PenaltyKind::kNone) {
    return fail({Fault::kBadUse, fmt::format("--penalty {}, and no limits", request.learning.penalty.penalty), "train",
                 "limits that are paid for", "Give --limits FILE or --limit 'x <= 3', or leave --penalty out."});
  }
  // Wrong limits are told before the training, not after it.
  if (auto guard = compile_guard((*series)[0].schema, *limits, {}); !guard) return fail(guard.error());

  ThreadPool pool(context.threads);
  const StopOnInterrupt guard;
  std::optional<Learned> learned;
  {
    Progress progress(context, "training");
    LearnHooks hooks;
    hooks.started = [&](const SignalModel& fitted, const ShortcutFit& fit) {
      progress.line(fmt::format("{} with {} parameters, horizon {}, context {}; short-cut solved on {} windows",
                                model->backbone.architecture, fitted.parameter_count(), model->horizon, model->context, fit.windows));
    };
    hooks.watch = watch_with(progress, request.learning.training);
    auto result = learn(*series, request.learning, request.checkpoint, request.resume, pool, SteadyClock(), hooks);
    if (!result) return fail(result.error());
    learned = std::move(*result);
  }

  std::optional<Comparison> comparison;
  if (auto compared = compare(learned->file, *series, request.learning, pool)) {
    comparison = *compared;
    Json& record = learned->file.training;
    record["test_mae"] = comparison->model_mae;
    record["baseline"] = comparison->baseline;
    record["baseline_mae"] = comparison->baseline_mae;
  } else {
    remark(context, fmt::format("No comparison with the baselines: {}", compared.error().text()));
  }
  if (auto written = write_model_file(request.output, learned->file); !written) {
    Error error = written.error();
    error.hint += fmt::format("{}What was learned lies in {}: --resume with a place that can be written goes on from it.",
                              error.hint.empty() ? "" : " ", request.checkpoint);
    return fail(std::move(error));
  }

  if (context.json) {
    print_json(answer(request, *learned, comparison));
  } else {
    std::string text = fmt::format("{}: {} steps ({}), validation loss {:.5f} after {:.5f} of the short-cut alone\n", request.output,
                                   learned->outcome.steps, to_string(learned->outcome.end), learned->outcome.best_validation,
                                   learned->outcome.start_validation);
    if (learned->outcome.steps > 0 && learned->outcome.best_step == 0)
      text += "The backbone found nothing beyond the short-cut, which is kept alone.\n";
    if (learned->breaches) {
      text += fmt::format("Before projection, forecasts of the validation part break {}; those of the short-cut alone {}.\n",
                          breaches_text(*learned->breaches), breaches_text(*learned->shortcut_breaches));
    }
    if (comparison) text += verdict(*comparison) + "\n";
    if (learned->outcome.end == TrainEnd::kStopped)
      text += fmt::format("Interrupted: what was learned is saved; --resume goes on from {}.\n", request.checkpoint);
    print(text);
  }
  return learned->outcome.end == TrainEnd::kStopped ? 130 : 0;
}

}  // namespace kizzasi::cli
