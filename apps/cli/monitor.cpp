// kizzasi monitor: what a formula of temporal logic is worth at each sample of a recording, or live.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "apps/cli/constraint_source.h"
#include "apps/cli/frame_lines.h"
#include "apps/cli/print.h"
#include "apps/cli/report.h"
#include "apps/cli/verbs.h"
#include "kizzasi/io/csv.h"
#include "kizzasi/io/frame_reader.h"
#include "kizzasi/logic/constraint_file.h"
#include "kizzasi/logic/monitor/numbers.h"
#include "kizzasi/logic/monitor/offline.h"
#include "kizzasi/logic/monitor/online.h"
#include "kizzasi/logic/monitor/prefix.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

using logic::Robustness;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostPositions = 100'000'000;  // samples of one series, those that are missing included
constexpr std::size_t kMostShown = 20'000;           // samples that a page shows

struct Ask {
  std::string formula, file, step, report;
  bool online = false, prefix = false;
  io::CsvOptions csv;
};

// One line of the answer.
struct Row {
  std::string id;                // empty: one series
  std::size_t t = 0, known = 0;  // known: samples that had come, live
  std::string time;              // empty: rows are counted
  logic::Verdict verdict = 0, truth = 0;
  Robustness robustness;
  std::string ltl, ltlf, rv;  // --prefix
};

Json number_json(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json row_json(const Row& row) {
  Json json = Json::object();
  if (!row.id.empty()) json["unique_id"] = row.id;
  json["t"] = row.t;
  if (row.known > 0) json["known"] = row.known;
  if (!row.time.empty()) json["time"] = row.time;
  json["verdict"] = std::string(1, logic::letter(row.verdict));
  json["robustness"] = row.robustness.low == row.robustness.high ? number_json(row.robustness.low) : Json();
  json["low"] = number_json(row.robustness.low);
  json["high"] = number_json(row.robustness.high);
  json["sat"] = std::string(1, logic::letter(row.truth));
  if (!row.rv.empty()) {
    json["ltl3"] = row.ltl;
    json["ltlf"] = row.ltlf;
    json["rvltl"] = row.rv;
  }
  return json;
}

std::string row_csv(const Row& row) {
  const bool known = row.robustness.low == row.robustness.high;
  std::string out = row.id.empty() ? "" : row.id + ",";
  out += fmt::format("{},", row.t);
  if (row.known > 0) out += fmt::format("{},", row.known);
  if (!row.time.empty()) out += row.time + ",";
  out += fmt::format("{},{},{},{}", logic::letter(row.verdict), known ? fmt::format("{}", row.robustness.low) : "", row.robustness.low,
                     row.robustness.high);
  if (!row.rv.empty()) out += fmt::format(",{},{}", row.ltlf, row.rv);
  return out + "\n";
}

std::string head_csv(bool ids, bool live, bool times, bool prefix) {
  return fmt::format("{}t,{}{}verdict,robustness,low,high{}\n", ids ? "unique_id," : "", live ? "known," : "", times ? "time," : "",
                     prefix ? ",ltlf,rvltl" : "");
}

// One series of the table on the grid of its step: where no row stands, nothing is known.
struct Gridded {
  std::vector<double> frames;
  std::vector<std::int64_t> times;     // (positions) empty where rows are counted
  std::vector<std::size_t> rows;       // rows of the table, in order
  std::vector<std::size_t> positions;  // of each
  std::size_t missing = 0, late = 0, uneven = 0;
};

Result<Gridded> gridded(const Table& table, std::size_t series, std::int64_t step_ns) {
  Gridded out;
  const std::size_t channels = table.columns.size();
  const bool timed = !table.time_ns.empty() && step_ns > 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!table.series.empty() && static_cast<std::size_t>(table.series[row]) != series) continue;
    std::size_t position = out.rows.size();
    if (timed && !out.rows.empty()) {
      const std::int64_t time = table.time_ns[row], last = table.time_ns[out.rows.back()];
      if (time <= last) {
        ++out.late;
        continue;
      }
      const double steps = (static_cast<double>(time) - static_cast<double>(last)) / static_cast<double>(step_ns);
      if (std::abs(steps - std::round(steps)) > 0.1) ++out.uneven;
      if (steps > static_cast<double>(kMostPositions)) {
        return fail({Fault::kBadInput, fmt::format("row {} comes {} after the one before", row + 1, duration_text(time - last)),
                     table.source, fmt::format("at most {} steps of {}", kMostPositions, duration_text(step_ns)),
                     "Cut the recording there, or name a longer --step."});
      }
      position = out.positions.back() + static_cast<std::size_t>(std::max(std::round(steps), 1.0));
    }
    out.missing += position - out.frames.size() / channels;
    out.frames.resize(position * channels, kNaN);
    out.frames.insert(out.frames.end(), table.values.begin() + static_cast<std::ptrdiff_t>(row * channels),
                      table.values.begin() + static_cast<std::ptrdiff_t>((row + 1) * channels));
    if (timed) {
      while (out.times.size() < position)
        out.times.push_back(table.time_ns[row] - static_cast<std::int64_t>(position - out.times.size()) * step_ns);
      out.times.push_back(table.time_ns[row]);
    }
    out.rows.push_back(row);
    out.positions.push_back(position);
    if (position > kMostPositions) {
      return fail({Fault::kBadInput, fmt::format("the recording spans {} steps of {}", position, duration_text(step_ns)), table.source,
                   fmt::format("at most {}", kMostPositions), "Cut it into pieces, or name a longer --step."});
    }
  }
  return out;
}

