#include "kizzasi/data/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "kizzasi/base/suggest.h"
#include "kizzasi/io/time_axis.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::data {
namespace {

using io::Regularity;
using io::TimeAxis;

// Exact to the nanosecond even where the difference of two stamps does not fit 64 bits (three centuries of years).
long double apart(std::int64_t later, std::int64_t earlier) { return static_cast<long double>(later) - static_cast<long double>(earlier); }

double steps_apart(std::int64_t later, std::int64_t earlier, std::int64_t step) {
  return static_cast<double>(apart(later, earlier) / static_cast<long double>(step));
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kMonth = 2'629'746'000'000'000;  // the mean month of the Gregorian calendar
constexpr std::size_t kMostFrames = 10'000'000, kMostFramesPerRow = 50;
constexpr std::ptrdiff_t kMostRemarks = 20;

struct Channels {
  std::vector<std::size_t> columns;  // of the table
  std::vector<Channel> channels;
};

bool is_listed(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Present values of a column: none, one that never changes, or several.
enum class Variety { kNone, kConstant, kVaries };

Variety variety(const Table& table, std::size_t column) {
  std::optional<double> first;
  for (std::size_t i = column; i < table.values.size(); i += table.columns.size()) {
    const double value = table.values[i];
    if (std::isnan(value)) continue;
    if (!first) first = value;
    if (value != *first) return Variety::kVaries;
  }
  return first ? Variety::kConstant : Variety::kNone;
}

Result<Channels> choose_channels(const Table& table, const PrepareOptions& options, PrepareReport& report) {
  std::vector<std::string> names;
  for (const Channel& column : table.columns) names.push_back(column.name);
  for (const auto* list : {&options.targets, &options.observed, &options.known_future, &options.drop}) {
    for (const std::string& name : *list) {
      if (is_listed(names, name)) continue;
      std::string hint = did_you_mean(name, names);
      if (hint.empty()) hint = fmt::format("The channels are: {}.", fmt::join(names, ", "));
      return fail({Fault::kBadUse, fmt::format("there is no channel '{}'", name), table.source, "the name of a number column", hint});
    }
  }
  Channels out;
  std::size_t targets = 0, constant = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    Channel channel = table.columns[c];
    const int times = is_listed(options.targets, channel.name) + is_listed(options.observed, channel.name) +
                      is_listed(options.known_future, channel.name) + is_listed(options.drop, channel.name);
    if (times > 1) {
      return fail({Fault::kBadUse, fmt::format("channel '{}' has two roles", channel.name), table.source,
                   "each channel in one of targets, observed, known_future and drop", "Name it once."});
    }
    if (is_listed(options.drop, channel.name)) continue;
    const bool named = is_listed(options.targets, channel.name);
    if (named) channel.role = Role::kTarget;
    if (is_listed(options.observed, channel.name)) channel.role = Role::kObserved;
    if (is_listed(options.known_future, channel.name)) channel.role = Role::kKnownFuture;
    if (!options.targets.empty() && times == 0) channel.role = Role::kObserved;
    const Variety values = variety(table, c);
    if (values == Variety::kNone && named) {
      return fail({Fault::kBadInput, fmt::format("channel '{}' has no value at all", channel.name), table.source, "a target with values",
                   "Choose other --targets."});
    }
    if (values == Variety::kNone || (values == Variety::kConstant && !named)) {
      constant += values == Variety::kConstant ? 1 : 0;
      report.remarks.push_back(fmt::format("channel '{}' {} and was left out", channel.name,
                                           values == Variety::kNone ? "has no value at all" : "never changes"));
      continue;
    }
    targets += channel.role == Role::kTarget ? 1 : 0;
    out.columns.push_back(c);
    out.channels.push_back(std::move(channel));
  }
  if (targets == 0) {
    std::string what = table.columns.empty()  ? "there is no column of numbers"
                       : constant > 0         ? "every channel is constant: there is nothing to learn"
                       : out.channels.empty() ? "no channel has a value"
                                              : "no channel is a target";
    return fail({Fault::kBadInput, std::move(what), table.source, "at least one channel of changing numbers to predict",
                 "Look at the file with 'kizzasi check', or name channels with --targets."});
  }
  return out;
}

// Nothing where the step is found in the data.
Result<std::optional<std::int64_t>> wanted_step(const PrepareOptions& options, const Table& table) {
  if (options.step == "auto") return std::nullopt;
  const auto step = parse_duration(options.step, "--step");
  if (!step) return fail(step.error());
  if (*step <= 0) return fail({Fault::kBadUse, "a step of no length", "--step", "a duration above 0", "For example --step 15min."});
  if (table.time_ns.empty()) {
    return fail({Fault::kBadUse, fmt::format("a step of {} cannot be taken: the recording has no times", options.step), "--step", "auto",
                 "Name the column of times with --time-column, or leave the option out."});
  }
  return *step;
}

// Rows of one series: times rising, one row a stamp.
struct Rows {
  std::vector<std::int64_t> times;
  std::vector<double> values;  // (rows, channels)
};

class SeriesBuilder {
 public:
  SeriesBuilder(const Table& table, const PrepareOptions& options, const Channels& channels, std::optional<std::int64_t> step_ns,
                PrepareReport& report)
      : table_(table), options_(options), channels_(channels), step_ns_(step_ns), report_(report) {}

  Result<Series> build(const std::vector<std::size_t>& rows, const std::string& id) {
    counts_ = {};
    counts_.id = id;
    counts_.rows_read = rows.size();
    series_ = {};
    series_.id = id;
    series_.schema = {channels_.channels, table_.nominal_step_ns, table_.zone};
    if (table_.time_ns.empty()) {
      for (const std::size_t row : rows) append(row, series_.values);
    } else if (auto done = on_grid(rows); !done) {
      return fail(done.error());
    }
    counts_.rows_out = series_.rows();
    counts_.step_ns = series_.schema.step_ns;
    for (const double value : series_.values) counts_.missing += std::isnan(value) ? 1 : 0;
    counts_.filled = fill_missing(series_, options_.missing, static_cast<std::size_t>(options_.max_gap));
    report_.series.push_back(counts_);
    return std::move(series_);
  }

 private:
  std::size_t width() const { return channels_.columns.size(); }
  std::string where() const { return counts_.id.empty() ? table_.source : fmt::format("{}, series '{}'", table_.source, counts_.id); }

  void append(std::size_t row, std::vector<double>& values) const {
    for (const std::size_t column : channels_.columns) values.push_back(table_.values[row * table_.columns.size() + column]);
  }

  Result<void> on_grid(const std::vector<std::size_t>& rows) {
    std::vector<std::int64_t> stamps;
    for (const std::size_t row : rows) stamps.push_back(table_.time_ns[row]);
    const TimeAxis axis = io::examine_times(stamps);
    counts_.out_of_order = axis.out_of_order;
    counts_.implausible = axis.implausible.size();
    counts_.duplicates = axis.duplicates;
    auto merged = merge(rows, axis);
    if (!merged) return fail(merged.error());
    if (merged->times.empty())
      return fail({Fault::kBadInput, "no row has a plausible time", where(), "rows with times", "Check the time column."});
    if (!step_ns_ && axis.regularity == Regularity::kCalendar) return by_month(*merged, axis.months);

    std::int64_t step = axis.step_ns;
    if (step_ns_) {
      step = *step_ns_;
    } else if (axis.regularity == Regularity::kIrregular) {
      remark(fmt::format("the steps are irregular; the most common one, {}, became the grid", duration_text(step)));
    }
    series_.start_ns = merged->times.front();
    series_.schema.step_ns = step;
    if (step == 0) {  // one stamp
      series_.values = std::move(merged->values);
      return {};
    }
    const auto frames = static_cast<std::size_t>(std::llround(steps_apart(merged->times.back(), merged->times.front(), step))) + 1;
    if (frames > kMostFrames && frames / kMostFramesPerRow > merged->times.size()) {
      return fail({Fault::kBadInput,
                   fmt::format("{} rows would become {} frames on a step of {}", merged->times.size(), frames, duration_text(step)),
                   where(), "stamps that fill most of the grid", "Check the stamps with 'kizzasi check', or choose a longer --step."});
    }
    return resample(*merged, axis, step, frames);
  }

  // Implausible rows out, sorted by time, one row a stamp.
  Result<Rows> merge(const std::vector<std::size_t>& rows, const TimeAxis& axis) const {
    std::vector<std::size_t> order;
    for (std::size_t i = 0, bad = 0; i < rows.size(); ++i) {
      if (bad < axis.implausible.size() && axis.implausible[bad] == i) {
        ++bad;
      } else {
        order.push_back(rows[i]);
      }
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return table_.time_ns[a] != table_.time_ns[b] ? table_.time_ns[a] < table_.time_ns[b] : a < b;  // in the order of the file
    });
    Rows out;
    for (std::size_t begin = 0; begin < order.size();) {
      std::size_t end = begin;
      const std::int64_t time = table_.time_ns[order[begin]];
      while (end < order.size() && table_.time_ns[order[end]] == time) ++end;
      if (end - begin > 1 && options_.duplicates == "error") {
        return fail({Fault::kBadInput,
                     fmt::format("{} rows have the stamp {}", end - begin, time_text(time, table_.zone == "mixed" ? "UTC" : table_.zone)),
                     where(), "one row for each stamp", "Choose what to do with --duplicates first, last or mean."});
      }
      out.times.push_back(time);
      if (options_.duplicates == "mean" && end - begin > 1) {
        append_mean(std::span(order).subspan(begin, end - begin), out.values);
      } else {
        append(order[options_.duplicates == "first" ? begin : end - 1], out.values);
      }
      begin = end;
    }
    return out;
  }

  // The mean of the present cells of some rows of the table.
  void append_mean(std::span<const std::size_t> rows, std::vector<double>& values) const {
    for (const std::size_t column : channels_.columns) {
      double sum = 0;
      std::size_t count = 0;
      for (const std::size_t row : rows) {
        const double value = table_.values[row * table_.columns.size() + column];
        sum += std::isnan(value) ? 0 : value;
        count += std::isnan(value) ? 0 : 1;
      }
      values.push_back(count > 0 ? sum / static_cast<double>(count) : kNaN);
    }
  }

  Result<void> by_month(const Rows& rows, int months) {
    const std::int64_t first = io::month_index(rows.times.front()), last = io::month_index(rows.times.back());
    series_.start_ns = rows.times.front();
    series_.schema.step_ns = months * kMonth;
    series_.values.assign((static_cast<std::size_t>(last - first) / static_cast<std::size_t>(months) + 1) * width(), kNaN);
    std::vector<std::uint8_t> filled(series_.rows(), 0);
    for (std::size_t r = 0; r < rows.times.size(); ++r) {
      const std::int64_t at = io::month_index(rows.times[r]) - first;
      if (at % months != 0) {
        return fail({Fault::kBadInput, fmt::format("a row stands {} months after the first, off the step of {} months", at, months),
                     where(), "rows on whole steps of months", "Choose a step with --step."});
      }
      const auto slot = static_cast<std::size_t>(at / months);
      std::copy_n(rows.values.begin() + static_cast<std::ptrdiff_t>(r * width()), width(), series_.row(slot).begin());
      filled[slot] = 1;
    }
    std::string said = fmt::format("the step is {} month{}; rows are counted by month", months, months == 1 ? "" : "s");
    if (!is_listed(report_.remarks, said)) report_.remarks.push_back(std::move(said));
    count_gaps(filled);
    return {};
  }

  Result<void> resample(const Rows& rows, const TimeAxis& axis, std::int64_t step, std::size_t frames) {
    std::size_t off = 0;
    std::optional<std::size_t> first_off;
    for (std::size_t r = 0; r < rows.times.size(); ++r) {
      const double place = steps_apart(rows.times[r], rows.times.front(), step);
      if (std::fabs(place - std::round(place)) <= 0.01) continue;
      ++off;
      if (!first_off) first_off = r;
    }
    std::string policy = options_.resample;
    if (policy == "none" && first_off) {
      return fail(
          {Fault::kBadInput,
           fmt::format("the stamp {} is not on the grid of {}, and {} more are not",
                       time_text(rows.times[*first_off], table_.zone == "mixed" ? "UTC" : table_.zone), duration_text(step), off - 1),
           where(), "stamps on the grid to within 1 % of a step", "Move them with --resample mean, last or linear."});
    }
    if (policy == "auto") {
      const bool coarser = axis.step_ns > 0 && 2 * step >= 3 * axis.step_ns;
      policy = coarser ? "mean" : off == 0 ? "none" : "linear";
      if (policy != "none") {
        remark(policy == "mean" ? fmt::format("rows were averaged over steps of {}", duration_text(step))
                                : fmt::format("{} stamps off the grid of {} were moved to it by straight lines", off, duration_text(step)));
      }
    }
    series_.values.assign(frames * width(), kNaN);
    std::vector<std::uint8_t> filled(frames, 0);
    if (policy == "none") take_exact(rows, step, filled);
    if (policy == "mean") take_mean(rows, step, filled);
    if (policy == "last") take_last(rows, step, filled);
    if (policy == "linear") take_linear(rows, step, filled);
    if (policy != "none") counts_.resampled = static_cast<std::size_t>(std::count(filled.begin(), filled.end(), std::uint8_t{2}));
    count_gaps(filled);
    return {};
  }

  std::span<const double> row_of(const Rows& rows, std::size_t r) const { return std::span(rows.values).subspan(r * width(), width()); }
  std::int64_t grid_time(std::size_t frame, std::int64_t step) const { return series_.start_ns + static_cast<std::int64_t>(frame) * step; }
  bool is_on(std::int64_t time, std::size_t frame, std::int64_t step) const {
    return std::fabs(steps_apart(time, grid_time(frame, step), step)) <= 0.01;
  }

  void take_exact(const Rows& rows, std::int64_t step, std::vector<std::uint8_t>& filled) {
    for (std::size_t r = 0; r < rows.times.size(); ++r) {
      const auto frame = static_cast<std::size_t>(std::llround(steps_apart(rows.times[r], series_.start_ns, step)));
      if (frame >= filled.size()) continue;
      std::copy_n(row_of(rows, r).begin(), width(), series_.row(frame).begin());
      filled[frame] = 1;
    }
  }

  void take_mean(const Rows& rows, std::int64_t step, std::vector<std::uint8_t>& filled) {
    std::vector<std::size_t> counts(series_.values.size(), 0);
    for (std::size_t r = 0; r < rows.times.size(); ++r) {
      // A row half a step after a grid point belongs to the next one.
      const auto frame = static_cast<std::size_t>(std::floor(steps_apart(rows.times[r], series_.start_ns, step) + 0.5));
      if (frame >= filled.size()) continue;
      filled[frame] = filled[frame] == 0 && is_on(rows.times[r], frame, step) ? 1 : 2;
      for (std::size_t c = 0; c < width(); ++c) {
        const double value = row_of(rows, r)[c];
        if (std::isnan(value)) continue;
        double& sum = series_.values[frame * width() + c];
        sum = std::isnan(sum) ? value : sum + value;
        ++counts[frame * width() + c];
      }
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 1) series_.values[i] /= static_cast<double>(counts[i]);
    }
  }

