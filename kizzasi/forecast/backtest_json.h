// Backtests as numbers for other programs.
#pragma once

#include "kizzasi/base/json.h"
#include "kizzasi/forecast/backtest.h"

namespace kizzasi {

// Everything that was measured: settings, and for each method its errors over all steps and targets, for each step ahead, and for each
// target; undefined values are null.
Json to_json(const BacktestResult& result);

// Coverage of the central interval that should cover `nominal`; NaN where there is none.
double coverage_of(const QuantileMetrics& metrics, double nominal);

}  // namespace kizzasi