// The automaton's verdicts after each sample, from the start of the series.
class Prefixes {
 public:
  Prefixes(const logic::NodeGraph& graph, logic::PrefixMonitor monitor)
      : graph_(graph), monitor_(std::move(monitor)), numbers_(graph), state_(numbers_.state_doubles()), values_(graph.nodes.size()) {
    numbers_.reset(state_);
    at_ = monitor_.start();
  }
  void step(std::int64_t time_ns, std::span<const double> frame, Row& row) {
    numbers_.step(graph_, state_, time_ns, frame, values_);
    std::int64_t letter = 0;
    for (std::size_t i = 0; i < monitor_.propositions().size() && letter >= 0; ++i) {
      const logic::Verdict truth = logic::truth_of(graph_, monitor_.propositions()[i], values_);
      letter = truth == 0 ? -1 : letter | (truth > 0 ? std::int64_t{1} << i : 0);
    }
    at_ = monitor_.step(at_, letter);
    const logic::PrefixVerdict verdict = monitor_.verdict(at_);
    row.ltl = !verdict.known ? "?" : verdict.every ? "T" : verdict.some ? "?" : "F";
    row.ltlf = !verdict.known ? "unknown" : fmt::format("{}_{}", verdict.permanent ? "perm" : "temp", verdict.now ? "true" : "false");
    row.rv = logic::rv_ltl(verdict);
  }

 private:
  const logic::NodeGraph& graph_;
  logic::PrefixMonitor monitor_;
  logic::Numbers numbers_;
  std::vector<double> state_, values_;
  std::int32_t at_ = 0;
};

Json report_of(const Ask& ask, const logic::NodeGraph& graph, const Gridded& g, const std::vector<Row>& rows, const Table& table) {
  Json content = Json::object();
  content["title"] = ask.formula;
  Json part = Json::object();
  part["title"] = table.source;
  std::vector<double> low, high;
  const std::size_t shown = std::min(rows.size(), kMostShown);
  for (std::size_t i = 0; i < shown; ++i) {
    low.push_back(rows[i].robustness.low);
    high.push_back(rows[i].robustness.high);
  }
  Series axis;
  axis.schema = graph.schema;
  axis.values = table.values;
  if (!table.time_ns.empty()) axis.start_ns = table.time_ns[g.rows.front()];
  Json plot = Json::object();
  plot["kind"] = "plot";
  plot["title"] = "robustness (above 0: it holds)";
  plot["x"] = report_axis(axis, 0);
  plot["y"]["label"] = "robustness";
  plot["y"]["unit"] = "";
  plot["lines"].push_back(report_line("lower end", "score", low));
  plot["lines"].push_back(report_line("upper end", "residual", high));
  plot["limits"].push_back(Json::Object{{"name", "holds above"}, {"value", 0.0}});
  part["blocks"].push_back(std::move(plot));
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const bool used = std::any_of(graph.nodes.begin(), graph.nodes.end(),
                                  [&](const logic::Node& n) { return n.kind == logic::NodeKind::kChannel && n.a == c; });
    if (!used) continue;
    std::vector<double> values;
    for (std::size_t i = 0; i < shown; ++i) values.push_back(table.values[g.rows[i] * table.columns.size() + c]);
    Json signal = Json::object();
    signal["kind"] = "plot";
    signal["title"] = table.columns[c].name;
    signal["x"] = report_axis(axis, 0);
    signal["y"]["label"] = table.columns[c].name;
    signal["y"]["unit"] = table.columns[c].unit;
    signal["lines"].push_back(report_line("measured", "history", values));
    part["blocks"].push_back(std::move(signal));
  }
  content["parts"].push_back(std::move(part));
  content["foot"] =
      shown < rows.size() ? fmt::format("The first {} of {} samples.", shown, rows.size()) : fmt::format("{} samples.", rows.size());
  return content;
}

