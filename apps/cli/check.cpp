// What a recording is, before anything is learned from it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/cli/print.h"
#include "apps/cli/report.h"
#include "apps/cli/train_suggestion.h"
#include "apps/cli/verbs.h"
#include "kizzasi/data/limits.h"
#include "kizzasi/data/prepare.h"
#include "kizzasi/data/season.h"
#include "kizzasi/io/file.h"
#include "kizzasi/io/overview.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kPlottedValues = 60'000, kPlottedChannels = 12;

// Everything that is told, gathered first and then printed as text, JSON or a page.
struct Findings {
  std::string file;
  io::CsvOptions options;
  io::RecordingReport recording;
  io::Overview overview;
  data::PrepareReport preparation;
  std::vector<Series> series;
  std::string refused;  // why nothing can be learned from it; empty: something can
  std::vector<data::Season> seasons;
  TrainSuggestion suggestion;
};

// Options about the file that differ from their defaults, as words for a command line: what `train` must be told, too.
template <typename C>
void append_given(const C& config, std::vector<std::string>& words) {
  const Json given = kizzasi::to_json(config), usual = kizzasi::to_json(C{});
  for (const auto& [name, value] : given.members()) {
    if (*usual.find(name) == value) continue;
    std::string option = "--" + std::string(name);
    std::replace(option.begin(), option.end(), '_', '-');
    words.push_back(std::move(option));
    if (value.is_bool()) continue;
    if (value.is_array()) {
      std::string joined;
      for (const Json& item : value.items())
        joined.append(joined.empty() ? "" : ",").append(item.is_string() ? item.string() : item.dump());
      words.push_back(std::move(joined));
    } else {
      words.push_back(value.is_string() ? value.string() : value.dump());
    }
  }
}

std::string season_text(const data::Season& season, std::int64_t step_ns) {
  constexpr std::int64_t kLongest = 86'400'000'000'000 * 27;  // beyond that, rows are months and count themselves
  if (step_ns <= 0 || step_ns > kLongest) return fmt::format("{} rows", season.period);
  return fmt::format("{} rows ({})", season.period, duration_text(static_cast<std::int64_t>(season.period) * step_ns));
}

std::vector<std::string> notes_of(const Findings& found) {
  std::vector<std::string> notes;
  if (found.recording.csv) {
    for (const std::string& warning : found.recording.csv->warnings) notes.push_back(io::warning_text(warning));
  }
  for (const std::string& remark : found.preparation.remarks) notes.push_back(remark);
  if (!found.overview.complete()) {
    notes.push_back(
        fmt::format("the recording is large: seasons, plots and what preparing does are those of its latest {} rows; all else is "
                    "that of all {}",
                    found.overview.latest.rows(), found.overview.rows));
  }
  if (!found.refused.empty()) notes.push_back(found.refused);
  return notes;
}

std::string dialect_text(const io::CsvReport& csv) {
  const char* delimiter = csv.delimiter == ','    ? "comma"
                          : csv.delimiter == ';'  ? "semicolon"
                          : csv.delimiter == '\t' ? "tab"
                          : csv.delimiter == '|'  ? "pipe"
                          : csv.delimiter == ' '  ? "blanks"
                                                  : "other";
  std::string text = fmt::format("{}, decimal {}", delimiter, csv.numbers.decimal == '.' ? "point" : "comma");
  if (csv.numbers.thousands != '\0') text.append(fmt::format(", thousands '{}'", csv.numbers.thousands));
  text.append(fmt::format(", {}, {}", to_string(csv.encoding), to_string(csv.newline)));
  return text.append(csv.header_line ? fmt::format(", header on line {}", *csv.header_line) : ", no header");
}

std::string time_line(const Findings& found) {
  const auto& csv = found.recording.csv;
  if (!csv)
    return found.overview.latest.nominal_step_ns > 0 ? fmt::format("one frame every {} ns", found.overview.latest.nominal_step_ns)
                                                     : "rows are counted";
  if (csv->time_columns.empty()) return "no time column; rows are counted";
  std::string text =
      fmt::format("{} ({}), {}", fmt::join(csv->time_columns, " and "), csv->time_format, csv->zone.empty() ? "no zone" : csv->zone);
  const std::int64_t step = csv->step_ns();
  const int months = csv->series.empty() ? 0 : csv->series.front().axis.months;
  if (step > 0 && months > 0) {
    text.append(fmt::format(", step {} month{}", months, months == 1 ? "" : "s"));
  } else {
    text.append(step > 0 ? fmt::format(", step {}", duration_text(step)) : ", no common step");
  }
  const Json time = *csv->to_json(found.options).find("time");
  const auto plain = [](const Json& value) { return value.is_string() ? value.string() : value.dump() + " s"; };
  return text.append(fmt::format(", {} to {}", plain(*time.find("first")), plain(*time.find("last"))));
}

