// The training loop: windows in, weights out; the same bits for the same data, seed and steps, whatever the number of threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kizzasi/base/clock.h"
#include "kizzasi/base/error.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/train/checkpoint.h"
#include "kizzasi/train/config.h"
#include "kizzasi/train/dataset.h"
#include "kizzasi/train/head_loss.h"
#include "kizzasi/train/prediction_cost.h"
#include "kizzasi/train/shortcut.h"

namespace kizzasi {

struct TrainProgress {
  std::int64_t step = 0, steps = 0;
  double loss = 0;        // mean over the steps since the last report
  double validation = 0;  // of the averaged weights, at the last validation
  double best = 0;
  std::int64_t best_step = 0;
  double samples_per_second = 0;  // windows
  double seconds = 0;             // since the start of this run
  double seconds_left = 0;        // by steps or by budget, whichever ends first
  bool validated = false;         // a validation happened at this step
};

// Called after every step; returns false to stop there, keeping what was learned.
using TrainWatch = std::function<bool(const TrainProgress&)>;

enum class TrainEnd { kSteps, kBudget, kPatience, kStopped };
const char* to_string(TrainEnd end);

struct TrainOutcome {
  NamedTensors weights;    // the best by validation
  std::int64_t steps = 0;  // taken in all
  std::int64_t best_step = 0;
  double start_validation = 0;  // of the closed-form short-cut (or the untrained model), step 0
  double best_validation = 0;
  TrainEnd end = TrainEnd::kSteps;
  Json history;  // [{step, loss, validation}], with a cost also price (its part of validation) and what it notes; for the report
};

struct TrainTask {
  const SignalModel* model = nullptr;
  const Dataset* data = nullptr;
  std::vector<RowRange> train, validation;
  NamedTensors weights;    // to start from, the short-cut's solution among them
  Json identity;           // of the data and the model, compared on resume
  std::string checkpoint;  // file; empty: none is written
  bool resume = false;     // go on from that file
  // Added to the loss, in training and in validation; nullptr: none. Where its numbers move, the best weights so far are judged anew at
  // each validation, so that two validations are compared by one measure.
  const PredictionCost* cost = nullptr;
};

// Errors: no training window, a checkpoint of another run, a loss or gradient that is not finite (names the step and the tensor), a
// checkpoint that cannot be written. Thread: one at a time. Real-time: no.
Result<TrainOutcome> train(const TrainTask& task, const TrainConfig& config, ThreadPool& pool, const Clock& clock, const TrainWatch& watch);

// Mean loss of weights on the windows, forward only: what validation measures. Bits do not depend on the pool's threads.
double mean_loss(const SignalModel& model, const Dataset& data, const NamedTensors& weights, const std::vector<RowRange>& ranges,
                 std::size_t most_windows, PointLoss point, ThreadPool& pool);

}  // namespace kizzasi