Result<int> whole_file(Ask& ask, const Context& context, const logic::Formula& formula, const logic::Source& source, std::int64_t step_ns) {
  ask.csv.keep_infinite = true;
  io::CsvReport report;
  auto table = io::read_csv(ask.file, ask.csv, report);
  // What the formula speaks of is a signal, however much its numbers look like times.
  Schema named;
  name_channels(formula, named);
  const bool time_is_named = std::any_of(report.time_columns.begin(), report.time_columns.end(),
                                         [&](const std::string& name) { return named.index_of(name).has_value(); });
  if (time_is_named && ask.csv.time_column.empty()) {
    ask.csv.time_column = "none";
    report = {};
    table = io::read_csv(ask.file, ask.csv, report);
  }
  if (!table) return fail(table.error());
  Schema schema;
  schema.channels = table->columns;
  for (Channel& channel : schema.channels) channel.role = Role::kTarget;
  schema.zone = table->zone;
  schema.step_ns = step_ns > 0 ? step_ns : table->time_ns.empty() ? table->nominal_step_ns : report.step_ns();
  if (schema.step_ns == 0 && !table->time_ns.empty())
    remark(context, "The rows have no common step and are counted; --step gives them one.");
  const auto graph = logic::build_graph(formula, schema, source);
  if (!graph) return fail(graph.error());
  std::optional<logic::PrefixMonitor> prefix;
  if (ask.prefix) {
    auto made = logic::PrefixMonitor::create(*graph, graph->roots[0], source.place(0));
    if (!made) return fail(made.error());
    prefix = *std::move(made);
  }
  const bool ids = !table->ids.empty(), times = !table->time_ns.empty();
  std::string text = context.json ? "" : head_csv(ids, false, times, ask.prefix);  // printed once all is written
  std::size_t holds = 0, broken = 0, all = 0, missing = 0, late = 0, uneven = 0;
  for (std::size_t series = 0; series < std::max<std::size_t>(table->ids.size(), 1); ++series) {
    const auto grid = gridded(*table, series, times ? schema.step_ns : 0);
    if (!grid) return fail(grid.error());
    const auto judged = logic::judge(*graph, grid->frames, grid->times, ask.online ? logic::TraceEnd::kGoesOn : logic::TraceEnd::kEnds)[0];
    std::optional<Prefixes> prefixes;
    if (prefix) prefixes.emplace(*graph, *prefix);
    std::vector<Row> rows;
    std::size_t next = 0;
    for (std::size_t position = 0; position < judged.truth.size(); ++position) {
      const bool stands = next < grid->positions.size() && grid->positions[next] == position;
      Row row;
      const std::int64_t time = grid->times.empty() ? static_cast<std::int64_t>(position) * schema.step_ns : grid->times[position];
      if (prefixes) prefixes->step(time, std::span(grid->frames).subspan(position * schema.size(), schema.size()), row);
      if (!stands) continue;
      row.t = next++;
      if (ids) row.id = table->ids[series];
      if (times) row.time = time_text(table->time_ns[grid->rows[row.t]], table->zone);
      row.robustness = judged.robustness[position];
      row.truth = judged.truth[position];
      row.verdict = ask.online ? logic::sign_of(row.robustness) : row.truth;
      holds += row.verdict > 0 ? 1 : 0;
      broken += row.verdict < 0 ? 1 : 0;
      ++all;
      text += context.json ? row_json(row).dump() + "\n" : row_csv(row);
      if (!ask.report.empty()) rows.push_back(std::move(row));
    }
    missing += grid->missing;
    late += grid->late;
    uneven += grid->uneven;
    if (!ask.report.empty() && series == 0 && !rows.empty()) {
      if (auto written = write_report(ask.report, report_of(ask, *graph, *grid, rows, *table)); !written) return fail(written.error());
    }
  }
  if (!print(text)) return 0;
  remark(context, fmt::format("It holds at {} of {} samples, is broken at {}, open at {}.", holds, all, broken, all - holds - broken));
  if (missing > 0) remark(context, fmt::format("{} samples are missing between the rows; they count as unknown.", missing));
  if (late > 0) remark(context, fmt::format("{} rows are not newer than the one before and were set aside.", late));
  if (uneven > 0)
    remark(context,
           fmt::format("{} rows stand off the grid of {} and were taken as its nearest sample.", uneven, duration_text(schema.step_ns)));
  if (ids && !ask.report.empty()) remark(context, "The report shows the first series.");
  return 0;
}

