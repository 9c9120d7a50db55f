// How a model and the simple methods would have done on a recording: one table, and what to make of it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "apps/cli/backtest_report.h"
#include "apps/cli/load.h"
#include "apps/cli/model_use.h"
#include "apps/cli/print.h"
#include "apps/cli/report.h"
#include "apps/cli/verbs.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/data/season.h"
#include "kizzasi/data/windows.h"
#include "kizzasi/forecast/backtest.h"
#include "kizzasi/forecast/backtest_json.h"
#include "kizzasi/forecast/baselines.h"
#include "kizzasi/forecast/limit_check.h"
#include "kizzasi/forecast/model_forecaster.h"
#include "kizzasi/io/file.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

constexpr std::int64_t kLongestLookback = 10'000;  // the equations hold its square

struct Wishes {
  std::vector<std::string> files, seasons, methods;
  std::string horizon, stride, split = "70,10", report, sampling;
  std::int64_t lookback = 0;
  double lambda = 30;
  bool pooled = false;
  bool per_horizon = false, per_channel = false;
  LoadOptions load;
  LimitOptions limits;
};

Error bad_use(std::string what, std::string where, std::string expected) {
  return {Fault::kBadUse, std::move(what), std::move(where), std::move(expected), ""};
}

Result<std::pair<double, double>> shares_of(const std::string& text) {
  double train = 0, validation = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, train);
  const bool comma = first.ec == std::errc{} && first.ptr != end && *first.ptr == ',';
  const auto second = comma ? std::from_chars(first.ptr + 1, end, validation) : first;
  const bool good = comma && second.ec == std::errc{} && second.ptr == end && train > 0 && validation >= 0 && train + validation < 100;
  if (!good) return fail(bad_use(fmt::format("'{}' is no split", text), "--split", "per cent for training and validation, such as 70,10"));
  return std::pair(train / 100, validation / 100);
}

// What can be refused before a file is read.
Result<void> check(const Wishes& wishes) {
  if (const auto shares = shares_of(wishes.split); !shares) return fail(shares.error());
  if (wishes.lookback < 0 || wishes.lookback > kLongestLookback)
    return fail(bad_use(fmt::format("{} rows are out of range", wishes.lookback), "--lookback", fmt::format("0 to {}", kLongestLookback)));
  if (!(wishes.lambda >= 0)) return fail(bad_use(fmt::format("{} is no penalty", wishes.lambda), "--lambda", "0 or more"));
  return {};
}

struct Recording {
  std::vector<Series> series;
  std::vector<std::size_t> seasons;  // rising
};

Result<Recording> read(const Wishes& wishes, const std::string& path, const Context& context) {
  auto series = load_series(path, wishes.load, context);
  if (!series) return fail(series.error());
  Recording recording{std::move(*series), {}};
  for (const std::string& text : wishes.seasons) {
    const auto rows = parse_steps(text, recording.series.front().schema.step_ns, "--season");
    if (!rows) return fail(rows.error());
    recording.seasons.push_back(*rows);
  }
  if (wishes.seasons.empty()) {
    for (const data::Season& season : data::find_seasons(recording.series.front(), 2)) recording.seasons.push_back(season.period);
  }
  std::sort(recording.seasons.begin(), recording.seasons.end());
  recording.seasons.erase(std::unique(recording.seasons.begin(), recording.seasons.end()), recording.seasons.end());
  return recording;
}

// What stands before the methods: settings that the user left open, and those that follow from the recording.
struct Plan {
  BacktestOptions options;
  RidgeOptions ridge;
};

Result<Plan> plan_for(const Wishes& wishes, const Recording& recording, const Predictor* model) {
  const std::int64_t step = recording.series.front().schema.step_ns;
  Plan plan;
  const std::size_t shortest = recording.seasons.empty() ? 1 : recording.seasons.front();
  plan.options.season = shortest;
  plan.options.horizon = model != nullptr ? model->horizon() : shortest > 1 ? shortest : 24;
  if (!wishes.horizon.empty()) {
    const auto rows = parse_steps(wishes.horizon, step, "--horizon");
    if (!rows) return fail(rows.error());
    plan.options.horizon = *rows;
  }
  plan.options.stride = std::max<std::size_t>(1, plan.options.horizon / 2);
  if (!wishes.stride.empty()) {
    const auto rows = parse_steps(wishes.stride, step, "--stride");
    if (!rows) return fail(rows.error());
    plan.options.stride = *rows;
  }
  plan.options.keep = 3;
  if (model != nullptr && !model->levels().empty()) plan.options.levels.assign(model->levels().begin(), model->levels().end());
  plan.ridge.horizon = plan.options.horizon;
  plan.ridge.lambda = wishes.lambda;
  if (wishes.pooled) {
    plan.ridge.channels = RidgeChannels::kPooled;
    plan.ridge.intercept = false;
  }
  const std::size_t longest = recording.seasons.empty() ? 24 : recording.seasons.back();
  plan.ridge.lookback = wishes.lookback > 0 ? static_cast<std::size_t>(wishes.lookback) : std::clamp<std::size_t>(2 * longest, 16, 512);
  return plan;
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f}", 100 * share) : "-"; }

