// usage: report_sample FILE
// Writes a report that has every kind of block, texts that try to break out of the page, gaps, and a series longer than the screen is wide.
#include <cmath>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "apps/cli/report.h"

namespace {

using kizzasi::Json;
using kizzasi::cli::report_axis;
using kizzasi::cli::report_band;
using kizzasi::cli::report_line;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kHour = 3'600'000'000'000;
constexpr const char* kHostile = "</script><script>throw 1</script> <b>\"&' ü 信号 \u2028";

Json block(const char* kind, const char* title, const char* width = "") {
  Json out = Json::object();
  out["kind"] = kind;
  out["title"] = title;
  if (*width != '\0') out["width"] = width;
  return out;
}

double traffic(int hour) {
  const double day = std::max(0.0, std::sin((hour % 24 - 7) * 0.26));
  const double week = (hour / 24) % 7 < 5 ? 1.0 : 0.65;
  return 600 + 4600 * day * week + 180 * std::sin(hour * 1.7) * std::cos(hour * 0.37);
}

Json axis(std::int64_t start_ns, std::int64_t step_ns) {
  kizzasi::Series series;
  series.start_ns = start_ns;
  series.schema.step_ns = step_ns;
  return report_axis(series, 0);
}

Json history_plot() {
  Json plot = block("plot", "History and forecast");
  plot["note"] = "The last two weeks, the forecast of the next 48 hours and what really came.";
  plot["x"] = axis(1'530'403'200'000'000'000, kHour);
  plot["y"]["label"] = "vehicles";
  plot["y"]["unit"] = "1/h";
  constexpr int kPast = 336, kAhead = 48;
  std::vector<double> past, truth, median, low80, high80, low95, high95;
  for (int i = 0; i < kPast; ++i) past.push_back(i > 100 && i < 112 ? kNaN : traffic(i));
  for (int i = 0; i < kAhead; ++i) {
    const double value = traffic(kPast + i), width = 120 + 9 * i;
    truth.push_back(value);
    median.push_back(value + 130 * std::sin(i * 0.9));
    low80.push_back(std::max(0.0, median.back() - width));
    high80.push_back(median.back() + width);
    low95.push_back(std::max(0.0, median.back() - 1.9 * width));
    high95.push_back(median.back() + 1.9 * width);
  }
  plot["bands"].push_back(report_band("95 %", low95, high95, kPast));
  plot["bands"].push_back(report_band("80 %", low80, high80, kPast));
  plot["lines"].push_back(report_line("history", "history", past));
  plot["lines"].push_back(report_line("truth", "truth", truth, kPast));
  plot["lines"].push_back(report_line("forecast", "forecast", median, kPast));
  Json limit = Json::object();
  limit["name"] = "at least 0";
  limit["value"] = 0.0;
  plot["limits"].push_back(std::move(limit));
  Json mark = Json::object();
  mark["x"] = 1'530'403'200'000.0 + kPast * 3'600'000.0;
  mark["label"] = "forecast begins";
  plot["marks"].push_back(std::move(mark));
  return plot;
}

Json error_plot() {
  Json plot = block("plot", "Error at each step ahead", "half");
  plot["x"]["label"] = "steps ahead";
  plot["x"]["start"] = 1.0;
  plot["y"]["label"] = "MAE";
  plot["y"]["low"] = 0.0;
  std::vector<double> model, naive;
  for (int h = 0; h < 24; ++h) {
    model.push_back(110 + 90 * std::log1p(h));
    naive.push_back(212 + 3 * std::sin(h));
  }
  plot["lines"].push_back(report_line("model", "forecast", model));
  plot["lines"].push_back(report_line("seasonal naive 168", "", naive));
  return plot;
}

Json reliability_plot() {
  Json plot = block("plot", "Reliability of the intervals", "half");
  plot["diagonal"] = true;
  plot["x"]["label"] = "promised share";
  std::vector<double> levels, seen;
  for (int i = 1; i < 20; ++i) {
    levels.push_back(0.05 * i);
    seen.push_back(0.05 * i + 0.02 * std::sin(0.33 * i));
  }
  plot["x"]["values"] = Json::list(levels);
  plot["y"]["label"] = "share that came";
  Json line = report_line("inside", "forecast", seen);
  line["style"] = "points";
  plot["lines"].push_back(std::move(line));
  return plot;
}

Json table() {
  Json out = block("table", "Beside the baselines");
  out["own"] = "Kizzasi";
  const std::vector<std::pair<const char*, const char*>> columns{{"method", ""}, {"MAE", "low"}, {"CRPS", "low"}, {"coverage 80 %", ""}};
  for (const auto& [name, better] : columns) {
    Json column = Json::object();
    column["name"] = name;
    if (*better != '\0') column["better"] = better;
    out["columns"].push_back(std::move(column));
  }
  out["columns"].items()[3]["better"] = 80.0;
  out["columns"].items()[3]["unit"] = "%";
  out["rows"].push_back(Json::Array{"Kizzasi", 187.25, 131.5, 80.3});
  out["rows"].push_back(Json::Array{"seasonal naive 168", 212.4, 160.2, 79.1});
  out["rows"].push_back(Json::Array{"ridge NLinear", 237.0, 171.9, 82.4});
  out["rows"].push_back(Json::Array{kHostile, nullptr, kNaN, 70.0});
  return out;
}

Json findings() {
  Json out = block("findings", "What the check found", "half");
  const char* const severities[] = {"ok", "note", "warning", "error"};
  const char* const texts[] = {"Step 1 h, 9,600 rows, no duplicate", "Seasons of 24 and 168 rows", "31 hours are missing in every column",
                               kHostile};
  for (int i = 0; i < 4; ++i) {
    Json item = Json::object();
    item["severity"] = severities[i];
    item["text"] = texts[i];
    if (i == 2) item["detail"] = "Longest gap: 9 hours, from row 4,120.";
    out["items"].push_back(std::move(item));
  }
  return out;
}

Json card() {
  Json out = block("card", "Model", "half");
  out["entries"].push_back(Json::Array{"backbone", "mamba2"});
  out["entries"].push_back(Json::Array{"parameters", 81234});
  out["entries"].push_back(Json::Array{"trained on", "6,720 rows, 300 steps, seed 1"});
  out["entries"].push_back(Json::Array{"head", "quantiles"});
  return out;
}

Json first_part() {
  Json part = Json::object();
  part["tab"] = "Road traffic";
  part["title"] = "Road traffic, 24 hours ahead";
  part["lead"] = "Hourly counts of vehicles on an interstate road, with weather. The model has seen the first 70 % of the recording.";
  const struct {
    const char *name, *value, *note, *tone;
  } tiles[] = {{"MAE 24 h", "187", "seasonal naive: 212", "good"},
               {"CRPS", "131", "best baseline: 160", "good"},
               {"coverage 80 %", "80.3 %", "1,920 origins", ""},
               {"outside the limits", "0", "of 46,080 values", ""}};
  for (const auto& each : tiles) {
    Json tile = Json::object();
    tile["name"] = each.name;
    tile["value"] = each.value;
    tile["note"] = each.note;
    tile["tone"] = each.tone;
    part["tiles"].push_back(std::move(tile));
  }
  part["blocks"] = Json::Array{history_plot(), table(), error_plot(), reliability_plot(), findings(), card()};
  return part;
}

Json second_part() {
  Json part = Json::object();
  part["tab"] = "Robot arm";
  part["title"] = "Robot arm at 200 Hz";
  std::vector<double> angle, residual, bars;
  for (int i = 0; i < 20000; ++i) {
    angle.push_back(1.2 * std::sin(i * 0.002) + 0.02 * std::sin(i * 1.3));
    residual.push_back(0.01 * std::sin(i * 0.7) * std::sin(i * 0.0011));
  }
  for (int i = 0; i < 40; ++i) bars.push_back(std::exp(-0.01 * (i - 20) * (i - 20)) * 900);
  Json plot = block("plot", "Joint 1");
  plot["sync"] = "arm";
  plot["x"] = axis(0, 5'000'000);
  plot["y"]["unit"] = "rad";
  plot["lines"].push_back(report_line("q1", "truth", angle));
  Json span = Json::object();
  span["from"] = 20000.0;
  span["to"] = 26000.0;
  span["label"] = "event";
  plot["spans"].push_back(std::move(span));
  Json below = block("plot", "Residual");
  below["sync"] = "arm";
  below["x"] = axis(0, 5'000'000);
  below["lines"].push_back(report_line("residual", "residual", residual));
  Json histogram = block("plot", "Histogram of the residuals", "half");
  histogram["x"]["start"] = -0.02;
  histogram["x"]["step"] = 0.001;
  Json line = report_line("count", "score", bars);
  line["style"] = "bars";
  histogram["lines"].push_back(std::move(line));
  Json text = block("text", "In words", "half");
  text["text"] = std::string("First paragraph.\n\n") + kHostile;
  Json code = block("code", "The next command");
  code["text"] = "kizzasi train robot_arm.csv -o arm.kz --season 0";
  part["blocks"] = Json::Array{std::move(plot), std::move(below), std::move(histogram), std::move(text), std::move(code)};
  return part;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  Json content = Json::object();
  content["title"] = kHostile;
  content["parts"] = Json::Array{first_part(), second_part()};
  content["foot"] = "kizzasi 0.1.0";
  const auto written = kizzasi::cli::write_report(words[1], content);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text().c_str());
  return written ? 0 : 1;
}
