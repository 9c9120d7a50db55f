// kizzasi guard: frames in, the nearest frames that obey out. For any model or controller; none of ours is needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "apps/cli/constraint_source.h"
#include "apps/cli/frame_lines.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/io/frame_reader.h"
#include "kizzasi/logic/explanation.h"
#include "kizzasi/logic/guard.h"
#include "kizzasi/logic/trajectory.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

struct Ask {
  std::string constraints, frames = "-", step = "1s";
  std::vector<std::string> limits, sets;
  std::int64_t decimals = -1, past = 0;
  std::string what_if;
  bool strict = false, whole = false, explain = false;
};

// What is said of a frame that was moved.
struct Said {
  MoveCost cost;
  std::string why, what_if;
};

// How frames leave: in the form in which they came.
class Answers {
 public:
  Answers(const Schema& schema, const Guard& guard, bool json, const Ask& ask)
      : schema_(schema),
        guard_(guard),
        json_(json),
        decimals_(ask.decimals),
        why_(ask.explain),
        what_if_(!ask.what_if.empty()),
        whole_(ask.whole) {}

  std::string head(bool timed) const {
    if (json_) return "";
    std::string out = timed ? "time" : "";
    for (const Channel& channel : schema_.channels) out.append(out.empty() ? "" : ",").append(channel.name);
    return out + ",status" + (why_ ? ",why" : "") + (what_if_ ? ",what_if" : "") + "\n";
  }

  std::string line(const io::StreamFrame& frame, std::span<const double> value, const GuardReport& report, const Said& said = {}) const {
    const bool refused = report.status == GuardStatus::kRejected;
    const std::string time = frame.time_ns ? time_text(*frame.time_ns, "UTC") : "";
    if (json_) return json(time, refused, value, report, said).dump() + "\n";
    std::string out = time;
    for (std::size_t c = 0; c < value.size(); ++c) {
      if (c > 0 || !time.empty()) out.push_back(',');
      if (!refused && !std::isnan(value[c])) out.append(number(value[c]));
    }
    out.append(",").append(to_string(report.status));
    if (why_) out.append(",").append(cell(said.why));
    if (what_if_) out.append(",").append(cell(said.what_if));
    return out + "\n";
  }

 private:
  static std::string cell(const std::string& text) {
    if (text.empty()) return "";
    std::string out = "\"";
    for (const char c : text) out.append(c == '"' ? "\"\"" : std::string(1, c));
    return out + "\"";
  }

  std::string number(double x) const {
    if (x == 0) x = 0;  // no -0
    return decimals_ < 0 ? fmt::format("{}", x) : fmt::format("{:.{}f}", x, static_cast<int>(decimals_));
  }

  Json json(const std::string& time, bool refused, std::span<const double> value, const GuardReport& report, const Said& said) const {
    Json out = Json::object();
    if (!time.empty()) out["time"] = time;
    for (std::size_t c = 0; c < schema_.size(); ++c) {
      out[schema_.channels[c].name] = refused || std::isnan(value[c]) ? Json() : Json(value[c] == 0 ? 0.0 : value[c]);
    }
    out["status"] = to_string(report.status);
    out["distance"] = report.distance;
    const auto names = [&](const std::vector<std::uint8_t>& flags) {
      Json list = Json::array();
      for (std::size_t i = 0; i < flags.size(); ++i) {
        if (flags[i] != 0) list.push_back(std::string(guard_.name(i)));
      }
      return list;
    };
    // A course as a whole names no constraint frame by frame: an empty list would say that none is active.
    if (report.status != GuardStatus::kClean && !whole_) out["active"] = names(report.active);
    if (const Json broken = names(report.broken); !broken.items().empty()) out["broken"] = broken;
    if (!said.why.empty()) out["why"] = said.why;
    if (why_ && said.cost.found) {
      Json prices = Json::object();
      for (std::size_t i = 0; i < said.cost.price.size(); ++i) {
        if (said.cost.price[i] != 0) prices[std::string(guard_.name(i))] = said.cost.price[i];
      }
      if (!prices.members().empty()) out["price"] = std::move(prices);
    }
    if (!said.what_if.empty()) out["what_if"] = said.what_if;
    return out;
  }