// Errors in the units of the channels may be pooled where there is one channel of one series, or one unit for all.
bool one_unit(const BacktestResult& result) {
  return result.series == 1 &&
         std::all_of(result.units.begin(), result.units.end(), [&](const std::string& unit) { return unit == result.units.front(); }) &&
         (result.targets.size() == 1 || !result.units.front().empty());
}

std::string table_of(const BacktestResult& result) {
  const bool pooled = one_unit(result);
  const std::string unit = pooled && !result.units.front().empty() ? " " + result.units.front() : "";
  std::vector<std::vector<std::string>> rows{{"method"}};
  if (pooled) rows[0].insert(rows[0].end(), {"MAE" + unit, "RMSE", "CRPS"});
  rows[0].insert(rows[0].end(), {"MASE", "RMSSE", "sMAPE %", "WAPE %", "in 80 %", "in 95 %", "MSIS 95"});
  const bool limits = std::any_of(result.methods.begin(), result.methods.end(), [](const MethodResult& m) { return m.values > 0; });
  if (limits) rows[0].push_back("outside %");
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty()) continue;
    const PointMetrics points = method.points_over(0, method.horizon);
    std::optional<QuantileMetrics> quantiles;
    if (!method.quantiles.empty()) quantiles = method.quantiles_over(0, method.horizon);
    auto& row = rows.emplace_back(std::vector<std::string>{method.name});
    if (pooled)
      row.insert(row.end(), {number_text(points.mae()), number_text(points.rmse()), quantiles ? number_text(quantiles->crps()) : "-"});
    row.insert(row.end(), {number_text(method.mase), number_text(method.rmsse), number_text(points.smape_200_percent()),
                           percent(points.wape()), quantiles ? percent(coverage_of(*quantiles, 0.8)) : "-",
                           quantiles ? percent(coverage_of(*quantiles, 0.95)) : "-", number_text(method.msis95)});
    if (limits) row.push_back(percent(static_cast<double>(method.outside) / static_cast<double>(method.values)));
  }
  return columns(rows);
}