std::vector<std::vector<std::string>> channel_rows(const Findings& found) {
  std::vector<std::vector<std::string>> rows{{"channel", "unit", "missing", "least", "mean", "most"}};
  for (std::size_t c = 0; c < found.overview.latest.columns.size(); ++c) {
    const io::ChannelFacts& facts = found.overview.channels[c];
    const auto number = [&](double value) { return facts.present > 0 ? number_text(value) : std::string("-"); };
    rows.push_back({found.overview.latest.columns[c].name, found.overview.latest.columns[c].unit, std::to_string(facts.missing),
                    number(facts.low), number(facts.mean), number(facts.high)});
  }
  return rows;
}

std::string layout_text(const Findings& found) {
  std::string text = fmt::format("{} rows of {} channels", found.overview.rows, found.overview.latest.columns.size());
  if (found.recording.csv && !found.recording.csv->id_column.empty()) {
    text.append(fmt::format(", {} series by '{}'", found.recording.csv->series.size(), found.recording.csv->id_column));
  }
  return text;
}

void print_text(const Findings& found) {
  std::string out = fmt::format("{}\n", found.file);
  if (found.recording.csv) out += fmt::format("  dialect  {}\n", dialect_text(*found.recording.csv));
  if (found.recording.sound)
    out += fmt::format("  sound    {}, {} Hz\n", found.recording.sound->format, found.recording.sound->sample_rate);
  out += fmt::format("  time     {}\n  layout   {}\n", time_line(found), layout_text(found));
  const std::int64_t step = found.series.empty() ? 0 : found.series.front().schema.step_ns;
  std::string seasons;
  for (const data::Season& season : found.seasons) seasons.append(seasons.empty() ? "" : ", ").append(season_text(season, step));
  out += fmt::format("  seasons  {}\n\n", seasons.empty() ? "none found" : seasons);
  out += columns(channel_rows(found));
  const auto notes = notes_of(found);
  if (!notes.empty()) out += "\nTo know\n";
  for (const std::string& note : notes) out += fmt::format("  - {}\n", note);
  const TrainSuggestion& next = found.suggestion;
  if (!next.limits.empty()) out += "\nLimits that the data suggest\n";
  for (std::size_t i = 0; i < next.limits.size(); ++i) out += fmt::format("  {}   ({})\n", next.limits[i], next.reasons[i]);
  if (!next.enough) {
    out += "\nThere is too little here to train on.\n";
  } else {
    out += fmt::format("\nNext\n  {}\n", next.command);
  }
  print(out);
}

Json seasons_json(const Findings& found) {
  Json seasons = Json::array();
  const std::int64_t step = found.series.empty() ? 0 : found.series.front().schema.step_ns;
  for (const data::Season& season : found.seasons) {
    Json one = Json::object();
    one["period"] = season.period;
    one["strength"] = season.strength;
    one["length_s"] = step > 0 ? Json(static_cast<double>(season.period) * static_cast<double>(step) * 1e-9) : Json();
    seasons.push_back(std::move(one));
  }
  return seasons;
}

Json answer_json(const Findings& found) {
  Json out = found.recording.csv ? found.recording.csv->to_json(found.options) : Json::object();
  out["source"] = found.file;
  out["format"] = found.recording.format;
  if (found.recording.sound) {
    out["sample_rate"] = found.recording.sound->sample_rate;
    out["sample_format"] = found.recording.sound->format;
  }
  if (!found.recording.csv) out["rows"] = found.overview.rows;
  Json ranges = Json::array();
  for (std::size_t c = 0; c < found.overview.latest.columns.size(); ++c) {
    const io::ChannelFacts& facts = found.overview.channels[c];
    Json one = Json::object();
    one["name"] = found.overview.latest.columns[c].name;
    one["missing"] = facts.missing;
    one["least"] = facts.low;
    one["mean"] = facts.present > 0 ? Json(facts.mean) : Json();
    one["most"] = facts.high;
    ranges.push_back(std::move(one));
  }
  out["ranges"] = std::move(ranges);
  const data::SeriesReport total = found.preparation.total();
  Json prepared = Json::object();
  prepared["rows"] = total.rows_out;
  prepared["resampled"] = total.resampled;
  prepared["gap_frames"] = total.gap_frames;
  prepared["missing"] = total.missing;
  prepared["filled"] = total.filled;
  out["prepared"] = std::move(prepared);
  out["notes"] = Json::list(notes_of(found));
  out["seasons"] = seasons_json(found);
  out["suggestion"] = to_json(found.suggestion);
  return out;
}

Json block(const char* kind, std::string title) {
  Json json = Json::object();
  json["kind"] = kind;
  json["title"] = std::move(title);
  return json;
}

