// What fewer bits cost: the forecasts of two forms of one model on the same recording.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/signal/series.h"

namespace kizzasi {

struct QuantizationLoss {
  struct OfTarget {
    std::string name;
    double exact_mae = 0, rounded_mae = 0;    // over all forecasts and steps ahead
    double exact_crps = 0, rounded_crps = 0;  // NaN where the model has no quantiles
    double moved = 0;                         // mean distance between the two points
  };
  std::vector<OfTarget> targets;
  std::size_t forecasts = 0;
  // By how much the error rose: the mean over the targets of rounded / exact - 1, of CRPS where there is one, else of MAE. Below 0 where it
  // fell. A target that the exact form foretells without error counts 0 where the rounded form does so too, else infinity.
  double loss = 0;
};

// Forecasts of both from at most `most` origins spread evenly over the last share of each series (0.3: the last 30 %), judged against what
// came. An error where no series is long enough, or where nothing could be judged.
Result<QuantizationLoss> quantization_loss(std::span<const Series> recording, std::shared_ptr<const Predictor> exact,
                                           std::shared_ptr<const Predictor> rounded, double share, std::size_t most);

}  // namespace kizzasi
