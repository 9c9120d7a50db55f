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
  std::int64_t max_gap = 64;          // of a stream; see PredictorOptions
  std::vector<std::string> monitors;  // formulas that watch a stream
  std::string levels;                 // as written
  std::string sampling;               // as written

  void declare(Options& options);
};

// "0.1,0.5,0.9"; empty: none. `where` names the option.
Result<std::vector<double>> parse_levels(const std::string& text, std::string_view where);

void declare_sampling(Options& options, std::string& sampling);
// "200Hz", "5ms" (beside the model's own step), or "2x": frames in a period of the training data.
Result<Sampling> parse_sampling(const std::string& text, std::int64_t step_ns, std::string_view where);
// The model with the options, its streams sampled as `sampling` says; empty: as the training data.
Result<std::shared_ptr<const Predictor>> load_sampled(const std::string& path, PredictorOptions options, const std::string& sampling);
// The model's channels at the step of its streams.
Schema stream_schema(const Predictor& predictor);

Result<std::shared_ptr<const Predictor>> load_model(const std::string& path, const ModelUse& use, bool adapt);

struct ReadWay {
  bool some = false;      // channels of the model that the file lacks are left out, but for all of them
  bool resample = false;  // onto the model's step, whatever the file's
};

// The recording as series of the model's channels, found by name. A channel that is missing, a unit or a step that differs is an error.
Result<std::vector<Series>> read_for_model(const Schema& schema, const std::string& path, const io::CsvOptions& csv, ReadWay way = {});

// A number of steps ("24"), or a time that is a whole number of steps ("6h"); at least `least`, at most a million.
Result<std::size_t> parse_steps(const std::string& text, std::int64_t step_ns, std::string_view where, std::size_t least = 1);

}  // namespace kizzasi::cli