Json channel_plot(const Series& series, std::size_t channel, std::size_t rows) {
  std::vector<double> values;
  const std::size_t begin = series.rows() - std::min(series.rows(), rows);
  for (std::size_t r = begin; r < series.rows(); ++r) values.push_back(series.at(r, channel));
  const Channel& about = series.schema.channels[channel];
  Json plot = block("plot", about.name);
  plot["x"] = report_axis(series, begin);
  Json y = Json::object();
  y["label"] = about.name;
  if (!about.unit.empty()) y["unit"] = about.unit;
  plot["y"] = std::move(y);
  Json lines = Json::array();
  lines.push_back(report_line(about.name, "history", values));
  plot["lines"] = std::move(lines);
  plot["sync"] = "history";
  return plot;
}

Json page_of(const Findings& found) {
  Json part = Json::object();
  part["title"] = fmt::format("What is in {}", found.file);
  part["lead"] = fmt::format("{}. Time: {}.", layout_text(found), time_line(found));
  Json blocks = Json::array();
  Json findings = block("findings", "To know");
  Json items = Json::array();
  for (const std::string& note : notes_of(found)) {
    Json item = Json::object();
    item["severity"] = "note";
    item["text"] = note;
    items.push_back(std::move(item));
  }
  if (items.items().empty()) {
    Json item = Json::object();
    item["severity"] = "ok";
    item["text"] = "Nothing stands out.";
    items.push_back(std::move(item));
  }
  findings["items"] = std::move(items);
  blocks.push_back(std::move(findings));
  if (!found.series.empty()) {
    const Series& series = found.series.front();
    const std::size_t shown = std::min(series.channels(), kPlottedChannels);
    for (std::size_t c = 0; c < shown; ++c) blocks.push_back(channel_plot(series, c, kPlottedValues / std::max<std::size_t>(1, shown)));
  }
  Json table = block("table", "Channels");
  const auto rows = channel_rows(found);
  Json heads = Json::array();
  for (const std::string& name : rows.front()) {
    Json head = Json::object();
    head["name"] = name;
    heads.push_back(std::move(head));
  }
  table["columns"] = std::move(heads);
  Json cells = Json::array();
  for (std::size_t r = 1; r < rows.size(); ++r) cells.push_back(Json::list(rows[r]));
  table["rows"] = std::move(cells);
  blocks.push_back(std::move(table));
  Json next = block("code", "Next");
  next["text"] = found.suggestion.command;
  blocks.push_back(std::move(next));
  part["blocks"] = std::move(blocks);
  Json page = Json::object();
  page["title"] = fmt::format("kizzasi check {}", found.file);
  page["foot"] = fmt::format("kizzasi check {}", found.file);
  Json parts = Json::array();
  parts.push_back(std::move(part));
  page["parts"] = std::move(parts);
  return page;
}

// From all rows, also where only the latest were prepared.
std::vector<data::SuggestedLimit> limits_of(const Findings& found) {
  if (found.overview.complete()) return data::suggest_limits(found.series);
  const Schema& schema = found.series.front().schema;
  std::vector<io::ChannelFacts> facts;
  for (const Channel& channel : schema.channels) {
    const auto& columns = found.overview.latest.columns;
    const auto at = std::find_if(columns.begin(), columns.end(), [&](const Channel& column) { return column.name == channel.name; });
    facts.push_back(found.overview.channels[static_cast<std::size_t>(at - columns.begin())]);
  }
  return data::suggest_limits(schema, facts);
}

}  // namespace

Result<int> check(Options& options, const Context& context) {
  Findings found;
  data::PrepareOptions preparation;
  std::string report;
  options.positional("FILE", found.file, "The recording: CSV, WAV, npy or npz.");
  options.output("--report FILE", report, "Write a page with plots to this file.");
  options.fields(found.options, "The file");
  options.fields(preparation, "Its channels and times");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;

  auto overview = io::read_overview(found.file, found.options, found.recording);
  if (!overview) {
    if (context.json && found.recording.csv && found.recording.csv->refusal) print_json(found.recording.csv->to_json(found.options));
    return fail(overview.error());
  }
  found.overview = std::move(*overview);
  auto series = data::prepare(found.overview.latest, preparation, found.preparation);
  if (series) {
    found.series = std::move(*series);
    found.seasons = data::find_seasons(found.series);
    std::vector<std::string> given;
    append_given(found.options, given);
    append_given(preparation, given);
    found.suggestion =
        suggest_training(found.file, found.series, found.seasons, limits_of(found), found.recording.sound.has_value(), given);
  } else if (series.error().fault == Fault::kBadUse) {
    return fail(series.error());
  } else {
    found.refused = series.error().text();
  }
  if (!report.empty()) {
    if (auto written = write_report(report, page_of(found)); !written) return fail(written.error());
  }
  context.json ? static_cast<void>(print_json(answer_json(found))) : print_text(found);
  return 0;
}

}  // namespace kizzasi::cli
