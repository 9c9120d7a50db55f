// Unusual stretches of a recording, judged frame by frame by what a model predicted.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "apps/cli/load.h"
#include "apps/cli/model_use.h"
#include "apps/cli/print.h"
#include "apps/cli/report.h"
#include "apps/cli/verbs.h"
#include "kizzasi/data/prepare.h"
#include "kizzasi/forecast/detect.h"
#include "kizzasi/io/file.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

struct Wishes {
  std::string model, file, calibrate = "70,80", false_alarms = "0.001", normal, label, scores, report, keep_out = "24", merge = "5";
  std::int64_t least = 1;
  LoadOptions load;
};

Error bad_use(std::string what, std::string where, std::string expected) {
  return {Fault::kBadUse, std::move(what), std::move(where), std::move(expected), ""};
}

// "0.001" of the frames, or "1/7d": once in that time.
Result<double> rate_of(const std::string& text, std::int64_t step_ns) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number);
  double rate = number;
  if (fault == std::errc{} && rest != end && *rest == '/') {
    const auto frames = parse_steps(std::string(rest + 1, end), step_ns, "--false-alarms");
    if (!frames) return fail(frames.error());
    rate = number / static_cast<double>(*frames);
  } else if (fault != std::errc{} || rest != end) {
    rate = 1;
  }
  if (!(rate > 0 && rate < 0.5)) {
    return fail(
        bad_use(fmt::format("'{}' is no rate of false alarms", text), "--false-alarms", "a share of frames such as 0.001, or 1/7d"));
  }
  return rate;
}

Result<std::pair<double, double>> range_of(const std::string& text) {
  double from = 0, to = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, from);
  const bool comma = first.ec == std::errc{} && first.ptr != end && *first.ptr == ',';
  const auto second = comma ? std::from_chars(first.ptr + 1, end, to) : first;
  if (!comma || second.ec != std::errc{} || second.ptr != end || !(from >= 0 && from < to && to <= 100)) {
    return fail(bad_use(fmt::format("'{}' is no range", text), "--calibrate", "per cent of the rows, such as 70,80"));
  }
  return std::pair(from / 100, to / 100);
}

struct Outcome {
  std::vector<double> scores;       // (rows)
  std::vector<std::uint8_t> flags;  // (rows) 1: inside an event
  std::vector<Event> events;
};

Outcome watch(Detector& detector, const Series& series) {
  Outcome outcome;
  const auto known = series.schema.with_role(Role::kKnownFuture);
  std::vector<double> known_next(known.size());
  for (std::size_t r = 0; r < series.rows(); ++r) {
    for (std::size_t k = 0; k < known.size(); ++k) known_next[k] = r + 1 < series.rows() ? series.at(r + 1, known[k]) : std::nan("");
    const FrameVerdict& verdict = detector.step(series.frame(r), known_next);
    outcome.scores.push_back(verdict.score);
    if (verdict.ended != nullptr) outcome.events.push_back(*verdict.ended);
  }
  if (const Event* event = detector.finish()) outcome.events.push_back(*event);
  outcome.flags.assign(series.rows(), 0);
  for (const Event& event : outcome.events) {
    std::fill(outcome.flags.begin() + static_cast<std::ptrdiff_t>(event.first),
              outcome.flags.begin() + static_cast<std::ptrdiff_t>(event.last) + 1, std::uint8_t{1});
  }
  return outcome;
}

std::string moment(const Series& series, std::uint64_t row) {
  if (series.schema.step_ns == 0) return fmt::format("row {}", row);
  return time_text(data::row_time(series, static_cast<std::size_t>(row)), series.schema.zone);
}

// Channels that took part, the most unusual first.
std::vector<std::string> channels_of(const Event& event, const std::vector<std::string>& names, double threshold) {
  std::vector<std::size_t> order;
  for (std::size_t t = 0; t < names.size(); ++t) order.push_back(t);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return event.channel_scores[a] > event.channel_scores[b]; });
  std::vector<std::string> found;
  for (const std::size_t t : order) {
    if (found.empty() || event.channel_scores[t] >= threshold) found.push_back(names[t]);
  }
  return found;
}