// Frames from a pipe: each answered as soon as it says something, in memory set by the formula.
Result<int> live(const Ask& ask, const Context& context, std::int64_t step_ns) {
  auto lines = FrameLines::open("-");
  if (!lines) return fail(lines.error());
  std::string line;
  bool too_long = false;
  if (!lines->next(line, too_long)) return fail({Fault::kBadInput, "there is no line", "standard input", "frames in CSV or JSON", ""});
  const auto names = io::channels_of_first_line(line);
  if (!names) return fail(names.error());
  Schema schema;
  for (const std::string& name : *names) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = step_ns;
  const std::vector<ConstraintText> texts{constraint_from_option(ask.formula, "FORMULA")};
  auto monitor = Monitor::create(schema, texts, MonitorKind::kRobustness);
  if (!monitor) return fail(monitor.error());
  std::vector<std::byte> state((*monitor)->state_bytes());
  std::vector<double> scratch((*monitor)->scratch_doubles());
  (*monitor)->reset(state);
  MonitorVerdict verdict;
  io::FrameReader reader(schema);
  io::StreamFrame frame;
  std::int64_t last_ns = 0;
  std::size_t frames = 0, bad = 0;
  const auto complain = [&](const std::string& text) {
    ++bad;
    std::fflush(stdout);
    std::fprintf(stderr, "kizzasi monitor: %s\n", text.c_str());
  };
  if (!context.json) print(head_csv(false, true, false, false));
  do {
    const auto kind = reader.read(too_long ? std::string_view("\x01") : std::string_view(line), frame);
    if (!kind) {
      complain(kind.error().text());
      continue;
    }
    if (*kind != io::LineKind::kFrame) continue;
    const std::int64_t time = frame.time_ns.value_or(frames == 0 ? 0 : last_ns + step_ns);
    if ((*monitor)->step(state, time, frame.values, std::span(&verdict, 1), scratch) == MonitorStatus::kOutOfOrder) {
      complain(fmt::format("line {}: the frame is not newer than the last one", reader.lines()));
      continue;
    }
    last_ns = time;
    ++frames;
    if (verdict.position < 0) continue;
    Row row;
    row.t = static_cast<std::size_t>(verdict.position);
    row.known = frames;
    row.robustness = {verdict.low, verdict.high};
    row.truth = verdict.truth;
    row.verdict = verdict.truth;
    if (!print(context.json ? row_json(row).dump() + "\n" : row_csv(row)) || !flush()) return 0;
  } while (lines->next(line, too_long));
  remark(context, fmt::format("{} frames, {} bad or late lines.", frames, bad));
  return 0;
}

}  // namespace

Result<int> monitor(Options& options, const Context& context) {
  Ask ask;
  options.positional("FORMULA", ask.formula, "A condition, such as \"always (temp > 80 -> eventually[0, 10s] temp < 60)\".");
  options.positional("FILE", ask.file, "A recording (CSV), or - for frames line by line (CSV or JSON) from standard input.");
  options.flag(
      "--online", ask.online,
      "The recording may go on: what its future decides is open, and a sample's verdict is T or F only where nothing that comes can "
      "change it. Without it the trace ends with its last row.");
  options.flag(
      "--prefix", ask.prefix,
      "Also what each prefix says of the formula from the start: temporarily or permanently true or false (ltlf), and on all infinite "
      "continuations (rvltl). For formulas without past operators.");
  options.option("--step DURATION", ask.step, "Between two samples, such as 50ms; found in the file where nothing is said.");
  options.output("--report FILE", ask.report, "A page (HTML) with the robustness and the signals.");
  options.fields(ask.csv, "Reading the file");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  std::int64_t step_ns = 0;
  if (!ask.step.empty()) {
    const auto step = parse_duration(ask.step, "--step");
    if (!step) return fail(step.error());
    if (*step == 0) return fail({Fault::kBadUse, "the step is 0", "--step", "a duration above 0, such as 50ms", ""});
    step_ns = *step;
  }
  const logic::Source source{ask.formula, "FORMULA"};
  const auto formula = logic::parse_formula(source);
  if (!formula) return fail(formula.error());
  if (ask.file != "-") return whole_file(ask, context, *formula, source, step_ns);
  if (ask.prefix || !ask.report.empty()) {
    return fail({Fault::kBadUse, "--prefix and --report need the whole recording", "FILE -", "a file", ""});
  }
  return live(ask, context, step_ns);
}

}  // namespace kizzasi::cli