  void take_last(const Rows& rows, std::int64_t step, std::vector<std::uint8_t>& filled) {
    const std::int64_t reach = step / 100;  // stamps a little late still count
    for (std::size_t frame = 0, r = 0; frame < filled.size(); ++frame) {
      const std::int64_t time = grid_time(frame, step);
      while (r < rows.times.size() && rows.times[r] <= time + reach) ++r;
      if (r == 0 || rows.times[r - 1] < time - step) continue;
      std::copy_n(row_of(rows, r - 1).begin(), width(), series_.row(frame).begin());
      filled[frame] = is_on(rows.times[r - 1], frame, step) ? 1 : 2;
    }
  }

  void take_linear(const Rows& rows, std::int64_t step, std::vector<std::uint8_t>& filled) {
    for (std::size_t frame = 0, r = 0; frame < filled.size(); ++frame) {
      const std::int64_t time = grid_time(frame, step);
      while (r + 1 < rows.times.size() && rows.times[r + 1] <= time) ++r;  // the last row at or before the grid point, or the first row
      const std::size_t next = std::min(r + 1, rows.times.size() - 1);
      const std::size_t nearest = std::llabs(rows.times[next] - time) < std::llabs(rows.times[r] - time) ? next : r;
      if (is_on(rows.times[nearest], frame, step)) {
        std::copy_n(row_of(rows, nearest).begin(), width(), series_.row(frame).begin());
        filled[frame] = 1;
        continue;
      }
      if (rows.times[r] > time || next == r || rows.times[next] - rows.times[r] > 2 * step) continue;
      const double share = static_cast<double>(time - rows.times[r]) / static_cast<double>(rows.times[next] - rows.times[r]);
      for (std::size_t c = 0; c < width(); ++c) {
        series_.row(frame)[c] = row_of(rows, r)[c] + share * (row_of(rows, next)[c] - row_of(rows, r)[c]);
      }
      filled[frame] = 2;
    }
  }