Json event_json(const Event& event, const Series& series, const std::vector<std::string>& channels) {
  return Json::Object{{"start", moment(series, event.first)},
                      {"end", moment(series, event.last)},
                      {"first_row", event.first},
                      {"last_row", event.last},
                      {"peak", moment(series, event.peak)},
                      {"peak_score", event.peak_score},
                      {"channels", Json::list(channels)}};
}

Json score_json(const EventScores& scores) {
  return Json::Object{{"precision", scores.precision},
                      {"recall", scores.recall},
                      {"f1", scores.f1},
                      {"event_f1", scores.event_f1},
                      {"events", scores.events},
                      {"events_found", scores.events_found},
                      {"flagged_events", scores.flagged_events},
                      {"false_events", scores.false_events},
                      {"false_alarm_rate", scores.false_alarm_rate},
                      {"missed_rate", scores.missed_rate},
                      {"delays", Json::list(scores.delays)}};
}

Json page(const Series& series, const Outcome& outcome, const Detector& detector, const std::vector<std::string>& names) {
  const Json axis = report_axis(series, 0);
  const double unit = series.schema.step_ns > 0 ? static_cast<double>(series.schema.step_ns) * 1e-6 : 1;
  const double start = series.schema.step_ns > 0 ? static_cast<double>(series.start_ns) * 1e-6 : 0;
  Json spans = Json::array(), rows = Json::array(), blocks = Json::array();
  for (const Event& event : outcome.events) {
    spans.push_back(Json::Object{{"from", start + (static_cast<double>(event.first) - 0.5) * unit},
                                 {"to", start + (static_cast<double>(event.last) + 0.5) * unit}});
    rows.push_back(Json::Array{moment(series, event.first), moment(series, event.last), event.last - event.first + 1, event.peak_score,
                               fmt::to_string(fmt::join(channels_of(event, names, detector.threshold()), ", "))});
  }
  blocks.push_back(Json::Object{{"kind", "plot"},
                                {"title", "Score"},
                                {"sync", "detect"},
                                {"x", axis},
                                {"y", Json::Object{{"label", "surprise"}}},
                                {"lines", Json::Array{report_line("score", "score", outcome.scores)}},
                                {"limits", Json::Array{Json::Object{{"name", "threshold"}, {"value", detector.threshold()}}}},
                                {"spans", spans}});
  for (std::size_t t = 0; t < std::min<std::size_t>(names.size(), 8); ++t) {
    const std::size_t channel = *series.schema.index_of(names[t]);
    std::vector<double> values;
    for (std::size_t r = 0; r < series.rows(); ++r) values.push_back(series.at(r, channel));
    blocks.push_back(Json::Object{{"kind", "plot"},
                                  {"title", names[t]},
                                  {"sync", "detect"},
                                  {"x", axis},
                                  {"y", Json::Object{{"label", names[t]}, {"unit", series.schema.channels[channel].unit}}},
                                  {"lines", Json::Array{report_line("measured", "truth", values)}},
                                  {"spans", spans}});
  }
  Json columns = Json::array();
  for (const char* name : {"start", "end", "frames", "peak score", "channels"}) columns.push_back(Json::Object{{"name", name}});
  blocks.push_back(Json::Object{{"kind", "table"}, {"title", "Events"}, {"columns", std::move(columns)}, {"rows", std::move(rows)}});
  Json part = Json::Object{{"title", "Events"},
                           {"lead", fmt::format("{} events in {} frames.", outcome.events.size(), series.rows())},
                           {"blocks", std::move(blocks)}};
  return Json::Object{{"title", "Events"}, {"parts", Json::Array{std::move(part)}}, {"foot", "kizzasi detect"}};
}

