#include "kizzasi/io/time_axis.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <unordered_map>

namespace kizzasi::io {
namespace {

constexpr std::int64_t kDay = 86'400'000'000'000, kTwentyYears = 7305 * kDay;
constexpr std::size_t kReach = 10;  // neighbours to either side

std::int64_t distance(std::int64_t a, std::int64_t b) {
  const std::uint64_t size =
      a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b) : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
  return size > INT64_MAX ? INT64_MAX : static_cast<std::int64_t>(size);
}

std::vector<std::size_t> implausible_rows(std::span<const std::int64_t> stamps) {
  std::vector<std::size_t> rows;
  if (stamps.size() < 3) return rows;
  // Nothing can be years off where the whole recording is short: the usual case costs one look.
  const auto [low, high] = std::minmax_element(stamps.begin(), stamps.end());
  if (distance(*high, *low) <= kTwentyYears) return rows;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < stamps.size(); ++i) steps.push_back(distance(stamps[i], stamps[i - 1]));
  std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
  const std::int64_t step = steps[steps.size() / 2];
  const std::int64_t limit = std::max(kTwentyYears, step > INT64_MAX / 20 ? INT64_MAX : step * 10);
  std::array<std::int64_t, 2 * kReach + 1> around{};
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const std::size_t begin = i > kReach ? i - kReach : 0, end = std::min(stamps.size(), i + kReach + 1);
    std::size_t count = 0;
    for (std::size_t k = begin; k < end; ++k) {
      if (k != i) around[count++] = stamps[k];
    }
    std::nth_element(around.begin(), around.begin() + static_cast<std::ptrdiff_t>(count / 2),
                     around.begin() + static_cast<std::ptrdiff_t>(count));
    if (distance(stamps[i], around[count / 2]) > limit) rows.push_back(i);
  }
  return rows;
}

// The nearest number of one, two or three digits, where it is within half a per cent.
std::int64_t rounded(std::int64_t step) {
  for (int digits = 1; digits <= 3; ++digits) {
    const double unit = std::pow(10.0, std::floor(std::log10(static_cast<double>(step))) - (digits - 1));
    const double near = std::round(static_cast<double>(step) / unit) * unit;
    if (std::fabs(near - static_cast<double>(step)) <= 0.005 * static_cast<double>(step))
      return static_cast<std::int64_t>(std::llround(near));
  }
  return step;
}

// Stamps of the same day of the month and time (or the last day of each month): the most common step in months, else 0.
int calendar_months(std::span<const std::int64_t> sorted) {
  using namespace std::chrono;
  if (sorted.size() < 3) return 0;
  std::vector<std::int64_t> months;
  bool same_day = true, last_day = true;
  unsigned day = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const sys_days date = floor<days>(sys_time<nanoseconds>(nanoseconds(sorted[i])));
    if (sorted[i] - date.time_since_epoch().count() * kDay !=
        sorted[0] - floor<days>(sys_time<nanoseconds>(nanoseconds(sorted[0]))).time_since_epoch().count() * kDay) {
      return 0;
    }
    const year_month_day ymd(date);
    if (i == 0) day = static_cast<unsigned>(ymd.day());
    same_day = same_day && static_cast<unsigned>(ymd.day()) == day;
    last_day = last_day && year_month_day_last(ymd.year() / ymd.month() / last).day() == ymd.day();
    months.push_back(month_index(sorted[i]));
  }
  if (!same_day && !last_day) return 0;
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < months.size(); ++i) steps.push_back(months[i] - months[i - 1]);
  std::sort(steps.begin(), steps.end());
  std::int64_t best = 0;
  std::size_t most = 0;
  for (std::size_t i = 0; i < steps.size();) {
    std::size_t end = i;
    while (end < steps.size() && steps[end] == steps[i]) ++end;
    if (end - i > most) {
      most = end - i;
      best = steps[i];
    }
    i = end;
  }
  return most * 2 >= steps.size() && best > 0 ? static_cast<int>(best) : 0;
}

struct Counted {
  std::int64_t value = 0;
  std::size_t count = 0;
};

// The steps between sorted stamps, rising, each value once. Most recordings have few different ones; only where there are many does every
// step take memory.
std::vector<Counted> counted_steps(std::span<const std::int64_t> sorted) {
  constexpr std::size_t kFew = 4096;
  std::unordered_map<std::int64_t, std::size_t> counts;
  for (std::size_t i = 1; i < sorted.size() && counts.size() <= kFew; ++i) ++counts[distance(sorted[i], sorted[i - 1])];
  std::vector<Counted> out;
  if (counts.size() <= kFew) {
    for (const auto& [value, count] : counts) out.push_back({value, count});
    std::sort(out.begin(), out.end(), [](const Counted& a, const Counted& b) { return a.value < b.value; });
    return out;
  }
  std::vector<std::int64_t> steps;
  steps.reserve(sorted.size() - 1);
  for (std::size_t i = 1; i < sorted.size(); ++i) steps.push_back(distance(sorted[i], sorted[i - 1]));
  std::sort(steps.begin(), steps.end());
  for (const std::int64_t step : steps) {
    if (out.empty() || out.back().value != step) out.push_back({step, 0});
    ++out.back().count;
  }
  return out;
}

