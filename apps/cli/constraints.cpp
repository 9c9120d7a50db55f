// kizzasi constraints: explains a constraint file, and checks a recording against it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/cli/constraint_insight.h"
#include "apps/cli/constraint_source.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/io/csv.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/learned.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

constexpr std::size_t kShownPlaces = 3;

// What a recording says about one constraint.
struct Finding {
  std::size_t broken = 0, unknown = 0;  // rows
  double worst = 0;
  std::vector<std::string> first;  // the first rows that break it
};

// Without a recording, the channels are those that the constraints name.
Result<Schema> named_channels(const std::vector<ConstraintText>& constraints) {
  Schema schema;
  schema.step_ns = 1'000'000'000;
  for (const ConstraintText& text : constraints) {
    const auto formula = logic::parse_formula({text.that, text.where, text.line, text.column});
    if (!formula) return fail(formula.error());
    name_channels(*formula, schema);
  }
  if (schema.channels.empty()) schema.channels.push_back({"every channel", "", Role::kTarget});
  return schema;
}

Schema schema_of(const Table& table, std::int64_t step_ns) {
  Schema schema;
  schema.channels = table.columns;
  for (Channel& channel : schema.channels) channel.role = Role::kTarget;
  schema.zone = table.zone;
  schema.step_ns =
      table.time_ns.empty() ? table.nominal_step_ns : std::max<std::int64_t>(step_ns, 1);  // stamps without one step are timed too
  return schema;
}

// What counts as one unit of a change: the standard deviation of each channel. Without a recording, 1.
std::vector<double> scales_of(const Table& table) {
  const std::size_t channels = table.columns.size();
  std::vector<double> scales;
  for (std::size_t c = 0; c < channels; ++c) {
    double count = 0, mean = 0, squares = 0;
    for (std::size_t r = 0; r < table.rows(); ++r) {
      const double x = table.values[r * channels + c];
      if (!std::isfinite(x)) continue;
      count += 1;
      const double by = x - mean;
      mean += by / count;
      squares += by * (x - mean);
    }
    const double deviation = count > 0 ? std::sqrt(squares / count) : 0;
    scales.push_back(deviation >= 1e-100 && deviation <= 1e100 ? deviation : 1);
  }
  return scales;
}

std::string row_name(const Table& table, std::size_t row) {
  std::string name = fmt::format("row {}", row + 1);
  if (!table.series.empty()) name.append(" of ").append(table.ids[static_cast<std::size_t>(table.series[row])]);
  if (!table.time_ns.empty()) name.append(fmt::format(" ({})", time_text(table.time_ns[row], table.zone)));
  return name;
}

std::vector<Finding> check_rows(const Guard& guard, const Table& table, std::int64_t step_ns) {
  std::vector<Finding> findings(guard.constraints());
  const std::size_t channels = table.columns.size(), series = std::max<std::size_t>(table.ids.size(), 1);
  std::vector<std::vector<std::byte>> states(series, std::vector<std::byte>(guard.state_bytes()));
  std::vector<std::int64_t> rows_seen(series, 0);
  for (auto& state : states) guard.reset(state);
  GuardReport report;
  guard.prepare(report);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const std::size_t in = table.series.empty() ? 0 : static_cast<std::size_t>(table.series[row]);
    const std::int64_t time = table.time_ns.empty() ? rows_seen[in] * step_ns : table.time_ns[row];
    ++rows_seen[in];
    const std::span<const double> value(table.values.data() + row * channels, channels);
    guard.check(states[in], time, value, report);
    for (std::size_t i = 0; i < findings.size(); ++i) {
      Finding& finding = findings[i];
      if (report.unknown[i] != 0) ++finding.unknown;
      if (report.broken[i] == 0) continue;
      if (finding.first.size() < kShownPlaces) finding.first.push_back(row_name(table, row));
      finding.worst = std::max(finding.worst, report.slack[i]);
      ++finding.broken;
    }
    guard.accept(states[in], time, value, {});
  }
  return findings;
}

Json finding_json(const Finding& finding) {
  Json json = Json::object();
  json["broken_rows"] = finding.broken;
  json["unknown_rows"] = finding.unknown;
  json["worst"] = finding.worst;
  json["first"] = Json::list(finding.first);
  return json;
}

