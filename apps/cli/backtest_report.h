// A backtest as a page of the report.
#pragma once

#include <string>

#include "kizzasi/base/json.h"
#include "kizzasi/forecast/backtest.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

// `series`: the one whose forecasts were kept. The first method is the one that is stressed.
Json backtest_report(const BacktestResult& result, const Series& series, const std::string& verdict);

// The part of the page alone, to be set beside others.
Json backtest_part(const BacktestResult& result, const Series& series, const std::string& verdict);

}  // namespace kizzasi::cli
