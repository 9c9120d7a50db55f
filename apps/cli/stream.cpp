// A pipe: frames in, predictions out, one line each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/cli/frame_lines.h"
#include "apps/cli/model_use.h"
#include "apps/cli/plan.h"
#include "apps/cli/prediction_lines.h"
#include "apps/cli/print.h"
#include "apps/cli/verbs.h"
#include "kizzasi/data/prepare.h"
#include "kizzasi/engine/session.h"
#include "kizzasi/io/frame_reader.h"
#include "kizzasi/logic/parser.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::cli {
namespace {

struct Ask {
  std::string model, horizon, format = "auto", decimal = "point", zone, future;
  bool strict = false, csv_out = false, hold = false;
  std::int64_t max_gap = 64;
  ModelUse use;
};

Result<io::FrameOptions> frame_options(const Ask& ask) {
  io::FrameOptions options;
  const auto bad = [](const std::string& text, const char* where, const char* expected) {
    return fail({Fault::kBadUse, fmt::format("'{}' is nothing that is known here", text), where, expected, ""});
  };
  if (ask.format == "csv") {
    options.format = io::FrameFormat::kCsv;
  } else if (ask.format == "json") {
    options.format = io::FrameFormat::kJson;
  } else if (ask.format != "auto") {
    return bad(ask.format, "--format", "auto, csv or json");
  }
  if (ask.decimal == "comma") {
    options.decimal = ',';
  } else if (ask.decimal != "point") {
    return bad(ask.decimal, "--decimal", "point or comma");
  }
  if (!ask.zone.empty()) {
    auto zone = io::Zone::open(ask.zone);
    if (!zone) return fail(zone.error());
    options.zone = std::move(*zone);
  }
  return options;
}

// What the plan says of the frames after the newest one.
class Outlook {
 public:
  Outlook(const Predictor& predictor, const Plan& plan) : p_(predictor), plan_(plan), known_(predictor.counts().known) {}

  bool begun() const noexcept { return first_.has_value(); }
  void begin(std::int64_t first_time_ns) { first_ = first_time_ns; }
  std::size_t unknown() const noexcept { return unknown_; }

  // Of the frame after that of time_ns; valid until the next call.
  std::span<const double> known_next(std::int64_t time_ns) {
    for (std::size_t k = 0; k < known_.size(); ++k) known_[k] = value(p_.channels() - known_.size() + k, time_ns, 0, frames_);
    return known_;
  }
  // The frame was taken.
  void taken() {
    ++frames_;
    for (const double one : known_) unknown_ += std::isnan(one) ? 1 : 0;
  }

  const ForecastRequest& fill(ForecastRequest& request, std::int64_t time_ns) const {
    const ChannelCounts counts = p_.counts();
    request.known.clear();
    request.observed.clear();
    for (std::size_t h = 0; h < request.horizon && !plan_.empty(); ++h) {
      for (std::size_t k = 0; k < counts.known; ++k)
        request.known.push_back(value(counts.targets + counts.observed + k, time_ns, h, frames_ - 1));
      for (std::size_t o = 0; o < counts.observed; ++o) request.observed.push_back(value(counts.targets + o, time_ns, h, frames_ - 1));
    }
    return request;
  }

 private:
  // Of the channel at a place of the model's order, `ahead` steps (from 0) after the next frame.
  double value(std::size_t place, std::int64_t time_ns, std::size_t ahead, std::size_t counted) const {
    const std::int64_t step = p_.schema().step_ns;
    const std::size_t row = step > 0 ? static_cast<std::size_t>((std::max<std::int64_t>(time_ns - *first_, 0) + step / 2) / step) : counted;
    return plan_.at(p_.schema().channels[p_.order()[place]].name, data::later(time_ns, static_cast<std::int64_t>(ahead + 1), step),
                    row + ahead);
  }

  const Predictor& p_;
  const Plan& plan_;
  std::vector<double> known_;
  std::optional<std::int64_t> first_;
  std::size_t frames_ = 0, unknown_ = 0;
};

}  // namespace

