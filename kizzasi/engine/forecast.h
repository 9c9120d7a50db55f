// Several steps ahead: what is asked, and what comes back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kizzasi/signal/forecast_block.h"
#include "kizzasi/signal/prediction.h"

namespace kizzasi {

// What stands in for observed channels (read, not predicted) beyond the model's own block of steps.
enum class ObservedPlan : std::uint8_t {
  kRefuse,  // an error that names them
  kHold,    // their last measured values
  kGiven,   // ForecastRequest::observed
};

struct ForecastRequest {
  std::size_t horizon = 1;
  std::vector<double> levels;     // rising; empty: the predictor's
  std::size_t samples = 0;        // sample paths to give
  std::uint64_t seed = 1;         // of the sample paths
  double temperature = 1;         // spread of the sample paths about the median
  double path_correlation = 0.9;  // see `samples` below
  // The constraints are met by all steps of a block together, at the least distance in all (logic/trajectory.h): a jump that a rate forbids
  // is begun before it comes. false: step by step, each at its own least distance. Points only; sample paths go step by step.
  bool whole = false;
  std::vector<double> known;  // (rows, known-future channels) physical, NaN: unknown; rows beyond those given are unknown
  ObservedPlan observed_plan = ObservedPlan::kRefuse;
  std::vector<double> observed;  // (horizon, observed channels) physical, NaN: missing; with kGiven
};

// Steps 1..horizon after the last frame. The model gives a block of steps at once; a longer horizon is rolled block by block, the points of
// one block being fed as the frames of the next.
//   points     medians after the constraints: each step obeys them together with the steps before it
//   quantiles  within one block those of the model's distribution, calibrated; beyond it those of sample paths (at least 200), since a
//              block that follows points knows nothing of their spread. They never cross, and each lies inside what its channel can reach.
//   samples    whole paths through the constraints. Within a block the steps of a path are tied by a normal copula with correlation
//              path_correlation^distance, so that paths are smooth; each step's marginal is the model's whatever the correlation is.
struct Forecast {
  ForecastBlock block;                // points and quantiles; channels are the targets
  std::vector<std::int64_t> time_ns;  // (horizon)
  std::vector<double> raw;            // (horizon, targets) medians before the constraints
  std::vector<double> samples;        // (samples, horizon, targets)
  std::vector<StepStatus> status;     // (horizon) of the points
  std::size_t moved_values = 0;       // of points and samples, by the constraints
  double distance = 0;                // sum of how far, in physical units
  std::size_t moved_quantiles = 0;    // put inside their channel's interval
  std::size_t redrawn = 0;            // sample paths that a constraint rejected and that were drawn again
};

}  // namespace kizzasi
