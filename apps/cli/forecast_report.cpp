#include "apps/cli/forecast_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "apps/cli/report.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kMostHistory = 20'000;  // rows that a page shows

std::string channels_text(const Schema& schema, Role role) {
  std::string text;
  for (const std::size_t c : schema.with_role(role)) {
    const Channel& channel = schema.channels[c];
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", channel.name, channel.unit.empty() ? "" : fmt::format(" [{}]", channel.unit));
  }
  return text;
}

// "training.data.hash" for nested objects; lists in one line.
void flatten(const Json& json, const std::string& name, std::vector<std::pair<std::string, std::string>>& out) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.members()) {
      if (key == "options" || key == "history") continue;  // long; the whole record stands in --json
      flatten(value, name.empty() ? key : name + "." + key, out);
    }
    return;
  }
  std::string text = json.is_string() ? json.string() : json.dump();
  if (text.size() > 200) text = fmt::format("{}... ({} characters)", text.substr(0, 60), text.size());
  out.emplace_back(name, std::move(text));
}

Json plot_of(const Predictor& p, const Series& series, const Forecast& f, std::size_t target) {
  const std::size_t channel = p.order()[target], horizon = f.block.horizon;
  const std::size_t shown = std::min({series.rows(), kMostHistory, std::max<std::size_t>(200, 10 * horizon)}),
                    begin = series.rows() - shown;
  const std::int64_t step = series.schema.step_ns;
  // Where the forecast begins on the axis of the history.
  const std::int64_t since = f.time_ns[0] - (step == 0 ? static_cast<std::int64_t>(begin) * kRowOfNoTime : series.time_ns(begin));
  const auto from = static_cast<std::size_t>((since + step / 2) / (step == 0 ? kRowOfNoTime : step));
  std::vector<double> history, points;
  for (std::size_t r = begin; r < series.rows(); ++r) history.push_back(series.at(r, channel));
  for (std::size_t h = 0; h < horizon; ++h) points.push_back(f.block.point(h, target));
  Json plot = Json::object();
  plot["kind"] = "plot";
  plot["title"] =
      series.id.empty() ? series.schema.channels[channel].name : fmt::format("{}: {}", series.id, series.schema.channels[channel].name);
  plot["x"] = report_axis(series, begin);
  plot["y"]["label"] = series.schema.channels[channel].name;
  plot["y"]["unit"] = series.schema.channels[channel].unit;
  plot["lines"].push_back(report_line("measured", "history", history));
  plot["lines"].push_back(report_line("forecast", "forecast", points, from));
  // What the constraints allow this channel whatever came before.
  std::vector<std::byte> nothing_before(p.guard().state_bytes());
  p.guard().reset(nothing_before);
  double least = 0, most = 0;
  p.guard().interval(nothing_before, f.time_ns[0], channel, least, most);
  for (const auto& [name, value] : {std::pair{"lowest allowed", least}, {"highest allowed", most}}) {
    if (std::isfinite(value)) plot["limits"].push_back(Json::Object{{"name", name}, {"value", value}});
  }
  const std::size_t levels = f.block.levels.size();
  for (std::size_t l = 0; l < levels / 2; ++l) {
    std::vector<double> low, high;
    for (std::size_t h = 0; h < horizon; ++h) {
      low.push_back(f.block.quantile(l, h, target));
      high.push_back(f.block.quantile(levels - 1 - l, h, target));
    }
    const double share = 100 * (f.block.levels[levels - 1 - l] - f.block.levels[l]);
    plot["bands"].push_back(report_band(fmt::format("{:.4g} %", share), low, high, from));
  }
  return plot;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> model_card(const ModelFile& model, const SignalModel& weights, std::size_t state_bytes) {
  const Schema& schema = model.schema;
  std::vector<std::pair<std::string, std::string>> card{
      {"predicts", channels_text(schema, Role::kTarget)},
      {"reads besides", channels_text(schema, Role::kObserved)},
      {"known ahead", channels_text(schema, Role::kKnownFuture)},
      {"step", schema.step_ns == 0 ? "rows are counted" : duration_text(schema.step_ns)},
      {"zone", schema.zone},
      {"architecture", fmt::format("{}, {} layers of width {}", model.config.backbone.architecture, model.config.backbone.n_layers,
                                   model.config.backbone.d_model)},
      {"head", model.config.head.kind},
      {"horizon", fmt::format("{} steps at once", model.config.horizon)},
      {"look-back", fmt::format("{} rows", weights.shape().lookback())},
      {"mode", fmt::format("{}, channels {}", model.config.windowed ? "windowed" : "streaming", model.config.channel_mode)},
      {"parameters", std::to_string(weights.parameter_count())},
      {"state", fmt::format("{} bytes a stream", state_bytes)},
      {"calibration", model.calibration.empty()
                          ? std::string("none")
                          : fmt::format("{} levels, {} steps, fitted on {} forecasts", model.calibration.levels.size(),
                                        model.calibration.horizon, model.calibration.windows)}};
  for (const ConstraintText& c : model.constraints) {
    card.emplace_back(c.name.empty() || c.name == c.that ? std::string("constraint") : fmt::format("constraint '{}'", c.name),
                      fmt::format("{}{}", c.that, c.otherwise == "project" ? "" : fmt::format(" (else {})", c.otherwise)));
  }
  flatten(model.training, "training", card);
  flatten(model.extra, "extra", card);
  std::erase_if(card, [](const auto& entry) { return entry.second.empty() || entry.second == "null"; });
  return card;
}

Result<void> write_forecast_report(const std::string& path, const std::string& model, const Predictor& predictor,
                                   const std::vector<Series>& recording, const std::vector<Forecast>& forecasts) {
  Json part = Json::object();
  part["title"] = "Forecast";
  const Forecast& first = forecasts.front();
  part["lead"] = fmt::format("{} steps ahead. The limits moved {} values.", first.block.horizon, first.moved_values);
  for (std::size_t i = 0; i < recording.size(); ++i) {
    for (std::size_t t = 0; t < predictor.targets(); ++t) part["blocks"].push_back(plot_of(predictor, recording[i], forecasts[i], t));
  }
  Json card = Json::object();
  card["kind"] = "card";
  card["title"] = "Model";
  for (const auto& [name, value] : model_card(predictor.file(), predictor.model(), predictor.layout().fields.bytes())) {
    Json entry = Json::array();
    entry.push_back(name);
    entry.push_back(value);
    card["entries"].push_back(std::move(entry));
  }
  part["blocks"].push_back(std::move(card));
  Json content = Json::object();
  content["title"] = "Forecast";
  content["parts"].push_back(std::move(part));
  content["foot"] = fmt::format("kizzasi forecast, model {}", model);
  return write_report(path, content);
}

}  // namespace kizzasi::cli