  void count_gaps(const std::vector<std::uint8_t>& filled) {
    for (std::size_t i = 0; i < filled.size(); ++i) {
      if (filled[i] != 0) continue;
      ++counts_.gap_frames;
      if (i > 0 && filled[i - 1] != 0) ++counts_.gaps;
    }
  }

  void remark(std::string text) {
    report_.remarks.push_back(counts_.id.empty() ? std::move(text) : fmt::format("series '{}': {}", counts_.id, text));
  }

  const Table& table_;
  const PrepareOptions& options_;
  const Channels& channels_;
  std::optional<std::int64_t> step_ns_;  // as asked for
  PrepareReport& report_;
  SeriesReport counts_;
  Series series_;
};

}  // namespace

void PrepareOptions::fields(FieldVisitor& visit) {
  visit.field({"step", "Time between frames: auto (the most common step), or a duration such as 15min."}, step);
  visit.field({.name = "resample", .help = "How rows come to the grid of steps.", .choices = {"auto", "none", "mean", "last", "linear"}},
              resample);
  visit.field({.name = "duplicates", .help = "What becomes of rows with the same stamp.", .choices = {"error", "first", "last", "mean"}},
              duplicates);
  visit.field({.name = "missing", .help = "What becomes of missing values.", .choices = {"keep", "interpolate", "forward"}}, missing);
  visit.field({"max_gap", "Longest run of missing frames that is filled; 0: any.", 0, 1e9}, max_gap);
  visit.field({"targets", "Channels to predict; none named: every number column."}, targets);
  visit.field({"observed", "Channels that are read but not predicted."}, observed);
  visit.field({"known_future", "Channels that are known ahead, such as plans."}, known_future);
  visit.field({"drop", "Channels that are not read."}, drop);
}

