// What is known of the future, from a file: the same option in every verb that looks ahead.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "apps/cli/options.h"
#include "kizzasi/engine/forecast.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/io/csv_options.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

// Declares --future FILE (also spelt --plan).
void declare_future(Options& options, std::string& file);

// Values of known-future and observed channels, found by their time, or by counting where the file names no times.
class Plan {
 public:
  // An empty path is an empty plan. Errors: as read_for_model(), a model that reads no such channel, several series.
  static Result<Plan> read(const std::string& path, const Predictor& predictor, const io::CsvOptions& csv);

  bool empty() const noexcept { return series_.schema.channels.empty(); }
  // `step`: which row it is (from 0) where the plan is counted. NaN where the plan says nothing.
  double at(const std::string& channel, std::int64_t time_ns, std::size_t step) const;

 private:
  Series series_;
};

}  // namespace kizzasi::cli
