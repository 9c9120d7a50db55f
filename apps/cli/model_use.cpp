#include "apps/cli/model_use.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

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
  options.option("--levels LIST", levels, "Levels of the quantiles, such as 0.1,0.5,0.9; those of the calibration where nothing is said.");
}

Result<std::vector<double>> parse_levels(const std::string& text, std::string_view where) {
  std::vector<double> levels;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    double level = 0;
    const auto [rest, fault] = std::from_chars(text.data() + begin, text.data() + end, level);
    if (fault != std::errc{} || rest != text.data() + end) {
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
  options.grid.decimals = static_cast<int>(use.decimals);
  return Predictor::load(path, std::move(options));
}

Result<std::vector<Series>> read_for_model(const Schema& schema, const std::string& path, const io::CsvOptions& csv) {
  const auto table = io::read_recording(path, csv);
  if (!table) return fail(table.error());
  data::PrepareOptions prepare;
  // What the model does not know is not read; whether all it knows is there is told channel by channel below.
  std::vector<std::string> present;
  for (const Channel& column : table->columns) {
    (schema.index_of(column.name) ? present : prepare.drop).push_back(column.name);
  }
  if (present.empty()) {
    return fail({Fault::kBadInput, "none of the model's channels is in the data", path, fmt::format("{}", fmt::join(schema.names(), ", ")),
                 "Is this the recording of another plant, or a file without names?"});
  }
  prepare.observed = present;
  if (schema.step_ns != 0 && !table->time_ns.empty()) prepare.step = duration_text(schema.step_ns);
  data::PrepareReport report;
  auto prepared = data::prepare(*table, prepare, report);
  if (!prepared) return fail(prepared.error());
  std::vector<Series> fitting;
  for (const Series& series : *prepared) {
    auto one = select_for_model(schema, series, path);
    if (!one) return fail(one.error());
    if (table->time_ns.empty()) one->start_ns = 0;
    fitting.push_back(std::move(*one));
  }
  return fitting;
}

Result<std::size_t> parse_horizon(const std::string& text, std::int64_t step_ns, std::string_view where) {
  const auto bad = [&](std::string what, std::string expected) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), std::move(expected), "For example 24, or 6h."});
  };
  std::uint64_t steps = 0;
  const auto [rest, fault] = std::from_chars(text.data(), text.data() + text.size(), steps);
  if (fault == std::errc{} && rest == text.data() + text.size()) {
    if (steps == 0 || steps > 1'000'000) return bad(fmt::format("{} steps", steps), "1 to 1000000 steps");
    return static_cast<std::size_t>(steps);
  }
  const auto time = parse_duration(text, where);
  if (!time) return fail(time.error());
  if (step_ns == 0) return bad(fmt::format("'{}' is a time, and the model's rows are counted", text), "a number of rows");
  if (*time <= 0 || *time % step_ns != 0)
    return bad(fmt::format("'{}' is no whole number of steps", text), fmt::format("a multiple of {}", duration_text(step_ns)));
  return static_cast<std::size_t>(*time / step_ns);
}

std::string value_text(double value, std::int64_t decimals) {
  if (std::isnan(value)) return "";
  if (decimals < 0) return fmt::format("{}", value);
  return fmt::format("{:.{}f}", value == 0 ? 0.0 : value, decimals);
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted += '"';
}

std::string moment_text(const Schema& schema, std::int64_t time_ns) {
  if (schema.step_ns == 0) return fmt::format("{}", time_ns / 1'000'000'000);
  return time_text(time_ns, schema.zone);
}

std::vector<std::string> value_columns(const Predictor& predictor, std::span<const double> levels) {
  std::vector<std::string> names;
  for (std::size_t t = 0; t < predictor.targets(); ++t) {
    const std::string& name = predictor.schema().channels[predictor.order()[t]].name;
    names.push_back(name);
    for (const double level : levels) names.push_back(fmt::format("{}_q{}", name, level));
  }
  return names;
}

}  // namespace kizzasi::cli