void print_explanation(const Json& explanation) {
  for (const Json& c : explanation.find("constraints")->items()) {
    print(fmt::format("{}\n", c.find("name")->string()));
    const auto line = [](std::string_view what, const std::string& text) { print(fmt::format("  {:<9} {}\n", what, text)); };
    line("reads as", c.find("read_as")->string());
    line("class", c.find("class")->string());
    line("cost", c.find("cost")->string());
    line("enforced", c.find("enforcement")->string());
    if (c.find("priority")->integer() != 0) line("priority", fmt::format("{}", c.find("priority")->integer()));
  }
}

void print_findings(const Guard& guard, const std::vector<Finding>& findings, const Table& table) {
  std::vector<std::vector<std::string>> rows{{"constraint", "broken rows", "share", "worst by", "not judged", "first"}};
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Finding& f = findings[i];
    const double share = table.rows() == 0 ? 0 : 100.0 * static_cast<double>(f.broken) / static_cast<double>(table.rows());
    rows.push_back({std::string(guard.name(i)), fmt::format("{}", f.broken), fmt::format("{:.2f} %", share),
                    f.broken == 0 ? "-" : number_text(f.worst), fmt::format("{}", f.unknown), f.first.empty() ? "-" : f.first.front()});
  }
  print(columns(rows));
}

// In quotes, as TOML and JSON write a text.
std::string quoted(const std::string& text) { return Json(text).dump(); }

const char* kind_name(LearnedConstraint::Kind kind) {
  switch (kind) {
    case LearnedConstraint::Kind::kRange:
      return "range";
    case LearnedConstraint::Kind::kRate:
      return "rate";
    case LearnedConstraint::Kind::kRelation:
      return "relation";
    case LearnedConstraint::Kind::kSettling:
      return "settling";
  }
  return "";
}

// A recording in, constraints out, as a file that every verb takes.
Result<int> learn(const std::string& file, const LearnOptions& options, const Context& context) {
  io::CsvReport report;
  const auto table = io::read_csv(file, {}, report);
  if (!table) return fail(table.error());
  const Schema schema = schema_of(*table, report.step_ns());
  std::vector<std::int32_t> series;
  for (const auto s : table->series) series.push_back(static_cast<std::int32_t>(s));
  const auto learned = learn_constraints(schema, {table->values, table->time_ns, series}, options);
  if (!learned) return fail(learned.error());
  if (learned->empty()) {
    return fail({Fault::kBadInput, fmt::format("{} rows support no constraint", table->rows()), file,
                 "more rows, a smaller --share or a lower --confidence", ""});
  }
  if (context.json) {
    Json list = Json::array();
    for (const LearnedConstraint& c : *learned) {
      Json one = Json::object();
      one["name"] = c.name;
      one["that"] = c.that;
      one["kind"] = kind_name(c.kind);
      one["judged"] = c.judged;
      one["held"] = c.held;
      one["promised"] = c.promised;
      list.push_back(std::move(one));
    }
    Json out = Json::object();
    out["rows"] = table->rows();
    out["confidence"] = options.confidence;
    out["constraint"] = std::move(list);
    print_json(out);
    return 0;
  }
  print(fmt::format("# Learned from {} rows. Each promise holds with confidence {}, for frames like these.\n", table->rows(),
                    options.confidence));
  for (const LearnedConstraint& c : *learned) {
    const std::string_view what = c.kind == LearnedConstraint::Kind::kSettling ? "episodes"
                                  : c.kind == LearnedConstraint::Kind::kRate   ? "changes"
                                                                               : "rows";
    print(fmt::format("\n[[constraint]]\nname = {}\nthat = {}\n# {} {} judged, {:.2f} % hold; at least {:.2f} % promised\n", quoted(c.name),
                      quoted(c.that), c.judged, what, 100 * c.held, std::floor(1e4 * c.promised) / 100));
  }
  return 0;
}

}  // namespace