  const Schema& schema_;
  const Guard& guard_;
  bool json_;
  std::int64_t decimals_;
  bool why_, what_if_, whole_;
};

// The channels of --what-if; `previous` set where it names the frame before.
Result<std::vector<std::size_t>> what_may_change(const std::string& list, const Schema& schema, bool& previous) {
  std::vector<std::size_t> channels;
  std::size_t at = 0;
  while (at <= list.size() && !list.empty()) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, end - at);
    at = end + 1;
    if (name == "previous" && !schema.index_of(name)) {
      previous = true;
      continue;
    }
    const auto found = schema.index_of(name);
    if (!found) {
      return fail({Fault::kBadUse, fmt::format("there is no channel '{}'", name), "--what-if",
                   fmt::format("'previous', or some of {}", fmt::join(schema.names(), ", ")), ""});
    }
    channels.push_back(*found);
  }
  return channels;
}

// Which constraint cost most, the dearest first; on standard error, beside the summary.
void print_tallies(const Context& context, const Guard& guard, const std::vector<ConstraintTally>& tallies) {
  std::vector<std::size_t> order(tallies.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return tallies[a].distance > tallies[b].distance; });
  for (const std::size_t i : order) {
    const ConstraintTally& t = tallies[i];
    if (t.active + t.broken + t.unknown == 0) continue;
    remark(context,
           fmt::format("'{}': active in {} frames, broken in {}, not judged in {}; {:.4g} of the distance moved, price at most {:.4g}.",
                       guard.name(i), t.active, t.broken, t.unknown, t.distance, t.worst_price));
  }
}

// All frames at once: the nearest course, in place of the nearest frame each time.
Result<int> guard_course(const Ask& ask, const Context& context, const Trajectory& trajectory, const Schema& schema, const Answers& answers,
                         std::vector<io::StreamFrame> frames) {
  std::vector<double> values;
  std::vector<std::int64_t> times;
  for (const io::StreamFrame& frame : frames) {
    values.insert(values.end(), frame.values.begin(), frame.values.end());
    times.push_back(frame.time_ns.value_or(times.empty() ? 0 : times.back() + schema.step_ns));
  }
  const auto past = static_cast<std::size_t>(ask.past);
  const auto report = trajectory.project(values, times, past);
  if (!report) return fail(report.error());
  if (frames.empty() || !print(answers.head(frames.front().time_ns.has_value()))) return 0;
  GuardReport row;
  trajectory.guard().prepare(row);
  for (std::size_t r = 0; r < frames.size(); ++r) {
    const auto value = std::span(values).subspan(r * schema.size(), schema.size());
    row.status = r < past ? GuardStatus::kClean : report->steps[r - past];
    double squared = 0;
    for (std::size_t c = 0; c < value.size(); ++c) {
      const double by = value[c] - frames[r].values[c];
      squared += std::isfinite(by) ? by * by : 0;
    }
    row.distance = std::sqrt(squared);
    if (!print(answers.line(frames[r], value, row))) return 0;
  }
  std::string told = fmt::format("{} frames as one course: {}, {} values moved by {:.4g} in all", frames.size() - past,
                                 to_string(report->status), report->moved, report->distance);
  if (!trajectory.step_by_step().empty()) told += fmt::format("; step by step: {}", fmt::join(trajectory.step_by_step(), ", "));
  remark(context, told + ".");
  if (!ask.strict || (report->status != GuardStatus::kInfeasible && report->status != GuardStatus::kRejected)) return 0;
  return fail({Fault::kBadInput, "no course obeys everything", ask.frames, "",
               "Without --strict the guard goes step by step and priorities decide."});
}

}  // namespace

