#include "apps/cli/guard_course.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "apps/cli/guard_lines.h"
#include "apps/cli/print.h"

namespace kizzasi::cli {

Result<int> guard_course(const CourseAsk& ask, const Context& context, const Trajectory& trajectory, const Schema& schema,
                         const GuardLines& lines, const std::vector<io::StreamFrame>& frames) {
  if (ask.past > frames.size()) {
    return fail(
        {Fault::kBadUse, fmt::format("{} frames have happened, {} came", ask.past, frames.size()), "--past", "no more than there are", ""});
  }
  std::vector<double> values;
  std::vector<std::int64_t> times;
  for (const io::StreamFrame& frame : frames) {
    values.insert(values.end(), frame.values.begin(), frame.values.end());
    times.push_back(frame.time_ns.value_or(times.empty() ? 0 : times.back() + schema.step_ns));
  }
  const auto report = trajectory.project(values, times, ask.past);
  if (!report) return fail(report.error());
  if (frames.empty() || !print(lines.head(frames.front().time_ns.has_value()))) return 0;
  GuardReport row;
  trajectory.guard().prepare(row);
  for (std::size_t r = 0; r < frames.size(); ++r) {
    const auto value = std::span(values).subspan(r * schema.size(), schema.size());
    row.status = r < ask.past ? GuardStatus::kClean : report->steps[r - ask.past];
    double squared = 0;
    for (std::size_t c = 0; c < value.size(); ++c) {
      const double by = value[c] - frames[r].values[c];
      squared += std::isfinite(by) ? by * by : 0;
    }
    row.distance = std::sqrt(squared);
    if (!print(lines.line(frames[r], value, row))) return 0;
  }
  std::string told = fmt::format("{} frames as one course: {}, {} values moved by {:.4g} in all", frames.size() - ask.past,
                                 to_string(report->status), report->moved, report->distance);
  if (!trajectory.step_by_step().empty()) told += fmt::format("; step by step: {}", fmt::join(trajectory.step_by_step(), ", "));
  remark(context, told + ".");
  if (!ask.strict || (report->status != GuardStatus::kInfeasible && report->status != GuardStatus::kRejected)) return 0;
  return fail({Fault::kBadInput, "no course obeys everything", ask.frames, "",
               "Without --strict the guard goes step by step and priorities decide."});
}

}  // namespace kizzasi::cli