std::string scores_csv(const Series& series, const Outcome& outcome) {
  std::string text = "time,score,event\n";
  for (std::size_t r = 0; r < series.rows(); ++r) {
    const std::string score =
        std::isnan(outcome.scores[r]) ? "" : fmt::format("{}", outcome.scores[r] + 0.0);  // zero has no sign for a reader
    text += fmt::format("{},{},{}\n", series.schema.step_ns > 0 ? moment(series, r) : fmt::to_string(r), score, outcome.flags[r]);
  }
  return text;
}

// The label column of the recording, as flags; it is no channel of the model.
Result<std::vector<std::uint8_t>> labels_of(const Series& series, const std::string& name) {
  if (!series.schema.index_of(name)) {
    return fail(
        bad_use(fmt::format("there is no column '{}'", name), "--label", fmt::format("one of {}", fmt::join(series.schema.names(), ", "))));
  }
  const std::vector<std::string> wanted{name};
  const auto column = series.select(wanted);
  if (!column) return fail(column.error());
  std::vector<std::uint8_t> labels;
  for (const double value : column->values) labels.push_back(value > 0 ? 1 : 0);
  return labels;
}

}  // namespace

Result<int> detect(Options& options, const Context& context) {
  Wishes wishes;
  options.positional("MODEL", wishes.model, "A trained model.");
  options.positional("FILE", wishes.file, "The recording to look through.");
  options.option("--false-alarms RATE", wishes.false_alarms,
                 "Wanted share of normal frames that alarm, or so many in a time: 0.001, 1/7d.");
  options.option(
      "--calibrate RANGE", wishes.calibrate,
      "Per cent of the rows that are normal and were not trained on: they set the threshold. A longer stretch, trained on or not, where "
      "what is normal changes with the season.");
  options.option("--normal FILE", wishes.normal, "A recording of normal operation that sets the threshold instead.");
  options.option("--merge TIME", wishes.merge, "Pauses that an event bridges: frames or a duration.");
  options.option("--least FRAMES", wishes.least, "Shorter events are dropped.");
  options.option("--keep-out TIME", wishes.keep_out, "How long at most unusual values are kept from the model: frames or a duration.");
  options.option("--label NAME", wishes.label, "A column that is above 0 in true events: how well they were found is told.");
  options.output("-o,--output FILE", wishes.scores, "Writes the score of every frame as CSV.");
  options.output("--report FILE", wishes.report, "Writes an HTML report.");
  wishes.load.declare(options);
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;

  const auto range = range_of(wishes.calibrate);
  if (!range) return fail(range.error());
  if (wishes.least < 1) return fail(bad_use(fmt::format("{} frames are none", wishes.least), "--least", "at least 1"));
  PredictorOptions fixed;
  fixed.adapt = false;
  auto predictor = Predictor::load(wishes.model, fixed);
  if (!predictor) return fail(predictor.error());
  const Schema& schema = (*predictor)->schema();
  const auto rate = rate_of(wishes.false_alarms, schema.step_ns);
  const auto merge = parse_steps(wishes.merge, schema.step_ns, "--merge", 0);
  const auto keep_out = parse_steps(wishes.keep_out, schema.step_ns, "--keep-out", 0);
  if (!rate) return fail(rate.error());
  if (!merge) return fail(merge.error());
  if (!keep_out) return fail(keep_out.error());
  const auto read = [&](const std::string& path, const std::string& label) -> Result<Series> {
    // The channels are those of the model: named, since one that never changes in this recording would be left out.
    LoadOptions load = wishes.load;
    std::vector<std::string>& named = load.prepare.targets;
    if (named.empty() && load.prepare.observed.empty() && load.prepare.known_future.empty()) named = schema.names();
    if (!label.empty() && !named.empty()) named.push_back(label);
    auto all = load_series(path, load, context);
    if (!all) return fail(all.error());
    if (all->size() > 1) return fail(bad_use(fmt::format("{} series stand in one file", all->size()), path, "one series"));
    return std::move(all->front());
  };
  const auto recording = read(wishes.file, wishes.label);
  if (!recording) return fail(recording.error());
  const auto series = select_for_model(schema, *recording, wishes.file);
  if (!series) return fail(series.error());
  std::vector<std::uint8_t> labels;
  if (!wishes.label.empty()) {
    auto found = labels_of(*recording, wishes.label);
    if (!found) return fail(found.error());
    labels = std::move(*found);
  }

  const auto rows = static_cast<double>(series->rows());
  const auto from = static_cast<std::size_t>(range->first * rows);
  // The rows before that stretch warm the model up, as far as there are any.
  std::size_t warm_up = std::min(from, (*predictor)->lookback());
  auto normal = series->slice(from - warm_up, static_cast<std::size_t>(range->second * rows));
  if (!wishes.normal.empty()) {
    const auto other = read(wishes.normal, "");
    if (!other) return fail(other.error());
    auto chosen = select_for_model(schema, *other, wishes.normal);
    if (!chosen) return fail(chosen.error());
    normal = std::move(*chosen);
    warm_up = 0;
  }
  const DetectOptions settings{*rate, std::min(0.4, 10 * *rate), *merge, static_cast<std::size_t>(wishes.least), *keep_out};
  auto detector = Detector::make(*predictor, normal, settings, warm_up);
  if (!detector) return fail(detector.error());
  const Outcome outcome = watch(*detector, *series);

  std::vector<std::string> names;
  for (const std::size_t channel : (*predictor)->order().first((*predictor)->targets())) names.push_back(schema.channels[channel].name);
  std::vector<io::FileToWrite> files;
  if (!wishes.scores.empty()) files.push_back({wishes.scores, scores_csv(*series, outcome)});
  if (!wishes.report.empty()) files.push_back({wishes.report, report_html(page(*series, outcome, *detector, names))});
  if (auto written = io::write_files(files); !written) return fail(written.error());
  std::optional<EventScores> judged;
  if (!labels.empty()) judged = score_events(labels, outcome.flags);

  if (context.json) {
    Json events = Json::array();
    for (const Event& event : outcome.events)
      events.push_back(event_json(event, *series, channels_of(event, names, detector->threshold())));
    Json json = Json::Object{{"frames", series->rows()},
                             {"threshold", detector->threshold()},
                             {"off_threshold", detector->off_threshold()},
                             {"false_alarm_rate_wanted", *rate},
                             {"calibrated_on_frames", detector->calibrated_on()},
                             {"kept_out_frames", detector->kept_out()},
                             {"events", std::move(events)}};
    if (judged) json["labels"] = score_json(*judged);
    print_json(json);
    return 0;
  }
  std::vector<std::vector<std::string>> table{{"start", "end", "frames", "peak score", "peak", "channels"}};
  for (const Event& event : outcome.events) {
    table.push_back({moment(*series, event.first), moment(*series, event.last), fmt::to_string(event.last - event.first + 1),
                     number_text(event.peak_score), moment(*series, event.peak),
                     fmt::to_string(fmt::join(channels_of(event, names, detector->threshold()), ", "))});
  }
  if (!outcome.events.empty()) print(columns(table) + "\n");
  print(fmt::format(
      "{} events in {} frames; threshold {} for {} false alarms a frame, from {} normal frames; {} frames were kept from the model.\n",
      outcome.events.size(), series->rows(), number_text(detector->threshold()), number_text(*rate), detector->calibrated_on(),
      detector->kept_out()));
  if (judged) {
    print(fmt::format(
        "Of {} labelled events {} were found; {} of {} flagged events touch none. Frames: precision {:.3f}, recall {:.3f}, F1 {:.3f}.\n",
        judged->events, judged->events_found, judged->false_events, judged->flagged_events, judged->precision, judged->recall, judged->f1));
  }
  return 0;
}

}  // namespace kizzasi::cli