std::int64_t later(std::int64_t time_ns, std::int64_t steps, std::int64_t step_ns) {
  // A stamp may be any number: what passes the end of time wraps, as in a session.
  const auto wrapped = [](std::int64_t from, std::int64_t count, std::int64_t length) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) +
                                     static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(length));
  };
  if (step_ns == 0 || step_ns % kMonth != 0) return wrapped(time_ns, steps, step_ns);
  using namespace std::chrono;
  const sys_time<nanoseconds> from{nanoseconds(time_ns)};
  const auto day = floor<days>(from);
  const year_month_day date(day);
  const year_month month = date.year() / date.month() + months(steps * (step_ns / kMonth));
  const year_month_day_last month_end(month.year(), month_day_last(month.month()));
  const bool at_end = date == year_month_day_last(date.year(), month_day_last(date.month()));
  const auto target = at_end || date.day() > month_end.day() ? sys_days(month_end) : sys_days(month / date.day());
  return wrapped((from - day).count(), target.time_since_epoch().count(), 86'400'000'000'000);
}

std::int64_t row_time(const Series& series, std::size_t row) {
  return later(series.start_ns, static_cast<std::int64_t>(row), series.schema.step_ns);
}

SeriesReport PrepareReport::total() const {
  SeriesReport sum;
  if (!series.empty()) sum.step_ns = series.front().step_ns;
  for (const SeriesReport& one : series) {
    sum.rows_read += one.rows_read;
    sum.rows_out += one.rows_out;
    sum.duplicates += one.duplicates;
    sum.out_of_order += one.out_of_order;
    sum.implausible += one.implausible;
    sum.resampled += one.resampled;
    sum.gaps += one.gaps;
    sum.gap_frames += one.gap_frames;
    sum.missing += one.missing;
    sum.filled += one.filled;
  }
  return sum;
}

