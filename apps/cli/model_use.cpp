#include "apps/cli/model_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "kizzasi/data/prepare.h"
#include "kizzasi/io/recording.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {

void ModelUse::declare(Options& options) {
  limits.declare(options);
  options.flag("--without-limits", without_limits, "Leaves out the constraints in the model file.");
  options.flag("--uncalibrated", uncalibrated, "Intervals as the model gives them, without the calibration in its file.");
  options.option("--decimals N", decimals,
                 "Digits after the point of every number that is written; limits hold for what is written. -1: all of them.");
  declare_sampling(options, sampling);
  options.option("--levels LIST", levels, "Levels of the quantiles, such as 0.1,0.5,0.9; those of the calibration where nothing is said.");
}

Result<std::vector<double>> parse_levels(const std::string& text, std::string_view where) {
  std::vector<double> levels;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double level = 0;
    const auto [rest, fault] = std::from_chars(text.data() + begin, text.data() + end, level);
    if (fault != std::errc{} || rest != text.data() + end || !(level > 0 && level < 1)) {
      return fail({Fault::kBadUse, fmt::format("'{}' is no level", text.substr(begin, end - begin)), std::string(where),
                   "numbers above 0 and below 1 with commas between them", "For example 0.1,0.5,0.9."});
    }
    levels.push_back(level);
    begin = end + 1;
  }
  return levels;
}

Result<std::shared_ptr<const Predictor>> load_model(const std::string& path, const ModelUse& use, bool adapt) {
  PredictorOptions options;
  auto limits = load_limits(use.limits);
  if (!limits) return fail(limits.error());
  auto levels = parse_levels(use.levels, "--levels");
  if (!levels) return fail(levels.error());
  if (use.decimals < -1 || use.decimals > 22) {
    return fail({Fault::kBadUse, fmt::format("{} is out of range", use.decimals), "--decimals", "-1 to 22", ""});
  }
  options.constraints = std::move(*limits);
  options.model_constraints = !use.without_limits;
  options.levels = std::move(*levels);
  options.calibrate = !use.uncalibrated;
  options.adapt = adapt && !use.uncalibrated;
  options.max_gap = use.max_gap;
  for (const std::string& formula : use.monitors) options.monitors.push_back({.name = formula, .that = formula, .where = "--monitor"});
  options.grid.decimals = static_cast<int>(use.decimals);
  return load_sampled(path, std::move(options), use.sampling);
}

void declare_sampling(Options& options, std::string& sampling) {
  options.option(
      "--sampling RATE", sampling,
      "How the recording is sampled where that differs from the training data: 200Hz, 5ms, or 2x (0.5x) as often. For models whose "
      "recurrence runs in time, such as s4d, s5, lru and mamba; steps ahead stay those of the training data.");
}

Result<Sampling> parse_sampling(const std::string& text, std::int64_t step_ns, std::string_view where) {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), ""});
  };
  const auto number_before = [&](std::string_view unit) -> std::optional<double> {
    if (!text.ends_with(unit)) return std::nullopt;
    const char* end = text.data() + text.size() - unit.size();
    double value = 0;
    const auto [rest, fault] = std::from_chars(text.data(), end, value);
    if (fault != std::errc{} || rest != end || !(value > 0) || !std::isfinite(value)) return std::nullopt;
    return value;
  };
  if (const auto times = number_before("x")) return sampling_of(*times, where);
  double period_s = 0;
  if (const auto rate = number_before("kHz")) {
    period_s = 1e-3 / *rate;
  } else if (const auto plain = number_before("Hz")) {
    period_s = 1 / *plain;
  } else {
    const auto period = parse_duration(text, where);
    if (!period) return bad(fmt::format("'{}' is no rate", text), "a rate (200Hz), a time (5ms), or how many times as often (2x)");
    period_s = static_cast<double>(*period) * 1e-9;
  }
  if (step_ns == 0) return bad("the model counts rows and knows no time", "how many times as often (2x, 0.5x)");
  if (!(period_s > 0)) return bad(fmt::format("'{}' is no time between frames", text), "a time above 0");
  return sampling_of(static_cast<double>(step_ns) * 1e-9 / period_s, where);
}

