// A trained model among the baselines of a backtest.
#pragma once

#include <memory>
#include <string>

#include "kizzasi/engine/predictor.h"
#include "kizzasi/forecast/forecaster.h"

namespace kizzasi {

// Every forecast starts from reset state, takes the predictor's look-back of rows before the origin through `run`, the path that is
// deployed, and answers with constraints and calibrated intervals. Known-future channels are read up to the horizon; observed channels
// beyond one block of the model hold their last value. Rows of a recording at another rate (Predictor's sampling) that lie between the
// model's steps are on the line from step to step, the first of them from the last measured value. fit() has nothing to do. Thread: any.
std::unique_ptr<Forecaster> model_forecaster(std::string name, std::shared_ptr<const Predictor> predictor);

}  // namespace kizzasi