Result<int> guard(Options& options, const Context& context) {
  Ask ask;
  options.positional("CONSTRAINTS", ask.constraints,
                     "The constraint file: *.toml, *.yaml, *.yml or *.json; may be left out beside --limit.", false);
  options.positional("FRAMES", ask.frames, "Proposed frames line by line, CSV with a header or JSON objects; - for standard input.", false);
  options.option("--limit \"CONSTRAINT\"", ask.limits, "One more constraint, such as \"0 <= level <= 5\"; may be repeated.");
  options.option("--set NAME=VALUE", ask.sets, kSetHelp);
  options.option("--step DURATION", ask.step, "Between two frames that name no time; rates count by it.");
  options.option("--decimals N", ask.decimals, "Numbers leave as text with N decimals, and obey as such; default: all their digits.");
  options.flag(
      "--whole", ask.whole,
      "Reads all frames first and gives the nearest course: rates and sums over time are met by all steps together, not by the last one.");
  options.option("--past N", ask.past, "With --whole: so many frames at the start have happened and stay.");
  options.flag("--explain", ask.explain,
               "Says in a sentence why a value was moved, and at the end what each constraint cost. Reads the constraints anew for each "
               "such frame.");
  options.option("--what-if NAMES", ask.what_if,
                 "Channels, or 'previous' for the frame before: the smallest change of these with which a moved frame would have obeyed.");
  options.flag("--strict", ask.strict,
               "Stops at the first bad line, and at the first frame that no value can obey or that is refused, with code 1.");
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;
  // One file alone is constraints by its ending, frames else: --limit may hold all constraints.
  const auto ends = [&](std::string_view ending) { return ask.constraints.ends_with(ending); };
  if (ask.frames == "-" && !ask.constraints.empty() && !ends(".toml") && !ends(".yaml") && !ends(".yml") && !ends(".json")) {
    std::swap(ask.frames, ask.constraints);
    ask.constraints.clear();
  }
  constexpr std::int64_t kMostDecimals = 22;
  if (ask.decimals < -1 || ask.decimals > kMostDecimals) {
    return fail({Fault::kBadUse, fmt::format("{} decimals", ask.decimals), "--decimals", fmt::format("0 to {}", kMostDecimals), ""});
  }
  if (ask.past < 0 || (ask.past > 0 && !ask.whole)) {
    return fail({Fault::kBadUse, fmt::format("{} frames of the past", ask.past), "--past", "0 or more, with --whole", ""});
  }
  if (ask.whole && (ask.explain || !ask.what_if.empty())) {
    return fail(
        {Fault::kBadUse, "a whole course is not explained frame by frame", ask.explain ? "--explain" : "--what-if", "no --whole", ""});
  }
  const auto step = parse_duration(ask.step, "--step");
  if (!step) return fail(step.error());
  if (*step == 0) return fail({Fault::kBadUse, "the step is 0", "--step", "a duration above 0, such as 50ms", ""});
  const auto texts = read_constraint_source(ask.constraints, ask.limits, ask.sets);
  if (!texts) return fail(texts.error());
  if (texts->empty()) return fail({Fault::kBadUse, "there is no constraint", "guard", "a file of constraints, or --limit", ""});

  auto lines = FrameLines::open(ask.frames);
  if (!lines) return fail(lines.error());
  std::string line;
  bool too_long = false;
  if (!lines->next(line, too_long)) return fail({Fault::kBadInput, "there is no line", ask.frames, "frames in CSV or JSON", ""});
  const auto names = io::channels_of_first_line(line);
  if (!names) return fail(names.error());
  Schema schema;
  for (const std::string& name : *names) schema.channels.push_back({name, "", Role::kTarget});
  schema.step_ns = *step;
  std::optional<Trajectory> trajectory;
  if (ask.whole) {
    auto made = Trajectory::compile(schema, *texts, {static_cast<int>(ask.decimals)});
    if (!made) return fail(made.error());
    trajectory = std::move(*made);
  }
  const auto compiled = compile_guard(schema, *texts, {static_cast<int>(ask.decimals)});
  if (!compiled) return fail(compiled.error());
  const Guard& guard = **compiled;
  std::vector<std::byte> state(guard.state_bytes());
  std::vector<double> scratch(guard.scratch_doubles()), value(schema.size());
  GuardReport report;
  guard.prepare(report);
  guard.reset(state);

  io::FrameReader reader(schema);
  io::StreamFrame frame;
  const bool json = context.json || line.find('{') != line.npos;
  const Answers answers(schema, guard, json, ask);
  bool previous = false;
  const auto may_change = what_may_change(ask.what_if, schema, previous);
  if (!may_change) return fail(may_change.error());
  std::optional<Explainer> explainer;
  if (ask.explain || !ask.what_if.empty()) {
    auto made = Explainer::make(schema, *texts);
    if (!made) return fail(made.error());
    explainer = std::move(*made);
  }
  std::vector<ConstraintTally> tallies(guard.constraints());
  std::vector<io::StreamFrame> course;
  std::size_t frames = 0, bad = 0, counts[6] = {};
  std::int64_t last_ns = 0;
  bool headed = false;
  do {
    const auto kind = reader.read(too_long ? std::string_view("\x01") : std::string_view(line), frame);
    if (!kind) {
      if (ask.strict) return fail(kind.error());
      ++bad;
      std::fflush(stdout);
      std::fprintf(stderr, "kizzasi guard: %s\n", kind.error().text().c_str());
      continue;
    }
    if (*kind != io::LineKind::kFrame) continue;
    if (ask.whole) {
      course.push_back(frame);
      continue;
    }
    if (!headed && !print(answers.head(frame.time_ns.has_value()))) return 0;
    headed = true;
    const std::int64_t time = frame.time_ns.value_or(frames == 0 ? 0 : last_ns + *step);
    value = frame.values;
    const GuardStatus status = guard.propose(state, time, value, report, scratch);
    Said said;
    count(report, tallies);
    if (explainer && status != GuardStatus::kClean && status != GuardStatus::kRejected) {
      if (ask.explain) {
        auto cost = explainer->explain(time, frame.values, value);
        if (!cost) return fail(cost.error());
        count(*cost, tallies);
        said.cost = std::move(*cost);
        said.why = said.cost.sentence;
      }
      if (!ask.what_if.empty()) {
        auto other = explainer->what_if(time, frame.values, *may_change, previous);
        if (!other) return fail(other.error());
        said.what_if = other->sentence;
      }
    }
    if (explainer && status != GuardStatus::kRejected) explainer->accept(time, value);
    if (status != GuardStatus::kRejected) {
      // What leaves here is what the plant is told: the next frame is measured against it.
      guard.accept(state, time, {}, value);
    }
    last_ns = time;
    ++frames;
    ++counts[static_cast<std::size_t>(status)];
    if (!print(answers.line(frame, value, report, said)) || !flush()) return 0;
    if (ask.strict && (status == GuardStatus::kRejected || status == GuardStatus::kInfeasible)) {
      std::string broken;
      for (std::size_t i = 0; i < report.broken.size(); ++i) {
        if (report.broken[i] != 0) broken.append(broken.empty() ? "" : ", ").append("'").append(guard.name(i)).append("'");
      }
      return fail({Fault::kBadInput, fmt::format("the frame cannot obey {}", broken), fmt::format("line {}", reader.lines()), "", ""});
    }
  } while (lines->next(line, too_long));
  if (ask.whole) {
    if (static_cast<std::size_t>(ask.past) > course.size()) {
      return fail({Fault::kBadUse, fmt::format("{} frames have happened, {} came", ask.past, course.size()), "--past",
                   "no more than there are", ""});
    }
    return guard_course(ask, context, *trajectory, schema, answers, std::move(course));
  }
  std::string told = fmt::format("{} frames", frames);
  for (std::size_t i = 0; i < std::size(counts); ++i) {
    if (counts[i] > 0) told += fmt::format(", {} {}", counts[i], to_string(static_cast<GuardStatus>(i)));
  }
  if (ask.explain) print_tallies(context, guard, tallies);
  remark(context, fmt::format("{}, {} bad lines.", told, bad));
  return 0;
}

}  // namespace kizzasi::cli
