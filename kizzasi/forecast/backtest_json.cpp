#include "kizzasi/forecast/backtest_json.h"

#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

void add_points(const PointMetrics& points, Json& out) {
  out["mae"] = points.mae();
  out["rmse"] = points.rmse();
  out["bias"] = points.bias();
  out["smape_200_percent"] = points.smape_200_percent();
  out["mape_percent"] = points.mape_percent();
  out["wape"] = points.wape();
  out["r2"] = points.r2();
  out["values"] = points.pairs();
  out["missing"] = points.missing();
  out["unusable"] = points.unusable();
}

void add_quantiles(const QuantileMetrics& quantiles, Json& out) {
  out["crps"] = quantiles.crps();
  out["mean_pinball"] = quantiles.mean_pinball();
  out["mean_wql"] = quantiles.mean_wql();
  out["quantiles_unusable"] = quantiles.unusable();
  out["crossings"] = quantiles.crossings();
  Json intervals = Json::array(), reliability = Json::array();
  for (const IntervalMetrics& interval : quantiles.intervals()) {
    intervals.push_back(Json::Object{{"nominal", interval.nominal},
                                     {"coverage", interval.coverage},
                                     {"mean_width", interval.mean_width},
                                     {"winkler", interval.winkler}});
  }
  for (std::size_t level = 0; level < quantiles.levels().size(); ++level) {
    reliability.push_back(Json::Object{{"level", quantiles.levels()[level]}, {"share_below", quantiles.hit_rate_at(level)}});
  }
  out["intervals"] = std::move(intervals);
  out["reliability"] = std::move(reliability);
}

Json of_method(const MethodResult& method, const BacktestResult& result) {
  Json out = Json::Object{{"name", method.name}, {"problem", method.problem.empty() ? Json() : Json(method.problem)}};
  if (!method.problem.empty()) return out;
  const bool spread = !method.quantiles.empty();
  out["forecasts"] = method.forecasts;
  out["intervals_by"] = !spread ? Json() : Json(method.calibrated ? "split conformal" : "own");
  out["beyond_calibration"] = method.beyond_calibration;
  out["mase"] = method.mase;
  out["rmsse"] = method.rmsse;
  out["msis95"] = method.msis95;
  out["limits_checked"] = method.values;
  out["outside_limits"] = method.outside;
  add_points(method.points_over(0, method.horizon), out);
  if (spread) add_quantiles(method.quantiles_over(0, method.horizon), out);
  Json steps = Json::array(), targets = Json::array();
  for (std::size_t step = 0; step < method.horizon; ++step) {
    Json row = Json::Object{{"step", step + 1}};
    add_points(method.points_over(step, step + 1), row);
    if (spread) add_quantiles(method.quantiles_over(step, step + 1), row);
    steps.push_back(std::move(row));
  }
  for (std::size_t target = 0; target < method.targets; ++target) {
    Json row = Json::Object{{"channel", result.targets[target]}};
    add_points(method.points_of(target), row);
    if (spread) add_quantiles(method.quantiles_of(target), row);
    targets.push_back(std::move(row));
  }
  out["steps"] = std::move(steps);
  out["channels"] = std::move(targets);
  return out;
}

}  // namespace

Json to_json(const BacktestResult& result) {
  Json methods = Json::array();
  for (const MethodResult& method : result.methods) methods.push_back(of_method(method, result));
  return Json::Object{{"channels", Json::list(result.targets)},
                      {"units", Json::list(result.units)},
                      {"series", result.series},
                      {"horizon", result.horizon},
                      {"stride", result.stride},
                      {"season", result.season},
                      {"rows", result.rows},
                      {"train_end", result.train_end},
                      {"validation_end", result.validation_end},
                      {"first_origin", result.first_origin},
                      {"last_origin", result.last_origin},
                      {"methods", std::move(methods)}};
}

double coverage_of(const QuantileMetrics& metrics, double nominal) {
  for (const IntervalMetrics& interval : metrics.intervals()) {
    if (std::abs(interval.nominal - nominal) < 1e-9) return interval.coverage;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace kizzasi
