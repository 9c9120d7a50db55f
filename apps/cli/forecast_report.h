// The page of one forecast.
#pragma once

#include <string>
#include <vector>

#include "kizzasi/engine/forecast.h"
#include "kizzasi/engine/predictor.h"
#include "kizzasi/signal/series.h"

namespace kizzasi::cli {

// One plot a target channel with history, forecast, intervals and limits; the model's card below.
Result<void> write_forecast_report(const std::string& path, const std::string& model, const Predictor& predictor,
                                   const std::vector<Series>& recording, const std::vector<Forecast>& forecasts);

// What there is to say about a model, as pairs of name and value: what inspect prints and what reports show.
std::vector<std::pair<std::string, std::string>> model_card(const ModelFile& model, const SignalModel& weights, std::size_t state_bytes);

}  // namespace kizzasi::cli
