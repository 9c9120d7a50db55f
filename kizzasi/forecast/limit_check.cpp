#include "kizzasi/forecast/limit_check.h"

#include <algorithm>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

LimitCheck guard_check(const Guard& guard) {
  return [&guard](const Series& series, std::size_t origin, const ForecastBlock& block) {
    const auto targets = series.schema.with_role(Role::kTarget);
    std::vector<std::byte> state(guard.state_bytes());
    std::vector<double> scratch(guard.scratch_doubles()), frame(series.channels()), moved, nothing(series.channels(), kMissing);
    GuardReport report;
    guard.prepare(report);
    guard.reset(state);
    if (origin > 0) guard.accept(state, series.time_ns(origin - 1), series.row(origin - 1), nothing);
    std::size_t outside = 0;
    for (std::size_t h = 0; h < block.horizon; ++h) {
      const std::int64_t time = series.time_ns(origin + h);
      for (std::size_t c = 0; c < frame.size(); ++c) {
        const bool known = series.schema.channels[c].role == Role::kKnownFuture && origin + h < series.rows();
        frame[c] = known ? series.at(origin + h, c) : kMissing;
      }
      for (std::size_t t = 0; t < targets.size(); ++t) frame[targets[t]] = block.point(h, t);
      moved = frame;
      guard.propose(state, time, moved, report, scratch);
      outside += std::max<std::uint32_t>(report.moved, report.status == GuardStatus::kInfeasible ? 1 : 0);
      guard.accept(state, time, nothing, frame);
    }
    return outside;
  };
}

}  // namespace kizzasi