// One row for each step ahead (or target), one column for each method: MAE, and coverage of 95 % in brackets.
template <typename Points, typename Quantiles>
std::string grid_of(const BacktestResult& result, const char* corner, const std::vector<std::string>& names, Points points,
                    Quantiles quantiles) {
  std::vector<std::vector<std::string>> rows{{corner}};
  for (const MethodResult& method : result.methods) {
    if (method.problem.empty()) rows[0].push_back(method.name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto& row = rows.emplace_back(std::vector<std::string>{names[i]});
    for (const MethodResult& method : result.methods) {
      if (!method.problem.empty()) continue;
      row.push_back(number_text(points(method, i).mae()));
      if (!method.quantiles.empty()) row.back().append(fmt::format(" ({})", percent(coverage_of(quantiles(method, i), 0.95))));
    }
  }
  return columns(rows);
}

double judged_by(const MethodResult& method, bool pooled) { return pooled ? method.points_over(0, method.horizon).mae() : method.mase; }

// "model.kz is better than seasonal naive 168 by 3.2 % (MAE)".
std::string verdict(const BacktestResult& result, bool has_model) {
  const bool pooled = one_unit(result);
  const MethodResult *reference = nullptr, *best = nullptr;
  double lowest_reference = std::numeric_limits<double>::infinity(), lowest = lowest_reference;
  for (const MethodResult& method : result.methods) {
    const double error = method.problem.empty() ? judged_by(method, pooled) : lowest;
    if (error < lowest) {
      lowest = error;
      best = &method;
    }
    const bool seasonal = method.name.starts_with("seasonal naive") || method.name == "naive";
    if (seasonal && error < lowest_reference) {
      lowest_reference = error;
      reference = &method;
    }
  }
  if (best == nullptr || reference == nullptr) return "";
  const MethodResult& subject = has_model && result.methods[0].problem.empty() ? result.methods[0] : *best;
  if (&subject == reference) return fmt::format("No method here is better than {}.\n", reference->name);
  const double gain = 100 * (1 - judged_by(subject, pooled) / lowest_reference);
  std::string text = fmt::format("{} is {} than {} by {:.1f} % ({}).\n", subject.name, gain >= 0 ? "better" : "worse", reference->name,
                                 std::abs(gain), pooled ? "MAE" : "MASE");
  if (has_model && best != &subject) text += fmt::format("The better choice here is {}.\n", best->name);
  return text;
}

std::string heading(const BacktestResult& result, const Series& series) {
  const MethodResult* any = nullptr;
  for (const MethodResult& method : result.methods) {
    if (method.problem.empty()) any = &method;
  }
  const std::int64_t ns = series.schema.step_ns;
  const bool calendar = ns > 86'400'000'000'000 && ns % 3'600'000'000'000 != 0;  // months and years have no length of their own
  const std::string step = ns > 0 && !calendar ? fmt::format(" of {}", duration_text(ns)) : "";
  return fmt::format(
      "{} forecasts of {} steps{} from rows {} to {}, every {} rows{}; fitted on {} rows, intervals calibrated on the {} after them.\n\n",
      any == nullptr ? 0 : any->forecasts, result.horizon, step, result.first_origin, result.last_origin, result.stride,
      result.series > 1 ? fmt::format(", in {} series", result.series) : "", result.train_end, result.validation_end - result.train_end);
}

Result<BacktestResult> run(const Wishes& wishes, const Recording& recording, Plan& plan, std::shared_ptr<const Predictor> model,
                           const std::string& model_name, ThreadPool& pool, const Context& context) {
  const auto shares = shares_of(wishes.split);
  if (!shares) return fail(shares.error());
  std::vector<std::unique_ptr<Forecaster>> forecasters;
  if (model) forecasters.push_back(model_forecaster(model_name, model));
  for (auto& baseline : standard_baselines(recording.seasons, plan.ridge)) {
    const std::string name = baseline->name();
    const auto begins = [&](const std::string& word) { return name.starts_with(word); };
    if (wishes.methods.empty() || std::any_of(wishes.methods.begin(), wishes.methods.end(), begins))
      forecasters.push_back(std::move(baseline));
  }
  if (forecasters.empty()) return fail(bad_use("no simple method has such a name", "--methods", "the beginning of one, such as ridge"));
  std::vector<Forecaster*> plain;
  for (const auto& each : forecasters) plain.push_back(each.get());

  auto limits = load_limits(wishes.limits);
  if (!limits) return fail(limits.error());
  if (model) limits->insert(limits->end(), model->constraints().begin(), model->constraints().end());
  std::unique_ptr<Guard> guard;
  if (!limits->empty()) {
    auto compiled = compile_guard(recording.series.front().schema, *limits, {});
    if (!compiled) return fail(compiled.error());
    guard = std::move(*compiled);
    plan.options.outside = guard_check(*guard);
  }
  std::vector<BacktestResult> parts;
  std::optional<Error> first_problem;
  for (const Series& series : recording.series) {
    const auto split = data::split_rows(series.rows(), shares->first, shares->second);
    if (split) plan.options.split = *split;
    auto part = split ? kizzasi::backtest(series, plain, plan.options, &pool) : fail(split.error());
    if (part) {
      parts.push_back(std::move(*part));
      continue;
    }
    if (!first_problem) first_problem = part.error();
    if (recording.series.size() > 1) remark(context, fmt::format("Series '{}' is left out: {}", series.id, part.error().text()));
  }
  if (parts.empty()) return fail(*first_problem);
  return join(parts);
}

}  // namespace