Result<int> constraints(Options& options, const Context& context) {
  std::string file, data;
  std::vector<std::string> limits, sets;
  bool explain = false;
  std::int64_t decimals = -1;
  options.positional("FILE", file, "The constraint file: TOML, YAML or JSON.", false);
  options.option("--limit \"CONSTRAINT\"", limits, "One more constraint, such as \"vehicles >= 0\"; may be repeated.");
  options.option("--set NAME=VALUE", sets, kSetHelp);
  options.option("--data FILE", data, "A recording (CSV) to check, whose channels and units the constraints must name.");
  options.flag("--explain", explain, "How each constraint is read, what it costs and how it is enforced.");
  options.option("--decimals N", decimals, "Numbers will leave as text with N decimals; default: all their digits.");
  std::string from;
  LearnOptions learning;
  options.option("--learn FILE", from, "Prints the constraints that a recording (CSV) obeys, as TOML with the support of each.");
  options.option("--confidence", learning.confidence, "With --learn: of what each constraint promises for frames to come.");
  options.option("--share", learning.share,
                 "With --learn: of frames that must obey, such as 0.99, for narrower limits; 0: all of the recording.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  if (!(learning.confidence > 0 && learning.confidence < 1)) {
    return fail(
        {Fault::kBadUse, fmt::format("a confidence of {}", learning.confidence), "--confidence", "above 0 and below 1, such as 0.99", ""});
  }
  if (!(learning.share >= 0 && learning.share < 1)) {
    return fail({Fault::kBadUse, fmt::format("a share of {}", learning.share), "--share", "0, or above 0 and below 1", ""});
  }
  if (!from.empty()) {
    if (!file.empty() || !limits.empty() || !sets.empty() || !data.empty() || explain) {
      return fail({Fault::kBadUse, "--learn stands with a recording alone", "--learn", "no constraints, --data or --explain beside it",
                   "Save what is learned, then check a recording against it."});
    }
    return learn(from, learning, context);
  }
  if (options.given("--confidence") || options.given("--share")) {
    return fail(
        {Fault::kBadUse, "there is nothing to learn from", options.given("--confidence") ? "--confidence" : "--share", "--learn FILE", ""});
  }
  constexpr std::int64_t kMostDecimals = 22;
  if (decimals < -1 || decimals > kMostDecimals) {
    return fail({Fault::kBadUse, fmt::format("{} decimals", decimals), "--decimals", fmt::format("0 to {}", kMostDecimals), ""});
  }
  const auto texts = read_constraint_source(file, limits, sets);
  if (!texts) return fail(texts.error());
  if (texts->empty()) {
    return fail({Fault::kBadUse, "there is no constraint", file.empty() ? "constraints" : file, "a file of constraints, or --limit", ""});
  }

  Table table;
  io::CsvReport report;
  Schema schema;
  if (data.empty()) {
    auto named = named_channels(*texts);
    if (!named) return fail(named.error());
    schema = std::move(*named);
  } else {
    auto read = io::read_csv(data, {}, report);
    if (!read) return fail(read.error());
    table = std::move(*read);
    schema = schema_of(table, report.step_ns());
  }
  const auto guard = compile_guard(schema, *texts, {static_cast<int>(decimals)});
  const auto insight = insight_of(schema, *texts, scales_of(table));
  if (!insight) return fail(insight.error());
  if (insight->conflicts()) {  // the guard may refuse such a set; with more to say than that there is no room
    if (!guard && guard.error().fault == Fault::kBadUse) return fail(guard.error());
    Json told = guard ? (*guard)->explain() : Json::object();
    told["consistency"] = insight_json(*insight, *texts, schema);
    if (context.json) {
      print_json(told);
    } else {
      if (guard && explain) print_explanation(told);
      print_insight(*insight, *texts);
    }
    return 1;
  }
  if (!guard) return fail(guard.error());
  std::vector<Finding> findings;
  if (!data.empty()) findings = check_rows(**guard, table, schema.step_ns == 0 ? 1 : schema.step_ns);
  const auto broken =
      static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [](const Finding& f) { return f.broken > 0; }));

  Json explanation = (*guard)->explain();
  if (context.json) {
    for (std::size_t i = 0; i < findings.size(); ++i) explanation["constraints"].items()[i]["data"] = finding_json(findings[i]);
    if (!data.empty()) explanation["rows"] = table.rows();
    explanation["consistency"] = insight_json(*insight, *texts, schema);
    print_json(explanation);
    return broken == 0 ? 0 : 1;
  }
  if (explain || data.empty()) {
    print_explanation(explanation);
    print_insight(*insight, *texts);
  }
  if (data.empty()) {
    remark(context, "Channel names and units were not checked: no --data was given.");
    return 0;
  }
  print_findings(**guard, findings, table);
  print(broken == 0 ? fmt::format("All {} rows obey all {} constraints.\n", table.rows(), findings.size())
                    : fmt::format("{} of {} constraints are broken somewhere in {} rows.\n", broken, findings.size(), table.rows()));
  return broken == 0 ? 0 : 1;
}

}  // namespace kizzasi::cli
