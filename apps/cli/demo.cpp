// Three recordings, learned and judged before the user's eyes: what this program is for, in a few minutes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <optional>

#include "apps/cli/backtest_report.h"
#include "apps/cli/load.h"
#include "apps/cli/options.h"
#include "apps/cli/print.h"
#include "apps/cli/progress.h"
#include "apps/cli/report.h"
#include "apps/cli/verbs.h"
#include "kizzasi/base/clock.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/forecast/backtest.h"
#include "kizzasi/forecast/backtest_json.h"
#include "kizzasi/forecast/baselines.h"
#include "kizzasi/forecast/learn.h"
#include "kizzasi/forecast/limit_check.h"
#include "kizzasi/forecast/model_forecaster.h"
#include "kizzasi/io/file.h"
#include "kizzasi/model/presets.h"

namespace kizzasi::cli {
namespace {

struct Act {
  std::string title, file, summary;
  std::vector<std::string> targets, observed;
  std::vector<std::string> limits;
  std::vector<std::size_t> seasons;  // of the baselines, in rows, rising
  std::size_t stride = 1;
  ModelConfig model;
  std::int64_t steps = 0;
  RidgeOptions ridge;
  std::vector<std::pair<std::string, std::string>> rates;  // targets and the channels of their rates of change
};

std::vector<std::string> joints(const char* stem) {
  std::vector<std::string> names;
  for (int i = 1; i <= 7; ++i) names.push_back(fmt::format("{}{}", stem, i));
  return names;
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Act road() {
  Act act;
  act.title = "Road traffic, a day ahead";
  act.file = "road_traffic_hourly.csv";
  act.summary = "Vehicles an hour on one road, 400 days; 24 hours ahead from every twelfth hour.";
  act.targets = {"vehicles"};
  act.limits = {"vehicles >= 0"};
  act.seasons = {24, 168};
  act.stride = 12;
  act.model = presets::forecast(1).config;
  act.model.context = 168;
  act.model.horizon = 24;
  act.model.season = 168;
  act.model.seasons = 7;
  act.model.recent = 0;
  act.steps = 800;
  act.ridge.lookback = 336;
  return act;
}

Act plant() {
  Act act;
  act.title = "Solar plant, a day ahead";
  act.file = "solar_plant_15min.csv";
  act.summary =
      "AC power every 15 minutes, 104 days; 96 steps ahead from every eighth. At night the plant draws a few watts, never more than 10.";
  act.targets = {"ac_power_w"};
  act.limits = {"ac_power_w >= -10"};
  act.seasons = {96};
  act.stride = 8;
  act.model = presets::forecast(1).config;
  act.model.context = 192;
  act.model.horizon = 96;
  act.model.season = 96;
  act.model.seasons = 7;
  act.model.recent = 16;
  act.steps = 800;
  act.ridge.lookback = 288;
  return act;
}

Act arm() {
  Act act;
  act.title = "Robot arm, frame by frame";
  act.file = "robot_arm_200hz.csv";
  act.summary = "Seven joints at 200 Hz, angles and speeds; 50 frames (a quarter of a second) ahead from every frame.";
  act.targets = joints("q") + joints("dq");
  constexpr double kLow[] = {-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -1.6573, -2.8973};
  constexpr double kHigh[] = {2.8973, 1.7628, 2.8973, -0.4, 2.8973, 2.1127, 2.8973};
  for (int i = 0; i < 7; ++i) {
    act.limits.push_back(fmt::format("{} <= q{} <= {}", kLow[i], i + 1, kHigh[i]));
    act.rates.emplace_back(fmt::format("q{}", i + 1), fmt::format("dq{}", i + 1));
    act.limits.push_back(fmt::format("abs(dq{}) <= {}", i + 1, i < 4 ? 2.175 : 2.61));
  }
  act.model.backbone = presets::robotics(7).config.backbone;
  act.model.backbone.d_model = 32;
  act.model.backbone.n_layers = 2;
  act.model.context = 64;
  act.model.horizon = 50;
  act.model.recent = 16;
  act.model.window_norm = "last";
  act.steps = 150;
  act.ridge.lookback = 20;
  act.ridge.lambda = 0.001;
  act.ridge.channels = RidgeChannels::kJoint;
  act.ridge.inputs = joints("q") + joints("dq");
  return act;
}

struct Played {
  Json part;                    // of the report
  Json numbers;                 // of the methods, for --json
  std::string table, sentence;  // for the screen
  ModelFile model;
  std::size_t outside = 0;  // values of the model outside its limits
};

std::string metric_row(const BacktestResult& result) {
  std::vector<std::vector<std::string>> rows{{"method", "MAE", "RMSE", "CRPS", "in 80 %", "in 95 %", "outside limits %"}};
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty()) {
      rows.push_back({method.name, "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const PointMetrics points = method.points_over(0, method.horizon);
    std::vector<std::string> row{method.name, number_text(points.mae()), number_text(points.rmse())};
    if (method.quantiles.empty()) {
      row.insert(row.end(), {"-", "-", "-"});
    } else {
      const QuantileMetrics quantiles = method.quantiles_over(0, method.horizon);
      row.push_back(number_text(quantiles.crps()));
      for (const double nominal : {0.8, 0.95}) row.push_back(fmt::format("{:.1f}", 100 * coverage_of(quantiles, nominal)));
    }
    row.push_back(method.values > 0 ? fmt::format("{:.2f}", 100 * static_cast<double>(method.outside) / static_cast<double>(method.values))
                                    : "-");
    rows.push_back(std::move(row));
  }
  return columns(rows);
}

// Root mean square error at one step ahead, over the first targets.
double rmse_of_first(const MethodResult& method, std::size_t step, std::size_t targets) {
  PointMetrics sum = method.points[(step - 1) * method.targets];
  for (std::size_t t = 1; t < targets; ++t) sum.merge(method.points[(step - 1) * method.targets + t]);
  return sum.rmse();
}

// The steps ahead at which the arm is judged, over its seven angles, the first of its targets.
constexpr std::array<std::size_t, 3> kArmSteps{1, 10, 50};
constexpr std::size_t kArmAngles = 7;

Json numbers_of(const BacktestResult& result, std::size_t own, bool arm) {
  Json methods = Json::array();
  for (std::size_t i = 0; i < result.methods.size(); ++i) {
    const MethodResult& method = result.methods[i];
    Json row = Json::Object{{"name", method.name}, {"own", i < own}, {"problem", method.problem.empty() ? Json() : Json(method.problem)}};
    if (method.problem.empty()) {
      const PointMetrics points = method.points_over(0, method.horizon);
      row["mae"] = points.mae();
      row["rmse"] = points.rmse();
      row["forecasts"] = method.forecasts;
      row["values"] = method.values;
      row["outside"] = method.outside;
      if (!method.quantiles.empty()) {
        const QuantileMetrics quantiles = method.quantiles_over(0, method.horizon);
        row["crps"] = quantiles.crps();
        for (const double nominal : {0.8, 0.95}) row[fmt::format("coverage_{:.0f}", 100 * nominal)] = coverage_of(quantiles, nominal);
      }
      if (arm) {
        for (const std::size_t step : kArmSteps) row[fmt::format("rmse_angles_{}", step)] = rmse_of_first(method, step, kArmAngles);
      }
    }
    methods.push_back(std::move(row));
  }
  return methods;
}

// Every frame of the test rows through one session, as a control loop would: how long a step takes, and whether a value ever leaves its
// limits.
Json stream_tile(const std::shared_ptr<const Predictor>& predictor, const Series& series, std::size_t begin, std::string& sentence) {
  Session session = Session::prepare(predictor);
  session.prefill(series, 0, begin);
  const SteadyClock clock;
  std::vector<double> micros;
  for (std::size_t row = begin; row < series.rows(); ++row) {
    const double before = clock.seconds();
    session.step(series.frame(row));
    micros.push_back(1e6 * (clock.seconds() - before));
  }
  std::sort(micros.begin(), micros.end());
  const double median = micros[micros.size() / 2], slow = micros[micros.size() * 99 / 100];
  const SessionReport report = session.report();
  sentence += fmt::format("Streamed {} frames: {:.0f} us a step (99 %: {:.0f} us), {} values moved inside their limits.\n", micros.size(),
                          median, slow, report.moved_values);
  Json tile;
  tile["name"] = "A step of the stream";
  tile["value"] = std::round(median * 10) / 10;
  tile["unit"] = "us";
  tile["note"] = fmt::format("99 %: {:.0f} us, on this machine", slow);
  return tile;
}

Result<Played> play(const Act& act, const std::string& folder, double effort, const Context& context, ThreadPool& pool) {
  LoadOptions load;
  load.prepare.targets = act.targets;
  load.prepare.observed = act.observed;
  load.prepare.missing = "interpolate";
  const auto loaded = load_series(folder + "/" + act.file, load, context);
  if (!loaded) return fail(loaded.error());
  std::vector<std::string> wanted = act.targets + act.observed;
  auto chosen = (*loaded)[0].select(wanted);
  if (!chosen) return fail(chosen.error());
  const std::vector<Series> series{std::move(*chosen)};

  std::vector<ConstraintText> limits;
  for (const std::string& text : act.limits) {
    ConstraintText limit;
    limit.name = limit.that = text;
    limit.where = act.file;
    limits.push_back(std::move(limit));
  }
  LearnOptions options;
  options.model = act.model;
  options.training.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(effort * static_cast<double>(act.steps))));
  options.training.patience = 0;
  options.training.seed = static_cast<std::int64_t>(context.seed);
  const auto split = data::split_rows(series[0].rows(), options.train_share, options.validation_share);
  if (!split) return fail(split.error());

  // The simple methods first: their table is on the screen while the model learns.
  const auto guard = compile_guard(series[0].schema, limits, {});
  if (!guard) return fail(guard.error());
  BacktestOptions judged;
  judged.split = *split;
  judged.horizon = static_cast<std::size_t>(act.model.horizon);
  judged.stride = act.stride;
  judged.season = act.seasons.empty() ? 1 : act.seasons.front();
  judged.keep = 3;
  judged.outside = guard_check(**guard);
  RidgeOptions ridge = act.ridge;
  ridge.horizon = judged.horizon;
  std::vector<std::unique_ptr<Forecaster>> methods;
  if (act.seasons.empty()) {
    methods.push_back(naive_forecaster());
    methods.push_back(constant_velocity_forecaster(act.rates));
    methods.push_back(ridge_forecaster(ridge));
  } else {
    methods = standard_baselines(act.seasons, ridge);
  }
  std::vector<Forecaster*> list;
  for (const auto& method : methods) list.push_back(method.get());
  auto result = backtest(series[0], list, judged, &pool);
  if (!result) return fail(result.error());
  if (!context.json) {
    print(fmt::format("\n{}\n{}\n\n{}", act.title, act.summary, metric_row(*result)));
    flush();
  }

  // Then the short-cut alone, the backbone alone, and both.
  Played played;
  std::vector<std::unique_ptr<Forecaster>> own;
  std::shared_ptr<const Predictor> whole;
  for (const char* parts : {"shortcut", "backbone", "both"}) {
    options.model.parts = parts;
    if (std::string_view(parts) != "backbone" && options.model.recent == 0 && options.model.seasons == 0) continue;
    std::optional<Learned> learned;
    {
      Progress progress(context, fmt::format("learning ({})", parts));
      LearnHooks hooks;
      hooks.watch = [&](const TrainProgress& at) {
        progress.show(static_cast<double>(at.step) / static_cast<double>(at.steps),
                      fmt::format("loss {:.4f}  validation {:.4f}  {} left", at.loss, at.validation, seconds_text(at.seconds_left)));
        return true;
      };
      auto done = learn(series, options, "", false, pool, SteadyClock(), hooks);
      if (!done) return fail(done.error());
      learned = std::move(*done);
    }
    learned->file.constraints = limits;
    auto predictor = Predictor::make(learned->file);
    if (!predictor) return fail(predictor.error());
    const bool both = std::string_view(parts) == "both";
    own.push_back(model_forecaster(both ? "Kizzasi" : fmt::format("Kizzasi, {} alone", parts), *predictor));
    if (both) {
      played.model = std::move(learned->file);
      whole = *predictor;
    }
  }
  std::vector<Forecaster*> ours;
  for (auto at = own.rbegin(); at != own.rend(); ++at) ours.push_back(at->get());
  auto judged_ours = backtest(series[0], ours, judged, &pool);
  if (!judged_ours) return fail(judged_ours.error());
  judged_ours->methods.insert(judged_ours->methods.end(), result->methods.begin(), result->methods.end());
  *result = std::move(*judged_ours);

  const MethodResult& model = result->methods[0];
  if (!model.problem.empty()) return fail({Fault::kBroken, model.problem, act.title, "", ""});
  played.outside = model.outside;
  const double mae = model.points_over(0, model.horizon).mae();
  const MethodResult* best = nullptr;
  for (std::size_t i = own.size(); i < result->methods.size(); ++i) {
    const MethodResult& other = result->methods[i];
    if (other.problem.empty() && (best == nullptr || other.points_over(0, other.horizon).mae() < best->points_over(0, best->horizon).mae()))
      best = &other;
  }
  if (best != nullptr) {
    const double theirs = best->points_over(0, best->horizon).mae();
    played.sentence =
        fmt::format("{} than the best simple method ({}) by {:.1f} % (MAE {} against {}); {} of {} values outside the limits.\n",
                    mae <= theirs ? "Better" : "Worse", best->name, 100 * std::abs(theirs - mae) / theirs, number_text(mae),
                    number_text(theirs), model.outside, model.values);
  }
  if (act.seasons.empty()) {
    for (const std::size_t step : kArmSteps) {
      played.sentence += fmt::format("RMSE of the seven angles at step {}:", step);
      for (std::size_t i = 0; i < result->methods.size(); ++i) {
        played.sentence += fmt::format("{} {} {}", i == 0 ? "" : ";", result->methods[i].name,
                                       number_text(rmse_of_first(result->methods[i], step, kArmAngles)));
      }
      played.sentence += " rad.\n";
    }
  }
  std::optional<Json> tile;
  if (act.seasons.empty()) tile = stream_tile(whole, series[0], split->validation_end, played.sentence);
  played.table = metric_row(*result);
  played.numbers = numbers_of(*result, own.size(), act.seasons.empty());
  played.part = backtest_part(*result, series[0], played.sentence);
  played.part["tab"] = act.title.substr(0, act.title.find(','));
  played.part["title"] = act.title;
  played.part["lead"] = act.summary;
  if (tile) played.part["tiles"].push_back(*tile);
  return played;
}

namespace fs = std::filesystem;

// The nearest folder that exists must take new names; told before minutes of learning.
Result<void> check_folder(const std::string& out) {
  std::error_code fault;
  fs::path at = fs::absolute(out, fault);
  while (!fs::exists(at, fault) && at.has_parent_path() && at != at.parent_path()) at = at.parent_path();
  if (out.empty() || !fs::is_directory(at, fault))
    return fail({Fault::kUnavailable, "this is no folder", out.empty() ? "--out" : at.string(), "a folder, there or to be made", ""});
  return io::check_writable((at / "report.html").string());
}

// Makes the folder where it is missing, and writes all files or none.
Result<void> write_folder(const std::string& out, const std::vector<io::FileToWrite>& files) {
  std::vector<fs::path> made;
  std::error_code fault;
  for (fs::path at = fs::absolute(out, fault); !at.empty() && !fs::exists(at, fault) && at != at.parent_path(); at = at.parent_path())
    made.push_back(at);
  fs::create_directories(out, fault);
  Result<void> written =
      fault ? fail({Fault::kUnavailable, fault.message(), out, "a folder that can be written", ""}) : io::write_files(files);
  if (!written) {
    std::error_code ignored;  // a folder that was not made, or is not empty, stays
    for (const fs::path& folder : made) fs::remove(folder, ignored);
  }
  return written;
}

}  // namespace

Result<int> demo(Options& options, const Context& context) {
  std::string data = "data/bundle", out = "demo", only, markdown;
  double effort = 1;
  options.option("--data FOLDER", data, "Where the recordings are.");
  options.option("--out FOLDER", out, "Where the report and the three models go.");
  options.output("--markdown FILE", markdown, "Also the tables as a page of Markdown.");
  options.option("--act NAME", only, "One act alone: road, plant or arm.");
  options.option("--effort X", effort, "Training steps as a multiple of the usual ones.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  const std::vector<std::pair<std::string, Act>> acts{{"road", road()}, {"plant", plant()}, {"arm", arm()}};
  if (!only.empty() && std::none_of(acts.begin(), acts.end(), [&](const auto& act) { return act.first == only; })) {
    return fail({Fault::kBadUse, fmt::format("there is no act '{}'", only), "--act", "road, plant or arm", ""});
  }
  if (!(effort > 0 && effort <= 100))
    return fail({Fault::kBadUse, fmt::format("{} is out of range", effort), "--effort", "above 0, at most 100", ""});
  if (auto good = check_folder(out); !good) return fail(good.error());

  ThreadPool pool(context.threads);
  const SteadyClock clock;
  const double begin = clock.seconds();
  Json content, answer;
  content["title"] = "Kizzasi: three recordings";
  std::vector<io::FileToWrite> files;  // all at the end: a demo that fails leaves nothing behind
  std::size_t outside = 0;
  std::string page = fmt::format(
      "# Quality\n\nWritten by `kizzasi demo --markdown docs/quality.md --seed {}`. Every recording: the first 70 % train, the next 10 % "
      "choose the "
      "weights and calibrate\nthe intervals, the last 20 % judge. Errors in the units of the channels; CRPS from 15 quantiles; the simple "
      "methods have "
      "split-conformal\nintervals, ours adapt from forecast to forecast to what came of the earlier ones. Limits hold for every value of "
      "ours by "
      "construction.\n",
      context.seed);
  for (const auto& [name, act] : acts) {
    if (!only.empty() && name != only) continue;
    auto played = play(act, data, effort, context, pool);
    if (!played) return fail(played.error());
    if (!context.json) print(fmt::format("\n{}\n{}", played->table, played->sentence));
    flush();
    outside += played->outside;
    content["parts"].push_back(std::move(played->part));
    page += fmt::format("\n## {}\n\n{}\n\n```\n{}```\n\n{}", act.title, act.summary, played->table, played->sentence);
    const std::string path = fmt::format("{}/{}.kizzasi", out, name);
    const auto model = model_file_bytes(played->model);
    if (!model) return fail(model.error());
    files.push_back({path, {reinterpret_cast<const char*>(model->data()), model->size()}});
    Json entry;
    entry["act"] = name;
    entry["model"] = path;
    entry["outside"] = played->outside;
    entry["verdict"] = played->sentence;
    entry["methods"] = std::move(played->numbers);
    answer["acts"].push_back(std::move(entry));
  }
  content["foot"] = fmt::format("kizzasi demo, seed {}", context.seed);
  const std::string report = out + "/report.html";
  answer["report"] = report;
  files.push_back({report, report_html(content)});
  if (!markdown.empty()) files.push_back({markdown, page});
  if (auto written = write_folder(out, files); !written) return fail(written.error());
  answer["seconds"] = clock.seconds() - begin;
  if (context.json) {
    print_json(answer);
  } else {
    print(
        fmt::format("\n{} in {}. Open it in a browser; the three models lie beside it.\n", report, seconds_text(clock.seconds() - begin)));
  }
  return outside == 0 ? 0 : 1;
}

}  // namespace kizzasi::cli
