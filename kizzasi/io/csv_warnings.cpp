#include "kizzasi/io/csv_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

namespace kizzasi::io {
namespace {

constexpr std::int64_t kHour = 3'600'000'000'000, kDay = 24 * kHour;

bool is_candidate(double value) {
  constexpr std::array<double, 14> kSizes{99,    999,    9999,   99999,   999999, 99.9,  999.9,
                                          99.99, 999.99, 9999.9, 9999.99, 32767,  65535, 2147483647};
  const double size = std::fabs(value);
  return std::find(kSizes.begin(), kSizes.end(), size) != kSizes.end() || value == -32768 || value == -2147483648.0 || size >= 1e20;
}

struct ClockDay {
  unsigned month = 0, day = 0;
  bool sunday = false, last_of_month = false;
  std::int64_t of_day_ns = 0;
};

ClockDay clock_day(std::int64_t time_ns) {
  using namespace std::chrono;
  const sys_days date = floor<days>(sys_time<nanoseconds>(nanoseconds(time_ns)));
  const year_month_day ymd(date);
  return {static_cast<unsigned>(ymd.month()), static_cast<unsigned>(ymd.day()), weekday(date) == Sunday,
          (date + days(7)) > sys_days(ymd.year() / ymd.month() / last), time_ns - date.time_since_epoch().count() * kDay};
}

// The last Sunday of October (Europe), the first of November (America), the first of April (Australia, New Zealand).
bool is_backward_day(const ClockDay& day) {
  return day.sunday && ((day.month == 10 && day.last_of_month) || (day.month == 11 && day.day <= 7) || (day.month == 4 && day.day <= 7));
}

// The last Sunday of March, the second of March, the first of October, the last of September.
bool is_forward_day(const ClockDay& day) {
  return day.sunday && ((day.month == 3 && (day.last_of_month || (day.day > 7 && day.day <= 14))) || (day.month == 10 && day.day <= 7) ||
                        (day.month == 9 && day.last_of_month));
}

void add_axis_warnings(CsvReport& report, const AxisFindings& findings) {
  auto& warnings = report.warnings;
  if (report.zone == "mixed") warnings.emplace_back("mixed_offsets");
  if (report.rows < 3) warnings.emplace_back("too_short");
  std::set<std::int64_t> steps;
  std::size_t gaps = 0, off_grid = 0;
  bool jitter = false, irregular = false, calendar = false;
  for (const CsvSeries& series : report.series) {
    const TimeAxis& axis = series.axis;
    if (axis.step_ns > 0) steps.insert(axis.step_ns);
    gaps += axis.gaps.size();
    off_grid += axis.off_grid;
    jitter = jitter || axis.regularity == Regularity::kJitter;
    irregular = irregular || axis.regularity == Regularity::kIrregular;
    calendar = calendar || axis.regularity == Regularity::kCalendar;
  }
  if (findings.timed && steps.empty()) warnings.emplace_back("step_unknown");
  if (report.duplicates() > 0) warnings.push_back(fmt::format("duplicate_stamps:{}", report.duplicates()));
  if (report.out_of_order() > 0) warnings.push_back(fmt::format("out_of_order:{}", report.out_of_order()));
  // The gap that a row set aside leaves is told with that row.
  if (gaps > report.implausible.size()) warnings.push_back(fmt::format("gaps:{}", gaps));
  if (!report.implausible.empty()) warnings.push_back(fmt::format("implausible_stamp:{}", report.implausible.size()));
  if (findings.clock_change) warnings.emplace_back("dst_suspected");
  if (findings.nonexistent > 0) warnings.push_back(fmt::format("nonexistent_local_time:{}", findings.nonexistent));
  if (steps.size() > 1 && !calendar) warnings.emplace_back("mixed_steps");
  if (calendar) warnings.emplace_back("calendar_step");
  if (jitter) warnings.emplace_back("jitter");
  if (irregular) warnings.emplace_back("irregular_steps");
  if (off_grid > 0 && !jitter && !irregular && !calendar) warnings.push_back(fmt::format("off_grid:{}", off_grid));
}

}  // namespace

void ColumnFacts::add(double value, bool loses) {
  if (count_ == 0) first_ = value;
  ++count_;
  varies_ = varies_ || value != first_;
  loses_precision_ = loses_precision_ || loses;
  if (is_candidate(value) && (candidates_.size() < 64 || candidates_.contains(value))) {
    ++candidates_[value];
    return;
  }
  low_ = any_plain_ ? std::min(low_, value) : value;
  high_ = any_plain_ ? std::max(high_, value) : value;
  any_plain_ = true;
}

std::vector<std::pair<double, std::size_t>> ColumnFacts::suspected_sentinels() const {
  std::vector<std::pair<double, std::size_t>> found;
  if (!any_plain_) return found;
  const double range = high_ - low_;
  for (const auto& [value, count] : candidates_) {
    if (value > high_ + range || value < low_ - range) found.emplace_back(value, count);
  }
  return found;
}

bool clocks_change(std::span<const std::int64_t> times, const TimeAxis& axis) {
  if (axis.step_ns <= 0 || axis.step_ns > kHour) return false;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i] > times[i - 1] || times[i - 1] - times[i] >= kHour + axis.step_ns) continue;
    const ClockDay day = clock_day(times[i]);
    if (is_backward_day(day) && day.of_day_ns < 4 * kHour) return true;
  }
  for (const Gap& gap : axis.gaps) {
    const ClockDay day = clock_day(gap.after_ns);
    if (static_cast<std::int64_t>(gap.missing_steps) * axis.step_ns == kHour && is_forward_day(day) && day.of_day_ns < 3 * kHour)
      return true;
  }
  return false;
}

void add_warnings(CsvReport& report, const std::vector<const ColumnFacts*>& facts, const AxisFindings& findings) {
  add_axis_warnings(report, findings);
  auto& warnings = report.warnings;
  for (std::size_t c = 0; c < report.columns.size(); ++c) {
    const CsvColumn& column = report.columns[c];
    if (column.type == CellType::kText) {
      warnings.push_back(fmt::format("text_column:{}", column.name));
      continue;
    }
    if (column.constant) warnings.push_back(fmt::format("constant_column:{}", column.name));
    if (column.missing == report.rows) warnings.push_back(fmt::format("empty_column:{}", column.name));
    for (const auto& [value, count] : facts[c]->suspected_sentinels()) {
      warnings.push_back(fmt::format("sentinel_suspected:{}:{}:{}", column.name, value, count));
    }
    if (facts[c]->loses_precision()) warnings.push_back(fmt::format("precision_loss:{}", column.name));
  }
  if (report.not_finite_cells > 0) warnings.push_back(fmt::format("not_finite:{}", report.not_finite_cells));
  if (report.missing() > 0) warnings.push_back(fmt::format("missing:{}", report.missing()));
  if (findings.remarks > 0) warnings.push_back(fmt::format("non_data_lines:{}", findings.remarks));
  if (findings.set_aside > 0) warnings.push_back(fmt::format("lines_skipped:{}", findings.set_aside));
}

}  // namespace kizzasi::io