void find_step(std::span<const std::int64_t> sorted, TimeAxis& axis) {
  if (sorted.size() < 2) return;
  const std::vector<Counted> steps = counted_steps(sorted);
  const std::size_t all = sorted.size() - 1;
  Counted mode;
  for (const Counted& step : steps) {
    if (step.count > mode.count) mode = step;
  }
  std::size_t middle = 0, below = steps[0].count;
  while (below <= all / 2) below += steps[++middle].count;
  const std::int64_t median = steps[middle].value;
  const auto within = [&](std::int64_t centre, double share) {
    const double reach = share * static_cast<double>(centre);
    std::size_t count = 0;
    for (const Counted& step : steps) count += std::fabs(static_cast<double>(step.value - centre)) <= reach ? step.count : 0;
    return count;
  };
  axis.step_ns = mode.value;
  if (const int months = mode.value >= 28 * kDay && mode.count < all ? calendar_months(sorted) : 0; months > 0) {
    axis.regularity = Regularity::kCalendar;
    axis.months = months;
    return;
  }
  if (2 * mode.count >= all) {
    axis.regularity = Regularity::kRegular;
  } else if (2 * within(median, 0.01) >= all) {
    axis.regularity = Regularity::kRegular;
    axis.step_ns = rounded(median);
  } else if (10 * within(median, 0.6) >= 9 * all) {
    axis.regularity = Regularity::kJitter;
    axis.step_ns = rounded(median);
  } else {
    axis.regularity = Regularity::kIrregular;
  }
}

void find_gaps(std::span<const std::int64_t> sorted, TimeAxis& axis) {
  if (axis.step_ns <= 0 || axis.regularity == Regularity::kIrregular) return;
  if (axis.regularity == Regularity::kCalendar) {
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const std::int64_t months = month_index(sorted[i]) - month_index(sorted[i - 1]);
      if (months > axis.months) axis.gaps.push_back({sorted[i - 1], static_cast<std::size_t>(months / axis.months) - 1});
    }
    return;
  }
  const auto step = static_cast<double>(axis.step_ns);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const double steps = static_cast<double>(distance(sorted[i], sorted[i - 1])) / step;
    if (axis.regularity != Regularity::kJitter && std::fabs(steps - std::round(steps)) > 0.01) ++axis.off_grid;
    if (steps > 1.5) axis.gaps.push_back({sorted[i - 1], static_cast<std::size_t>(std::llround(steps)) - 1});
  }
}

}  // namespace

std::int64_t month_index(std::int64_t time_ns) {
  using namespace std::chrono;
  const year_month_day date(floor<days>(sys_time<nanoseconds>(nanoseconds(time_ns))));
  return (static_cast<int>(date.year()) - 1970) * 12 + static_cast<int>(static_cast<unsigned>(date.month())) - 1;
}

TimeAxis examine_times(std::span<const std::int64_t> stamps) {
  TimeAxis axis;
  axis.rows = stamps.size();
  axis.implausible = implausible_rows(stamps);
  // Rising stamps, the usual case, need no copy.
  if (!stamps.empty() && axis.implausible.empty() &&
      std::adjacent_find(stamps.begin(), stamps.end(), std::greater_equal<>()) == stamps.end()) {
    axis.first_ns = stamps.front();
    axis.last_ns = stamps.back();
    axis.first_duplicate = stamps.size();
    find_step(stamps, axis);
    find_gaps(stamps, axis);
    return axis;
  }
  std::vector<std::pair<std::int64_t, std::size_t>> rows;  // stamp, row
  rows.reserve(stamps.size());
  for (std::size_t i = 0, bad = 0; i < stamps.size(); ++i) {
    if (bad < axis.implausible.size() && axis.implausible[bad] == i) {
      ++bad;
      continue;
    }
    if (!rows.empty() && stamps[i] < rows.back().first) ++axis.out_of_order;
    rows.emplace_back(stamps[i], i);
  }
  if (rows.empty()) return axis;
  std::sort(rows.begin(), rows.end());
  axis.first_ns = rows.front().first;
  axis.last_ns = rows.back().first;
  axis.first_duplicate = stamps.size();
  std::vector<std::int64_t> sorted;
  sorted.reserve(rows.size());
  for (const auto& [stamp, row] : rows) {
    if (!sorted.empty() && sorted.back() == stamp) {
      ++axis.duplicates;
      axis.first_duplicate = std::min(axis.first_duplicate, row);
    } else {
      sorted.push_back(stamp);
    }
  }
  find_step(sorted, axis);
  find_gaps(sorted, axis);
  return axis;
}

}  // namespace kizzasi::io