Result<int> backtest(Options& options, const Context& context) {
  Wishes wishes;
  wishes.load.prepare.missing = "interpolate";
  options.positionals("[MODEL] FILE", wishes.files, "A trained model, if there is one, and the recording.");
  options.option("--horizon ROWS", wishes.horizon, "Steps ahead: rows or a duration such as 24h. Without it: the model's, or one season.");
  options.option("--stride ROWS", wishes.stride, "From one forecast to the next. Without it: half the horizon.");
  options.option("--season ROWS", wishes.seasons,
                 "Length of a season: rows or a duration; may be repeated. Without it: found in the data.");
  options.option("--split SHARES", wishes.split, "Per cent of the rows to train and to validate on; the rest judges.");
  options.option("--lookback ROWS", wishes.lookback, "Rows that the ridge regression reads. Without it: two of the longest season.");
  options.option("--methods NAME", wishes.methods, "Only the simple methods whose names begin so; may be repeated.");
  options.option("--lambda", wishes.lambda, "Penalty of the ridge regression.");
  options.flag("--ridge-pooled", wishes.pooled, "The ridge regression has one set of weights for all channels, and no constant.");
  options.output("--report FILE", wishes.report, "Writes an HTML report.");
  options.flag("--per-horizon", wishes.per_horizon, "Also one row for each step ahead.");
  options.flag("--per-channel", wishes.per_channel, "Also one row for each channel.");
  declare_sampling(options, wishes.sampling);
  wishes.limits.declare(options);
  wishes.load.declare(options);
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (wishes.files.empty() || wishes.files.size() > 2) {
    return fail(
        bad_use(fmt::format("{} files are named", wishes.files.size()), "backtest", "a recording, with a model before it or alone"));
  }
  if (auto good = check(wishes); !good) return fail(good.error());
  const bool has_model = wishes.files.size() == 2;
  if (!has_model && !wishes.sampling.empty()) {
    return fail(bad_use("a recording alone is judged at its own rate", "--sampling", "a model before the recording"));
  }
  std::shared_ptr<const Predictor> model;
  if (has_model) {
    auto loaded = load_sampled(wishes.files[0], {}, wishes.sampling);
    if (!loaded) return fail(loaded.error());
    model = std::move(*loaded);
  }
  auto recording = read(wishes, wishes.files.back(), context);
  if (!recording) return fail(recording.error());
  for (Series& series : recording->series) {
    if (!model) continue;
    auto chosen = select_for_model(stream_schema(*model), series, wishes.files.back());
    if (!chosen) return fail(chosen.error());
    series = std::move(*chosen);
  }
  auto plan = plan_for(wishes, *recording, model.get());
  if (!plan) return fail(plan.error());
  ThreadPool pool(context.threads);
  const auto result = run(wishes, *recording, *plan, model, has_model ? wishes.files[0] : "", pool, context);
  if (!result) return fail(result.error());
  const std::string sentence = verdict(*result, has_model);
  if (!wishes.report.empty()) {
    if (auto written = write_report(wishes.report, backtest_report(*result, recording->series.front(), sentence)); !written)
      return fail(written.error());
    remark(context, fmt::format("Wrote {}.", wishes.report));
  }
  const bool any = std::any_of(result->methods.begin(), result->methods.end(), [](const MethodResult& m) { return m.problem.empty(); });
  if (context.json) {
    Json json = kizzasi::to_json(*result);
    json["verdict"] = sentence;
    print_json(json);
    return any ? 0 : 1;
  }
  print(heading(*result, recording->series.front()));
  print(table_of(*result));
  if (wishes.per_horizon) {
    std::vector<std::string> steps;
    for (std::size_t h = 0; h < result->horizon; ++h) steps.push_back(fmt::to_string(h + 1));
    print("\nMAE by step ahead (and per cent inside the 95 % interval)\n");
    print(grid_of(
        *result, "step", steps, [](const MethodResult& m, std::size_t h) { return m.points_over(h, h + 1); },
        [](const MethodResult& m, std::size_t h) { return m.quantiles_over(h, h + 1); }));
  }
  if (wishes.per_channel || (!one_unit(*result) && !wishes.per_horizon)) {
    print("\nMAE by channel (and per cent inside the 95 % interval)\n");
    print(grid_of(
        *result, "channel", result->targets, [](const MethodResult& m, std::size_t c) { return m.points_of(c); },
        [](const MethodResult& m, std::size_t c) { return m.quantiles_of(c); }));
  }
  print("\n");
  for (const MethodResult& method : result->methods) {
    if (!method.problem.empty()) print(fmt::format("Left out: {}\n", method.problem));
  }
  const auto thin =
      std::find_if(result->methods.begin(), result->methods.end(), [](const MethodResult& m) { return m.beyond_calibration > 0; });
  if (thin != result->methods.end()) {
    print("The outermost quantiles want more calibration forecasts than there are; the outermost error seen stands in for them.\n");
  }
  print(sentence);
  return any ? 0 : 1;
}

}  // namespace kizzasi::cli
