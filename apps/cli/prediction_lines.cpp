#include "apps/cli/prediction_lines.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "kizzasi/logic/monitor/offline.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

std::string number(double value, std::int64_t decimals, std::string_view otherwise) {
  if (!std::isfinite(value)) return std::string(otherwise);
  std::string text = decimals < 0 ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, decimals);
  if (text.front() == '-' && text.find_first_not_of("-0.") == text.npos) text.erase(0, 1);  // zero has no sign for a reader
  return text;
}

// In quotes where a comma, a quote or a line feed stands in it.
std::string cell(std::string_view text) {
  if (text.find_first_of(",\"\n\r") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  quoted += '"';
  return quoted;
}

// As `kizzasi monitor` writes it: JSON has no infinity.
Json monitor_json(std::string_view formula, const MonitorVerdict& verdict) {
  const auto end = [](double value) { return std::isfinite(value) ? Json(value) : Json(value > 0 ? "inf" : "-inf"); };
  Json out = Json::Object{{"formula", std::string(formula)}};
  if (verdict.position < 0) return out;
  out["sample"] = verdict.position;
  out["verdict"] = std::string(1, logic::letter(verdict.truth));
  out["low"] = end(verdict.low);
  out["high"] = end(verdict.high);
  return out;
}

// A stamp, or the number of the row where rows are counted.
std::string moment(const Schema& schema, std::int64_t time_ns) {
  return schema.step_ns == 0 ? fmt::format("{}", time_ns / kRowOfNoTime) : time_text(time_ns, schema.zone);
}

}  // namespace

PredictionLines::PredictionLines(const Predictor& predictor, Schema schema, std::span<const double> levels, LineFormat format)
    : predictor_(predictor), schema_(std::move(schema)), levels_(levels), format_(format) {}

std::string PredictionLines::name(std::size_t target) const { return predictor_.schema().channels[predictor_.order()[target]].name; }

std::string PredictionLines::head() const {
  if (format_.json) return "";
  std::string text = schema_.step_ns == 0 ? "row" : "time";
  if (format_.with_id) text += ",unique_id";
  if (format_.with_status) text += ",step,status";
  const auto out = std::back_inserter(text);
  for (std::size_t t = 0; t < predictor_.targets(); ++t) {
    fmt::format_to(out, ",{}", cell(name(t)));
    for (const double level : levels_) fmt::format_to(out, ",{}", cell(fmt::format("{}_q{}", name(t), level)));
    for (std::size_t s = 1; s <= format_.samples; ++s) fmt::format_to(out, ",{}", cell(fmt::format("{}_s{}", name(t), s)));
  }
  for (std::size_t m = 1; m <= monitors(); ++m) fmt::format_to(out, ",monitor_{0},monitor_{0}_sample,monitor_{0}_low,monitor_{0}_high", m);
  text += '\n';
  return text;
}

std::string PredictionLines::line(const PredictedLine& line) const { return format_.json ? json(line) : csv(line); }

std::string PredictionLines::csv(const PredictedLine& line) const {
  std::string text = moment(schema_, line.time_ns);
  const auto out = std::back_inserter(text);
  if (format_.with_id) fmt::format_to(out, ",{}", cell(line.id));
  if (format_.with_status) fmt::format_to(out, ",{},{}", line.ahead, to_string(line.status));
  for (std::size_t t = 0; t < predictor_.targets(); ++t) {
    fmt::format_to(out, ",{}", number(line.values[t], format_.decimals, ""));
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      fmt::format_to(out, ",{}", number(line.quantiles[l * line.quantile_stride + t], format_.decimals, ""));
    }
    for (std::size_t s = 0; s < format_.samples; ++s) {
      fmt::format_to(out, ",{}", number(line.samples[s * line.sample_stride + t], format_.decimals, ""));
    }
  }
  for (std::size_t m = 0; m < monitors(); ++m) {
    if (line.monitors.empty() || line.monitors[m].position < 0) {
      text += ",,,,";
      continue;
    }
    const MonitorVerdict& verdict = line.monitors[m];
    fmt::format_to(out, ",{},{},{},{}", logic::letter(verdict.truth), verdict.position, verdict.low, verdict.high);
  }
  text += '\n';
  return text;
}

// Written by hand, since numbers keep their decimals: what is written is what was limited.
std::string PredictionLines::json(const PredictedLine& line) const {
  std::string text;
  const auto out = std::back_inserter(text);
  const std::string when = moment(schema_, line.time_ns);
  if (schema_.step_ns == 0) {
    fmt::format_to(out, "{{\"row\": {}", when);
  } else {
    fmt::format_to(out, "{{\"time\": \"{}\"", when);
  }
  if (format_.with_id) fmt::format_to(out, ", \"unique_id\": {}", Json(line.id).dump());
  fmt::format_to(out, ", \"step\": {}, \"status\": \"{}\", \"values\": {{", line.ahead, to_string(line.status));
  const std::size_t targets = predictor_.targets();
  const auto comma = [](std::size_t i) { return i == 0 ? "" : ", "; };
  const auto key = [&](std::size_t t) { return Json(name(t)).dump(); };
  for (std::size_t t = 0; t < targets; ++t) {
    fmt::format_to(out, "{}{}: {}", comma(t), key(t), number(line.values[t], format_.decimals, "null"));
  }
  text += '}';
  if (!levels_.empty()) {
    text += ", \"quantiles\": {";
    for (std::size_t t = 0; t < targets; ++t) {
      fmt::format_to(out, "{}{}: {{", comma(t), key(t));
      for (std::size_t l = 0; l < levels_.size(); ++l) {
        fmt::format_to(out, "{}\"{}\": {}", comma(l), levels_[l],
                       number(line.quantiles[l * line.quantile_stride + t], format_.decimals, "null"));
      }
      text += '}';
    }
    text += '}';
  }
  if (format_.samples > 0) {
    text += ", \"samples\": {";
    for (std::size_t t = 0; t < targets; ++t) {
      fmt::format_to(out, "{}{}: [", comma(t), key(t));
      for (std::size_t s = 0; s < format_.samples; ++s) {
        fmt::format_to(out, "{}{}", comma(s), number(line.samples[s * line.sample_stride + t], format_.decimals, "null"));
      }
      text += ']';
    }
    text += '}';
  }
  if (!line.monitors.empty()) {
    Json list = Json::array();
    for (std::size_t m = 0; m < monitors(); ++m) list.push_back(monitor_json(predictor_.monitor()->name(m), line.monitors[m]));
    text += ", \"monitors\": ";
    text += list.dump();
  }
  text += "}\n";
  return text;
}

std::size_t PredictionLines::monitors() const {
  return format_.monitors && predictor_.monitor() != nullptr ? predictor_.monitor()->formulas() : 0;
}

}  // namespace kizzasi::cli
