// From prepared series to a model file: split, scale, short-cut, training, calibration, in one call.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kizzasi/base/clock.h"
#include "kizzasi/base/thread_pool.h"
#include "kizzasi/data/windows.h"
#include "kizzasi/forecast/limit_cost.h"
#include "kizzasi/model/model_file.h"
#include "kizzasi/penalty/config.h"
#include "kizzasi/signal/series.h"
#include "kizzasi/train/trainer.h"

namespace kizzasi {

struct LearnOptions {
  ModelConfig model;
  TrainConfig training;
  std::string scaling = "standard";        // none, standard, robust, min_max: fitted on the training rows
  double train_share = 0.7;                // of each series' rows, from its start
  double validation_share = 0.1;           // the rows after them; the rest is never looked at
  std::int64_t calibration_windows = 400;  // validation forecasts that the intervals are calibrated on, at most; 0: no calibration
  double adaptation_rate = 0.02;           // of the intervals in streams; 0: they stay as calibrated
  PenaltyConfig penalty;                   // what predictions that leave the limits cost
  std::vector<ConstraintText> limits;      // no field: they go into the model file, and `penalty` prices them

  void fields(FieldVisitor& visit);
};

struct Learned {
  ModelFile file;
  ShortcutFit shortcut;
  TrainOutcome outcome;
  // Where there are limits: what forecasts of the validation part break before a guard moves them, by the short-cut alone, and by the
  // model.
  std::optional<Breaches> shortcut_breaches, breaches;
};

// All series have one schema. Nothing after the validation rows is read. Two calls with equal series, options and steps give equal files,
// whatever the pool's threads. Called after the short-cut is solved: `started` with its fit, where given.
// checkpoint: file for resuming; empty: none. Errors: as train(), rows too few for one window of training (look-back and horizon) or of
// validation (horizon), with the numbers and before anything large is allocated.
// Thread: one at a time. Real-time: no.
struct LearnHooks {
  std::function<void(const SignalModel&, const ShortcutFit&)> started;
  TrainWatch watch;
};
Result<Learned> learn(const std::vector<Series>& series, const LearnOptions& options, const std::string& checkpoint, bool resume,
                      ThreadPool& pool, const Clock& clock, const LearnHooks& hooks);

// Rows [first, last) of every series in which answers of a part lie.
struct LearnParts {
  std::vector<RowRange> train, validation, test;
};
Result<LearnParts> learn_parts(const std::vector<Series>& series, double train_share, double validation_share);

// A number that changes with any value, name, unit, role or time of the series: what makes two recordings the same.
std::string data_hash(const std::vector<Series>& series);

}  // namespace kizzasi