Result<int> stream(Options& options, const Context& context) {
  Ask ask;
  options.positional("MODEL", ask.model, "A model that train has written.");
  options.option("-h,--horizon H", ask.horizon, "Steps ahead that each frame is answered with; one where nothing is said.");
  options.option("--format NAME", ask.format, "Of the frames: csv, json, or auto (by the first line).");
  options.option("--decimal NAME", ask.decimal, "Decimal mark in CSV: point or comma.");
  options.option("--zone ZONE", ask.zone, "Of stamps that name none: Europe/Berlin, UTC, +01:00; a wall clock where nothing is said.");
  options.flag("--strict", ask.strict,
               "Stops at the first bad line with code 1. Without it bad and late lines are reported with their number, counted and passed "
               "over, and the code is 0.");
  options.flag("--hold", ask.hold, "Observed channels hold their last value beyond the model's own horizon.");
  options.option("--max-gap N", ask.max_gap,
                 "Frames missing in time that are stepped as missing; after a longer gap the stream begins anew.");
  options.option(
      "--monitor \"FORMULA\"", ask.use.monitors,
      "A formula of the constraint language that watches what was measured: its verdict (T, F, ?) and robustness stand beside each "
      "prediction. May be repeated; it moves nothing.");
  options.flag("--csv", ask.csv_out, "Answers in CSV also where frames come as JSON.");
  declare_future(options, ask.future);
  ask.use.declare(options);
  if (auto parsed = options.parse(); !parsed) return fail(parsed.error());
  if (options.help_shown()) return 0;

  if (ask.max_gap < 0 || ask.max_gap > 1'000'000)
    return fail({Fault::kBadUse, fmt::format("{} is out of range", ask.max_gap), "--max-gap", "0 to 1000000", ""});
  ask.use.max_gap = ask.max_gap;
  for (const std::string& formula : ask.use.monitors) {
    if (auto parsed = logic::parse_formula({formula, "--monitor"}); !parsed) return fail(parsed.error());
  }
  const auto frames = frame_options(ask);
  if (!frames) return fail(frames.error());
  auto predictor = load_model(ask.model, ask.use, true);
  if (!predictor) return fail(predictor.error());
  const Predictor& p = **predictor;
  ForecastRequest request;
  request.horizon = 1;
  if (!ask.horizon.empty()) {
    const auto horizon = parse_steps(ask.horizon, p.schema().step_ns, "--horizon");
    if (!horizon) return fail(horizon.error());
    request.horizon = *horizon;
  }
  request.seed = context.seed;
  io::CsvOptions plan_csv;
  plan_csv.zone = ask.zone;
  const auto plan = Plan::read(ask.future, p, plan_csv);
  if (!plan) return fail(plan.error());
  Outlook outlook(p, *plan);
  request.observed_plan = !plan->empty() ? ObservedPlan::kGiven : ask.hold ? ObservedPlan::kHold : ObservedPlan::kRefuse;

  io::FrameReader reader(p.schema(), *frames);
  Session session = Session::prepare(*predictor);
  std::optional<PredictionLines> lines;
  io::StreamFrame frame;
  Forecast ahead;
  std::string line;
  std::size_t bad_lines = 0, without_time = 0, early_frames = 0;
  bool too_long = false;
  const auto complain = [&](const Error& error) {
    ++bad_lines;
    std::fflush(stdout);
    std::fprintf(stderr, "kizzasi stream: %s\n", error.text().c_str());
  };
  auto source = FrameLines::open("-");
  if (!source) return fail(source.error());
  while (source->next(line, too_long)) {
    auto kind = reader.read(too_long ? std::string_view("\x01") : std::string_view(line), frame);
    if (!kind) {
      if (ask.strict || reader.header_refused()) return fail(kind.error());
      complain(kind.error());
      continue;
    }
    if (!lines) {
      const bool json = context.json || (!ask.csv_out && !line.empty() && (line.front() == '{' || line.front() == '['));
      Schema shown = p.schema();
      if (!ask.zone.empty()) shown.zone = ask.zone;
      lines.emplace(p, std::move(shown), p.levels(), LineFormat{json, false, true, ask.use.decimals, 0, !ask.use.monitors.empty()});
      if (!print(lines->head()) || !flush()) return 0;
    }
    if (*kind != io::LineKind::kFrame) continue;
    const std::int64_t step_ns = p.schema().step_ns;
    if (!frame.time_ns) ++without_time;
    const std::int64_t time_ns = frame.time_ns.value_or(session.frames() == 0 ? 0 : session.last_time_ns() + p.frame_ns());
    if (const auto step = p.frame_ns();
        step > 0 && session.frames() > 0 && time_ns > session.last_time_ns() && time_ns - session.last_time_ns() < step - step / 4) {
      const Error early{Fault::kBadInput,
                        fmt::format("the frame of {} comes {} after the last one", time_text(time_ns, p.schema().zone),
                                    duration_text(time_ns - session.last_time_ns())),
                        fmt::format("line {}", reader.lines()), fmt::format("one every {}, as the model learned it", duration_text(step)),
                        "Bring the stream to that step; it is taken for a whole step here."};
      if (ask.strict) return fail(early);
      if (early_frames++ == 0) remark(context, early.text());
    }
    if (!outlook.begun()) outlook.begin(time_ns);
    const Prediction& one = session.step({time_ns, frame.values}, outlook.known_next(time_ns));
    if (one.status == StepStatus::kLate) {
      const Error late{Fault::kBadInput, fmt::format("the frame of {} is not newer than the last one", time_text(time_ns, p.schema().zone)),
                       fmt::format("line {}", reader.lines()), "frames in the order of time", ""};
      if (ask.strict) return fail(late);
      complain(late);
      continue;
    }
    outlook.taken();
    std::string answer;
    const std::size_t targets = p.targets();
    if (request.horizon == 1 || one.status == StepStatus::kRejected) {
      answer = lines->line({step_ns == 0 ? one.time_ns : data::later(time_ns, 1, step_ns),
                            {},
                            1,
                            one.status,
                            one.value.data(),
                            one.quantiles.data(),
                            targets,
                            nullptr,
                            0,
                            session.verdicts()});
    } else if (auto done = session.forecast(outlook.fill(request, time_ns), ahead); done) {
      for (std::size_t h = 0; h < request.horizon; ++h) {
        answer += lines->line({step_ns == 0 ? ahead.time_ns[h] : data::later(time_ns, static_cast<std::int64_t>(h) + 1, step_ns),
                               {},
                               h + 1,
                               ahead.status[h],
                               ahead.block.points.data() + h * targets,
                               part(ahead.block.quantiles, h * targets),
                               request.horizon * targets,
                               nullptr,
                               0,
                               h == 0 ? session.verdicts() : std::span<const MonitorVerdict>()});
      }
    } else {
      if (ask.strict || done.error().fault == Fault::kBadUse) return fail(done.error());
      complain(done.error());
      continue;
    }
    if (!print(answer) || !flush()) return 0;  // nobody reads any more
  }
  const SessionReport report = session.report();
  remark(context, fmt::format("{} frames, {} bad or late lines, {} values moved by the limits, {} gap frames, {} restarts.", report.frames,
                              bad_lines, report.moved_values, report.gap_frames, report.restarts));
  if (early_frames > 0)
    remark(context, fmt::format("{} frames came sooner than the model's step and were taken for whole steps.", early_frames));
  if (without_time > 0 && p.schema().step_ns != 0)
    remark(context, fmt::format("{} lines named no time and were taken one step apart.", without_time));
  if (outlook.unknown() > 0)
    remark(context, fmt::format("{} values of known-future channels were not known and counted as average; --future FILE gives them.",
                                outlook.unknown()));
  return 0;
}

}  // namespace kizzasi::cli