Result<std::shared_ptr<const Predictor>> load_sampled(const std::string& path, PredictorOptions options, const std::string& sampling) {
  if (sampling.empty()) return Predictor::load(path, std::move(options));
  auto file = read_model_file(path);
  if (!file) return fail(file.error());
  const auto parsed = parse_sampling(sampling, file->schema.step_ns, "--sampling");
  if (!parsed) return fail(parsed.error());
  options.sampling = *parsed;
  return Predictor::make(std::move(*file), std::move(options), path);
}

Schema stream_schema(const Predictor& predictor) {
  Schema schema = predictor.schema();
  schema.step_ns = predictor.frame_ns();
  return schema;
}

namespace {

// A channel that the file has and of which it holds no value: missing throughout.
void add_missing(Series& series, const Channel& channel) {
  const std::size_t before = series.channels(), rows = series.rows();
  std::vector<double> values;
  for (std::size_t r = 0; r < rows; ++r) {
    values.insert(values.end(), series.row(r).begin(), series.row(r).begin() + static_cast<std::ptrdiff_t>(before));
    values.push_back(std::numeric_limits<double>::quiet_NaN());
  }
  series.values = std::move(values);
  series.schema.channels.push_back(channel);
}

}  // namespace

Result<std::vector<Series>> read_for_model(const Schema& schema, const std::string& path, const io::CsvOptions& csv, ReadWay way) {
  const auto table = io::read_recording(path, csv);
  if (!table) return fail(table.error());
  if (!way.some) {
    // Before anything is prepared: with every column in sight the nearest name can be told.
    Series columns;
    columns.schema.channels = table->columns;
    if (auto fits = select_for_model(schema, columns, path); !fits) return fail(fits.error());
  }
  // What the model does not know is not read. What it knows is kept whatever it looks like: also what never changes.
  data::PrepareOptions prepare;
  std::vector<Channel> empty;
  for (std::size_t c = 0; c < table->columns.size(); ++c) {
    const Channel& column = table->columns[c];
    bool has_value = false;
    for (std::size_t r = 0; r < table->rows() && !has_value; ++r) has_value = !std::isnan(table->values[r * table->columns.size() + c]);
    const bool wanted = schema.index_of(column.name).has_value();
    (wanted && has_value ? prepare.targets : prepare.drop).push_back(column.name);
    if (wanted && !has_value) empty.push_back(column);
  }
  if (prepare.targets.empty()) {
    return fail({Fault::kBadInput, "none of the model's channels has a value in the data", path,
                 fmt::format("{}", fmt::join(schema.names(), ", ")), "Is this the recording of another plant, or a file without names?"});
  }
  if (way.resample && schema.step_ns != 0 && !table->time_ns.empty()) prepare.step = duration_text(schema.step_ns);
  data::PrepareReport report;
  auto prepared = data::prepare(*table, prepare, report);
  if (!prepared) return fail(prepared.error());
  Schema wanted = schema;
  std::vector<Series> fitting;
  for (Series& series : *prepared) {
    for (const Channel& channel : empty) add_missing(series, channel);
    if (way.some) std::erase_if(wanted.channels, [&](const Channel& channel) { return !series.schema.index_of(channel.name); });
    auto one = select_for_model(wanted, series, path);
    if (!one) return fail(one.error());
    if (table->time_ns.empty()) one->start_ns = 0;
    fitting.push_back(std::move(*one));
  }
  return fitting;
}

Result<std::size_t> parse_steps(const std::string& text, std::int64_t step_ns, std::string_view where, std::size_t least) {
  constexpr std::size_t kMost = 1'000'000;
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), "For example 24, or 6h."});
  };
  const auto in_range = [&](std::size_t steps) -> Result<std::size_t> {
    if (steps < least || steps > kMost)
      return bad(fmt::format("'{}' is {} steps", text, steps), fmt::format("{} to {} steps", least, kMost));
    return steps;
  };
  std::uint64_t steps = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (fault == std::errc{} && rest == text.data() + text.size()) {
    return in_range(static_cast<std::size_t>(steps));
  }
  const auto time = parse_duration(text, where);
  if (!time) return fail(time.error());
  if (step_ns == 0) return bad(fmt::format("'{}' is a time, and rows are counted here", text), "a number of rows");
  if (*time % step_ns != 0)
    return bad(fmt::format("'{}' is no whole number of steps", text), fmt::format("a multiple of {}", duration_text(step_ns)));
  return in_range(static_cast<std::size_t>(*time / step_ns));
}

}  // namespace kizzasi::cli
