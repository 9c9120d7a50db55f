// Predictions as lines of CSV or JSON: the same form in every verb.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kizzasi/engine/predictor.h"
#include "kizzasi/signal/prediction.h"

namespace kizzasi::cli {

// One predicted frame. values: (targets); quantiles and samples: (targets) each `stride` numbers after the last.
struct PredictedLine {
  std::int64_t time_ns = 0;
  std::string_view id;
  std::size_t ahead = 1;  // steps after the last frame
  StepStatus status = StepStatus::kOk;
  const double* values = nullptr;
  const double* quantiles = nullptr;
  std::size_t quantile_stride = 0;
  const double* samples = nullptr;
  std::size_t sample_stride = 0;
  // What the monitors say of the newest frame; empty: nothing new.
  std::span<const MonitorVerdict> monitors{};
};

// Where numbers begin in a list that may be empty.
inline const double* part(std::span<const double> values, std::size_t at) { return values.empty() ? nullptr : values.data() + at; }

struct LineFormat {
  bool json = false;
  bool with_id = false, with_status = false;  // in CSV; JSON always says the status
  std::int64_t decimals = -1;                 // of every number; -1: the fewest digits that read back to the same double
  std::size_t samples = 0;
  bool monitors = false;  // columns, or a list, of what they say
};

class PredictionLines {
 public:
  // schema: how times are shown. The predictor and the levels outlive it.
  PredictionLines(const Predictor& predictor, Schema schema, std::span<const double> levels, LineFormat format);

  // CSV: "time,vehicles,vehicles_q0.1,...,vehicles_s1,..."; JSON: nothing.
  std::string head() const;
  std::string line(const PredictedLine& line) const;

 private:
  std::string csv(const PredictedLine& line) const;
  std::string json(const PredictedLine& line) const;
  std::size_t monitors() const;
  std::string name(std::size_t target) const;

  const Predictor& predictor_;
  Schema schema_;
  std::span<const double> levels_;
  LineFormat format_;
};

}  // namespace kizzasi::cli
