// How a model is trained; every field is an option of `kizzasi train` and a key of its file.
#pragma once

#include <cstdint>
#include <string>

#include "kizzasi/base/fields.h"
#include "kizzasi/train/optimizer.h"
#include "kizzasi/train/schedule.h"

namespace kizzasi {

struct TrainConfig {
  std::int64_t steps = 1000;         // at most
  double budget_s = 0;               // stop after that many seconds of training; 0: no limit
  std::int64_t batch = 32;           // windows a step
  std::int64_t origins = 8;          // moments a window from which is forecast (streaming mode)
  std::string loss = "l1";           // of a point head
  std::string loss_unit = "window";  // window, seasonal: in what an error counts (train/dataset.h)
  OptimizerConfig optimizer;
  ScheduleConfig schedule;
  double clip = 1.0;                 // largest norm of the gradient; 0: no limit
  double ema = 0.98;                 // the weights that are kept are a moving average over steps; 0: the last ones
  double noise = 0;                  // standard deviation of noise added to the inputs, in normalised units
  std::int64_t validate_every = 50;  // steps
  std::int64_t validation_windows = 256;
  std::int64_t patience = 10;           // validations without a better one before training stops; 0: never
  double least_gain = 0.005;            // share by which the validation loss must fall below that of the short-cut alone to count
  std::int64_t checkpoint_every = 200;  // steps; one is written before the first
  std::int64_t seed = 1;

  TrainConfig() {
    // A constant rate with averaged weights needs no end: `--steps N` repeats a run that a time budget stopped at step N.
    optimizer.learning_rate = 2e-3;
    schedule.schedule = "constant";
    schedule.warmup_steps = 20;
  }
  void fields(FieldVisitor& visit);
  friend bool operator==(const TrainConfig&, const TrainConfig&) = default;
};

}  // namespace kizzasi