Result<std::vector<Series>> prepare(const Table& table, const PrepareOptions& options, PrepareReport& report) {
  report = {};
  if (auto good = check_fields(options); !good) return fail(good.error());
  const auto step = wanted_step(options, table);
  if (!step) return fail(step.error());
  if (table.rows() == 0) {
    return fail({Fault::kBadInput, "there is no row", table.source, "rows of numbers", "Check that the recording was written."});
  }
  const auto channels = choose_channels(table, options, report);
  if (!channels) return fail(channels.error());
  std::vector<std::vector<std::size_t>> rows(std::max<std::size_t>(1, table.ids.size()));
  for (std::size_t r = 0; r < table.rows(); ++r) rows[table.series.empty() ? 0 : static_cast<std::size_t>(table.series[r])].push_back(r);
  SeriesBuilder builder(table, options, *channels, *step, report);
  std::vector<Series> out;
  for (std::size_t s = 0; s < rows.size(); ++s) {
    if (rows[s].empty()) continue;
    auto series = builder.build(rows[s], table.ids.empty() ? "" : table.ids[s]);
    if (!series) return fail(series.error());
    out.push_back(std::move(*series));
  }
  if (std::ssize(report.remarks) > kMostRemarks) {
    report.remarks.push_back(fmt::format("and {} more remarks of these kinds", std::ssize(report.remarks) - kMostRemarks));
    report.remarks.erase(report.remarks.begin() + kMostRemarks, report.remarks.end() - 1);
  }
  return out;
}

std::size_t fill_missing(Series& series, std::string_view policy, std::size_t max_gap) {
  if (policy != "interpolate" && policy != "forward") return 0;
  const std::size_t rows = series.rows(), width = series.channels();
  std::size_t filled = 0;
  for (std::size_t c = 0; c < width; ++c) {
    const auto cell = [&](std::size_t r) -> double& { return series.values[r * width + c]; };
    for (std::size_t begin = 0; begin < rows;) {
      if (!std::isnan(cell(begin))) {
        ++begin;
        continue;
      }
      std::size_t end = begin;
      while (end < rows && std::isnan(cell(end))) ++end;
      const std::size_t length = end - begin;
      const bool bridged = begin > 0 && (max_gap == 0 || length <= max_gap) && (policy == "forward" || end < rows);
      for (std::size_t r = begin; bridged && r < end; ++r) {
        const double before = cell(begin - 1);
        const double share = static_cast<double>(r - begin + 1) / static_cast<double>(length + 1);
        cell(r) = policy == "forward" ? before : before + share * (cell(end) - before);
        ++filled;
      }
      begin = end;
    }
  }
  return filled;
}

}  // namespace kizzasi::data
