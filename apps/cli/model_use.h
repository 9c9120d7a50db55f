// What the verbs that use a trained model share: the model with its limits, a recording that fits it, and how numbers are written.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/load.h"
#include "apps/cli/options.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

// Options that forecast, stream and their like take.
struct ModelUse {
  LimitOptions limits;
  bool without_limits = false;  // leave out those in the model file
  bool uncalibrated = false;
  std::int64_t decimals = -1;
  std::string levels;  // as written

  void declare(Options& options);
};

// "0.1,0.5,0.9"; empty: none. `where` names the option.
Result<std::vector<double>> parse_levels(const std::string& text, std::string_view where);

Result<std::shared_ptr<const Predictor>> load_model(const std::string& path, const ModelUse& use, bool adapt);

// The recording as series of the model's channels, on the model's step. Its channels are found by name; a channel that is missing, a unit
// or a step that differs is an error.
Result<std::vector<Series>> read_for_model(const Schema& schema, const std::string& path, const io::CsvOptions& csv);

// A number of steps ("24"), or a time that is a whole number of steps ("6h").
Result<std::size_t> parse_horizon(const std::string& text, std::int64_t step_ns, std::string_view where);

// The fewest digits that read back to the same double, or that many decimals; "" for NaN.
std::string value_text(double value, std::int64_t decimals);
// In quotes where a comma, a quote or a line feed stands in it.
std::string csv_cell(std::string_view text);
// The moment of a row: a stamp, or its number where rows are counted.
std::string moment_text(const Schema& schema, std::int64_t time_ns);

// "vehicles", "vehicles_q0.1", "vehicles_q0.5", ... for each target: the columns of values and quantiles.
std::vector<std::string> value_columns(const Predictor& predictor, std::span<const double> levels);

}  // namespace kizzasi::cli
