#include "apps/cli/backtest_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/cli/report.h"
#include "kizzasi/forecast/backtest_json.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

Json column(const char* name, const char* help, Json better) {
  return Json::Object{{"name", name}, {"help", help}, {"better", std::move(better)}};
}

Json table(const BacktestResult& result) {
  Json rows = Json::array();
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty()) continue;
    const PointMetrics points = method.points_over(0, method.horizon);
    Json::Array row{method.name, points.mae(), points.rmse()};
    if (method.quantiles.empty()) {
      row.insert(row.end(), 3, Json());
    } else {
      const QuantileMetrics quantiles = method.quantiles_over(0, method.horizon);
      row.insert(row.end(), {quantiles.crps(), 100 * coverage_of(quantiles, 0.8), 100 * coverage_of(quantiles, 0.95)});
    }
    row.insert(row.end(),
               {method.mase, points.smape_200_percent(),
                method.values > 0 ? Json(100 * static_cast<double>(method.outside) / static_cast<double>(method.values)) : Json()});
    rows.push_back(std::move(row));
  }
  Json columns = Json::Array{Json::Object{{"name", "method"}},
                             column("MAE", "mean absolute error", "low"),
                             column("RMSE", "root of the mean squared error", "low"),
                             column("CRPS", "error of the whole distribution", "low"),
                             column("in 80 %", "share inside the 80 % interval, per cent", 80),
                             column("in 95 %", "share inside the 95 % interval, per cent", 95),
                             column("MASE", "MAE over that of the seasonal naive method in training", "low"),
                             column("sMAPE %", "symmetric percentage error, 0 to 200", "low"),
                             column("outside %", "share of values outside the limits, per cent", "low")};
  return Json::Object{{"kind", "table"},
                      {"title", "Methods side by side"},
                      {"columns", std::move(columns)},
                      {"rows", std::move(rows)},
                      {"own", result.methods.front().name}};
}

Json by_step(const BacktestResult& result) {
  Json lines = Json::array();
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty()) continue;
    std::vector<double> mae;
    for (std::size_t h = 0; h < method.horizon; ++h) mae.push_back(method.points_over(h, h + 1).mae());
    lines.push_back(report_line(method.name, "", mae));
  }
  return Json::Object{{"kind", "plot"},
                      {"title", "Error by step ahead"},
                      {"width", "half"},
                      {"x", Json::Object{{"kind", "number"}, {"start", 1}, {"step", 1}, {"label", "step ahead"}}},
                      {"y", Json::Object{{"label", "MAE"}, {"unit", result.units.front()}, {"low", 0}}},
                      {"lines", std::move(lines)}};
}

Json reliability(const BacktestResult& result) {
  Json lines = Json::array();
  std::vector<double> levels;
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty() || method.quantiles.empty()) continue;
    const QuantileMetrics quantiles = method.quantiles_over(0, method.horizon);
    if (!levels.empty() && !std::equal(levels.begin(), levels.end(), quantiles.levels().begin(), quantiles.levels().end())) continue;
    levels.assign(quantiles.levels().begin(), quantiles.levels().end());
    std::vector<double> shares;
    for (std::size_t level = 0; level < levels.size(); ++level) shares.push_back(quantiles.hit_rate_at(level));
    lines.push_back(report_line(method.name, "", shares));
  }
  return Json::Object{{"kind", "plot"},
                      {"title", "Reliability of the intervals"},
                      {"note", "On the diagonal, what was claimed is what came."},
                      {"width", "half"},
                      {"diagonal", true},
                      {"x", Json::Object{{"kind", "number"}, {"values", Json::list(levels)}, {"label", "level of the quantile"}}},
                      {"y", Json::Object{{"label", "share of values below it"}, {"low", 0}, {"high", 1}}},
                      {"lines", std::move(lines)}};
}

// The last forecast that was kept, with what came before it and what came.
Json fan(const MethodResult& method, const BacktestResult& result, const Series& series, std::size_t target) {
  const auto& [origin, block] = method.kept.back();
  const std::size_t channel = series.schema.with_role(Role::kTarget)[target];
  const std::size_t begin = origin - std::min(origin, 4 * block.horizon), past = origin - begin;
  std::vector<double> truth, points, low, high;
  for (std::size_t r = begin; r < origin + block.horizon; ++r) truth.push_back(series.at(r, channel));
  for (std::size_t h = 0; h < block.horizon; ++h) points.push_back(block.point(h, target));
  Json bands = Json::array();
  for (std::size_t i = 0; i < block.levels.size() && block.levels[i] < 0.5; ++i) {
    const std::size_t j = block.levels.size() - 1 - i;
    const double nominal = block.levels[j] - block.levels[i];
    if (std::abs(nominal - 0.95) > 1e-9 && std::abs(nominal - 0.8) > 1e-9) continue;
    low.clear();
    high.clear();
    for (std::size_t h = 0; h < block.horizon; ++h) {
      low.push_back(block.quantile(i, h, target));
      high.push_back(block.quantile(j, h, target));
    }
    bands.push_back(report_band(fmt::format("{:.0f} %", 100 * nominal), low, high, past));
  }
  return Json::Object{{"kind", "plot"},
                      {"title", fmt::format("{}: the last forecast of {}", result.targets[target], method.name)},
                      {"x", report_axis(series, begin)},
                      {"y", Json::Object{{"label", result.targets[target]}, {"unit", result.units[target]}}},
                      {"lines", Json::Array{report_line("measured", "truth", truth), report_line("forecast", "forecast", points, past)}},
                      {"bands", std::move(bands)}};
}

}  // namespace

Json backtest_part(const BacktestResult& result, const Series& series, const std::string& verdict) {
  Json blocks = Json::array();
  blocks.push_back(table(result));
  const auto shown = std::find_if(result.methods.begin(), result.methods.end(), [](const MethodResult& m) { return !m.kept.empty(); });
  for (std::size_t target = 0; shown != result.methods.end() && target < std::min<std::size_t>(result.targets.size(), 8); ++target) {
    blocks.push_back(fan(*shown, result, series, target));
  }
  blocks.push_back(by_step(result));
  blocks.push_back(reliability(result));
  Json problems = Json::array();
  for (const MethodResult& method : result.methods) {
    if (!method.problem.empty())
      problems.push_back(Json::Object{{"severity", "warning"}, {"text", "Left out"}, {"detail", method.problem}});
  }
  if (!problems.items().empty()) blocks.push_back(Json::Object{{"kind", "findings"}, {"items", std::move(problems)}});
  return Json::Object{{"title", "Backtest"}, {"lead", verdict}, {"blocks", std::move(blocks)}};
}

Json backtest_report(const BacktestResult& result, const Series& series, const std::string& verdict) {
  return Json::Object{{"title", "Backtest"}, {"parts", Json::Array{backtest_part(result, series, verdict)}}, {"foot", "kizzasi backtest"}};
}

}  // namespace kizzasi::cli
