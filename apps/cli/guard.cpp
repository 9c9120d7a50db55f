// kizzasi guard: frames in, the nearest frames that obey out. For any model or controller; none of ours is needed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "apps/cli/constraint_source.h"
#include "apps/cli/frame_lines.h"
#include "apps/cli/guard_course.h"
#include "apps/cli/guard_lines.h"
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

// One frame after the other, each against what left before it.
class LiveGuard {
 public:
  static Result<LiveGuard> make(const Ask& ask, const Schema& schema, const std::vector<ConstraintText>& texts) {
    LiveGuard out(ask, schema);
    const auto may_change = what_may_change(ask.what_if, schema, out.previous_);
    if (!may_change) return fail(may_change.error());
    out.may_change_ = *may_change;
    auto compiled = compile_guard(schema, texts, {static_cast<int>(ask.decimals)});
    if (!compiled) return fail(compiled.error());
    out.guard_ = std::move(*compiled);
    if (ask.explain || !ask.what_if.empty()) {
      auto made = Explainer::make(schema, texts);
      if (!made) return fail(made.error());
      out.explainer_ = std::move(*made);
    }
    out.state_.resize(out.guard_->state_bytes());
    out.scratch_.resize(out.guard_->scratch_doubles());
    out.guard_->prepare(out.report_);
    out.guard_->reset(out.state_);
    out.tallies_.resize(out.guard_->constraints());
    return out;
  }

  // The nearest allowed frame: value(), report(), said().
  Result<GuardStatus> step(const io::StreamFrame& frame) {
    const std::int64_t time = frame.time_ns.value_or(frames_ == 0 ? 0 : last_ns_ + step_ns_);
    value_ = frame.values;
    const GuardStatus status = guard_->propose(state_, time, value_, report_, scratch_);
    const bool refused = status == GuardStatus::kRejected;
    count(report_, tallies_);
    said_ = {};
    if (explainer_ && status != GuardStatus::kClean && !refused) {
      if (auto told = say(frame, time); !told) return fail(told.error());
    }
    // What leaves here is what the plant is told: the next frame is measured against it.
    if (explainer_ && !refused) explainer_->accept(time, value_);
    if (!refused) guard_->accept(state_, time, {}, value_);
    last_ns_ = time;
    ++frames_;
    ++counts_[static_cast<std::size_t>(status)];
    return status;
  }

  const Guard& guard() const { return *guard_; }
  std::span<const double> value() const { return value_; }
  const GuardReport& report() const { return report_; }
  const MovedWords& said() const { return said_; }
  const std::vector<ConstraintTally>& tallies() const { return tallies_; }

  std::string broken() const {
    std::string out;
    for (std::size_t i = 0; i < report_.broken.size(); ++i) {
      if (report_.broken[i] != 0) out.append(out.empty() ? "" : ", ").append("'").append(guard_->name(i)).append("'");
    }
    return out;
  }

  std::string summary() const {
    std::string out = fmt::format("{} frames", frames_);
    for (std::size_t i = 0; i < std::size(counts_); ++i) {
      if (counts_[i] > 0) out += fmt::format(", {} {}", counts_[i], to_string(static_cast<GuardStatus>(i)));
    }
    return out;
  }

 private:
  LiveGuard(const Ask& ask, const Schema& schema) : explain_(ask.explain), what_if_(!ask.what_if.empty()), step_ns_(schema.step_ns) {}

  Result<void> say(const io::StreamFrame& frame, std::int64_t time) {
    if (explain_) {
      auto cost = explainer_->explain(time, frame.values, value_);
      if (!cost) return fail(cost.error());
      count(*cost, tallies_);
      said_.cost = std::move(*cost);
      said_.why = said_.cost.sentence;
    }
    if (what_if_) {
      auto other = explainer_->what_if(time, frame.values, may_change_, previous_);
      if (!other) return fail(other.error());
      said_.what_if = other->sentence;
    }
    return {};
  }

  std::shared_ptr<const Guard> guard_;
  std::optional<Explainer> explainer_;
  bool explain_, what_if_, previous_ = false;
  std::vector<std::size_t> may_change_;
  std::int64_t step_ns_, last_ns_ = 0;
  std::vector<std::byte> state_;
  std::vector<double> scratch_, value_;
  GuardReport report_;
  MovedWords said_;
  std::vector<ConstraintTally> tallies_;
  std::size_t frames_ = 0, counts_[6] = {};
};

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
  std::optional<LiveGuard> live;
  if (ask.whole) {
    auto made = Trajectory::compile(schema, *texts, {static_cast<int>(ask.decimals)});
    if (!made) return fail(made.error());
    trajectory = std::move(*made);
  } else {
    auto made = LiveGuard::make(ask, schema, *texts);
    if (!made) return fail(made.error());
    live = std::move(*made);
  }
  const bool json = context.json || line.find('{') != line.npos;
  const GuardLines answers(schema, trajectory ? trajectory->guard() : live->guard(),
                           {ask.decimals, json, ask.explain, !ask.what_if.empty(), ask.whole});
  io::FrameReader reader(schema);
  io::StreamFrame frame;
  std::vector<io::StreamFrame> course;
  std::size_t bad = 0;
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
    if (trajectory) {
      course.push_back(frame);
      continue;
    }
    if (!headed && !print(answers.head(frame.time_ns.has_value()))) return 0;
    headed = true;
    const auto status = live->step(frame);
    if (!status) return fail(status.error());
    if (!print(answers.line(frame, live->value(), live->report(), live->said())) || !flush()) return 0;
    if (ask.strict && (*status == GuardStatus::kRejected || *status == GuardStatus::kInfeasible)) {
      return fail(
          {Fault::kBadInput, fmt::format("the frame cannot obey {}", live->broken()), fmt::format("line {}", reader.lines()), "", ""});
    }
  } while (lines->next(line, too_long));
  if (trajectory) {
    return guard_course({ask.frames, static_cast<std::size_t>(ask.past), ask.strict}, context, *trajectory, schema, answers, course);
  }
  if (ask.explain) print_tallies(context, live->guard(), live->tallies());
  remark(context, fmt::format("{}, {} bad lines.", live->summary(), bad));
  return 0;
}

}  // namespace kizzasi::cli
