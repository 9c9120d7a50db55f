// Values and intervals ahead of a recording's end.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/cli/forecast_report.h"
#include "apps/cli/model_use.h"
#include "apps/cli/plan.h"
#include "apps/cli/prediction_lines.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/data/prepare.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/io/file.h"

namespace kizzasi::cli {
namespace {

constexpr double kMostSampledValues = 1e8;

struct Ask {
  std::string model, file, horizon, plan, report;
  std::int64_t samples = 0, lookback = 0;
  double temperature = 1;
  bool hold = false, resample = false, whole = false;
  ModelUse use;
  io::CsvOptions csv;
};

// Known-future values after the last row that was measured: rows of the file itself in which nothing else is given.
std::size_t measured_rows(const Predictor& predictor, const Series& series) {
  const std::size_t past = predictor.targets() + predictor.counts().observed;
  const auto measured = [&](std::size_t row) {
    return std::any_of(predictor.order().begin(), predictor.order().begin() + static_cast<std::ptrdiff_t>(past),
                       [&](std::size_t channel) { return !std::isnan(series.at(row, channel)); });
  };
  std::size_t rows = series.rows();
  if (predictor.counts().known == 0) return rows;
  while (rows > 0 && !measured(rows - 1)) --rows;
  return rows;
}

// Fills the request with what is known of the future; returns how many known-future values are not.
std::size_t plan_ahead(const Predictor& p, const Series& series, std::size_t rows, const Plan& plan, bool hold, ForecastRequest& request) {
  const ChannelCounts counts = p.counts();
  const auto value = [&](std::size_t place, std::size_t step) {
    const std::size_t channel = p.order()[place], row = rows + step;
    if (row < series.rows() && !std::isnan(series.at(row, channel))) return series.at(row, channel);
    return plan.at(p.schema().channels[channel].name, data::row_time(series, row), step);
  };
  std::size_t unknown = 0;
  for (std::size_t step = 0; step < request.horizon; ++step) {
    for (std::size_t k = 0; k < counts.known; ++k) {
      request.known.push_back(value(counts.targets + counts.observed + k, step));
      unknown += std::isnan(request.known.back()) ? 1 : 0;
    }
    for (std::size_t o = 0; o < counts.observed; ++o) request.observed.push_back(value(counts.targets + o, step));
  }
  request.observed_plan = !plan.empty() ? ObservedPlan::kGiven : hold ? ObservedPlan::kHold : ObservedPlan::kRefuse;
  return unknown;
}

// What --json answers: one object whose steps are those of every series in turn. Its numbers keep the decimals that were asked for.
struct JsonFrame {
  std::string head, tail;
};

JsonFrame json_frame(const Ask& ask, const std::vector<Forecast>& forecasts, std::size_t unknown) {
  std::size_t moved = 0;
  double distance = 0;
  for (const Forecast& f : forecasts) {
    moved += f.moved_values;
    distance += f.distance;
  }
  Json head = Json::Object{{"model", ask.model},
                           {"source", ask.file},
                           {"horizon", forecasts.front().block.horizon},
                           {"levels", Json::list(forecasts.front().block.levels)},
                           {"moved_values", moved},
                           {"moved_distance", distance},
                           {"unknown_future_values", unknown}};
  std::string text = head.dump();
  text.pop_back();
  return {text + ", \"steps\": [\n", "]}\n"};
}

// False when nobody reads any more.
bool print_forecast(const Ask& ask, bool json, const Predictor& p, const Series& series, const Forecast& f, bool many, bool first) {
  const PredictionLines lines(p, series.schema, f.block.levels,
                              {json, many, false, ask.use.decimals, static_cast<std::size_t>(ask.samples)});
  const std::size_t targets = p.targets(), a_level = f.block.horizon * targets;
  std::string text = first ? lines.head() : "";
  for (std::size_t h = 0; h < f.block.horizon; ++h) {
    const std::size_t at = h * targets;
    if (json && !(first && h == 0)) text += ",";
    text += lines.line({f.time_ns[h], series.id, h + 1, f.status[h], f.block.points.data() + at, part(f.block.quantiles, at), a_level,
                        part(f.samples, at), a_level});
    if (text.size() < 1 << 16) continue;
    if (!print(text)) return false;
    text.clear();
  }
  return print(text);
}

Result<void> check(const Ask& ask) {
  const auto range = [](std::int64_t value, std::int64_t low, std::int64_t high, const char* where) -> Result<void> {
    if (value >= low && value <= high) return {};
    return fail({Fault::kBadUse, fmt::format("{} is out of range", value), where, fmt::format("{} to {}", low, high), ""});
  };
  if (auto good = range(ask.samples, 0, 1'000'000, "--samples"); !good) return good;
  if (!(ask.temperature >= 0 && ask.temperature <= 100))
    return fail({Fault::kBadUse, fmt::format("{} is out of range", ask.temperature), "--temperature", "0 to 100", ""});
  return range(ask.lookback, 0, std::numeric_limits<std::int64_t>::max(), "--lookback");
}

}  // namespace

Result<int> forecast(Options& options, const Context& context) {
  Ask ask;
  options.positional("MODEL", ask.model, "A model that train has written.");
  options.positional("FILE", ask.file, "The recording whose end is forecast from.");
  options.option("-h,--horizon H", ask.horizon, "Steps ahead, or a time such as 6h; the model's own horizon where nothing is said.");
  options.option("--samples N", ask.samples, "Also gives that many sample paths, which obey every limit as wholes.");
  options.flag(
      "--whole", ask.whole,
      "The limits are met by all steps together, at the least distance in all: what a rate forbids is begun early. Default: step by step.");
  options.option("--temperature X", ask.temperature, "Spread of the sample paths about the median; 1: as the model says.");
  declare_future(options, ask.plan);
  options.flag("--hold", ask.hold, "Observed channels hold their last value beyond the model's own horizon.");
  options.flag("--resample", ask.resample, "Brings the recording to the model's step where its own differs.");
  options.option("--lookback N", ask.lookback, "Rows before the end that the model sees; 0: as many as it needs.");
  options.output("--report FILE", ask.report, "Writes an HTML page with history, forecast, intervals and limits.");
  ask.use.declare(options);
  options.fields(ask.csv, "The file");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (auto good = check(ask); !good) return fail(good.error());

  auto predictor = load_model(ask.model, ask.use, false);
  if (!predictor) return fail(predictor.error());
  const Predictor& p = **predictor;
  ForecastRequest request;
  request.horizon = p.horizon();
  if (!ask.horizon.empty()) {
    const auto horizon = parse_steps(ask.horizon, p.schema().step_ns, "--horizon");
    if (!horizon) return fail(horizon.error());
    request.horizon = *horizon;
  }
  if (static_cast<double>(ask.samples) * static_cast<double>(request.horizon * p.targets()) > kMostSampledValues) {
    return fail({Fault::kBadUse,
                 fmt::format("{} paths of {} steps of {} channels are too many values", ask.samples, request.horizon, p.targets()),
                 "--samples", fmt::format("at most {:.0f} values in all", kMostSampledValues), "Ask for fewer paths or steps."});
  }
  request.samples = static_cast<std::size_t>(ask.samples);
  request.temperature = ask.temperature;
  request.whole = ask.whole;
  request.seed = context.seed;
  auto recording = read_for_model(stream_schema(p), ask.file, ask.csv, {.some = false, .resample = ask.resample});
  if (!recording) return fail(recording.error());
  const auto plan = Plan::read(ask.plan, p, ask.csv);
  if (!plan) return fail(plan.error());

  // Everything is forecast before anything is printed: an error leaves no half answer.
  std::vector<Forecast> forecasts;
  std::size_t unknown = 0;
  for (const Series& series : *recording) {
    const std::size_t rows = measured_rows(p, series);
    if (rows == 0) {
      return fail({Fault::kBadInput, "no row holds a measured value",
                   series.id.empty() ? ask.file : fmt::format("{}: series '{}'", ask.file, series.id),
                   fmt::format("rows of {}", fmt::join(p.schema().names(), ", ")), ""});
    }
    const std::size_t lookback = ask.lookback == 0 ? p.lookback() : static_cast<std::size_t>(ask.lookback);
    if (rows < p.lookback()) {
      remark(context,
             fmt::format("The model looks {} rows back and the recording has {}; what is missing counts as missing.", p.lookback(), rows));
    }
    Session session = Session::prepare(*predictor);
    session.prefill(series, rows - std::min(rows, lookback), rows);
    ForecastRequest one = request;
    unknown += plan_ahead(p, series, rows, *plan, ask.hold, one);
    Forecast f;
    if (auto done = session.forecast(one, f); !done) return fail(done.error());
    // The session counts from the first row that it saw, a reader from the first of the recording; and months are of the calendar.
    const std::int64_t step_ns = p.schema().step_ns;
    for (std::size_t h = 0; h < f.time_ns.size(); ++h) {
      f.time_ns[h] = step_ns == 0 ? static_cast<std::int64_t>(rows + h) * kRowOfNoTime
                     : p.options().sampling.as_trained()
                         ? data::row_time(series, rows + h)
                         : data::later(data::row_time(series, rows - 1), static_cast<std::int64_t>(h) + 1, step_ns);
    }
    forecasts.push_back(std::move(f));
  }
  if (unknown > 0) {
    remark(context,
           fmt::format("{} values of known-future channels are not known and count as average; --future FILE gives them.", unknown));
  }
  if (!ask.report.empty()) {
    if (auto written = write_forecast_report(ask.report, ask.model, p, *recording, forecasts); !written) return fail(written.error());
  }
  const bool many = recording->size() > 1;
  const JsonFrame frame = context.json ? json_frame(ask, forecasts, unknown) : JsonFrame{};
  print(frame.head);
  for (std::size_t i = 0; i < forecasts.size(); ++i) {
    const Series& series = (*recording)[i];
    if (!print_forecast(ask, context.json, p, series, forecasts[i], many, i == 0)) break;  // nobody reads any more
    const Forecast& f = forecasts[i];
    if (f.moved_values > 0)
      remark(context, fmt::format("The limits moved {} values by {} in all.", f.moved_values, number_text(f.distance)));
    const auto odd = std::count_if(f.status.begin(), f.status.end(), [](StepStatus s) { return s != StepStatus::kOk; });
    if (odd > 0)
      remark(context, fmt::format("{} of {} steps could not be forecast as they should; --json says why.", odd, f.status.size()));
  }
  print(frame.tail);
  return 0;
}

}  // namespace kizzasi::cli
