#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "kizzasi/io/csv.h"
#include "kizzasi/signal/duration.h"

namespace kizzasi::io {
namespace {

constexpr double kSecond = 1e9;
constexpr std::size_t kShownGaps = 10'000;

// Whole seconds as an integer.
Json seconds(std::int64_t nanoseconds) {
  constexpr std::int64_t kUnit = 1'000'000'000;
  if (nanoseconds % kUnit == 0) return nanoseconds / kUnit;
  return static_cast<double>(nanoseconds) / kSecond;
}

template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json refusal_json(const CsvRefusal& refusal) {
  Json error = Json::object();
  error["kind"] = refusal.kind;
  if (refusal.line) error["line"] = *refusal.line;
  if (!refusal.column.empty()) error["column"] = refusal.column;
  if (refusal.text) error["text"] = *refusal.text;
  if (refusal.expected_fields) error["expected_fields"] = *refusal.expected_fields;
  if (refusal.found_fields) error["found_fields"] = *refusal.found_fields;
  return error;
}

Json mark(char c) { return c == '\0' ? Json() : Json(std::string(1, c)); }

Json columns_json(const CsvReport& report) {
  Json columns = Json::array();
  for (const CsvColumn& column : report.columns) {
    Json one = Json::object();
    one["name"] = column.name;
    one["type"] = column.type == CellType::kText ? "text" : column.type == CellType::kBool ? "bool" : "number";
    one["missing"] = column.missing;
    if (!column.unit.empty()) one["unit"] = column.unit;
    if (column.constant) one["constant"] = true;
    columns.push_back(std::move(one));
  }
  return columns;
}

std::pair<std::int64_t, std::int64_t> span_of(const CsvReport& report) {
  std::pair<std::int64_t, std::int64_t> span{INT64_MAX, INT64_MIN};
  for (const CsvSeries& series : report.series) {
    span.first = std::min(span.first, series.axis.first_ns);
    span.second = std::max(span.second, series.axis.last_ns);
  }
  return span;
}

Json gaps_json(const CsvReport& report) {
  Json gaps = Json::array();
  for (const CsvSeries& series : report.series) {
    for (const Gap& gap : series.axis.gaps) {
      if (gaps.items().size() >= kShownGaps) return gaps;
      Json one = Json::object();
      one["after"] = report.stamp(gap.after_ns);
      one["missing_steps"] = gap.missing_steps;
      gaps.push_back(std::move(one));
    }
  }
  return gaps;
}

Json time_json(const CsvReport& report) {
  if (report.time_columns.empty()) return {};
  Json time = Json::object();
  if (report.time_columns.size() > 1) {
    time["column"] = Json::list(report.time_columns);
  } else {
    time["column"] = report.time_index ? Json(*report.time_index) : Json(report.time_columns.front());
  }
  time["format"] = report.time_format;
  time["zone"] = report.zone.empty() ? Json() : Json(report.zone);
  const std::int64_t step = report.step_ns();
  time["step_s"] = step > 0 ? seconds(step) : Json();
  const bool mixed = step == 0 && std::any_of(report.series.begin(), report.series.end(), [](const auto& s) { return s.axis.step_ns > 0; });
  if (mixed) {
    Json steps = Json::object();
    for (const CsvSeries& series : report.series) steps[series.id] = series.axis.step_ns > 0 ? seconds(series.axis.step_ns) : Json();
    time["step_by_series"] = std::move(steps);
  }
  const auto [first, last] = span_of(report);
  time["first"] = report.stamp(first);
  time["last"] = report.stamp(last);
  return time;
}

}  // namespace

std::size_t CsvReport::missing() const {
  std::size_t cells = 0;
  for (const CsvColumn& column : columns) cells += column.missing;
  return cells;
}

std::size_t CsvReport::duplicates() const {
  std::size_t found = 0;
  for (const CsvSeries& one : series) found += one.axis.duplicates;
  return found;
}

std::size_t CsvReport::out_of_order() const {
  std::size_t found = 0;
  for (const CsvSeries& one : series) found += one.axis.out_of_order;
  return found;
}

std::int64_t CsvReport::step_ns() const {
  std::int64_t step = 0;
  for (const CsvSeries& one : series) {
    if (one.axis.step_ns == 0) continue;
    // Months are of several lengths; series of the same months share their step all the same.
    const bool same = one.axis.months > 0 && one.axis.months == series.front().axis.months;
    if (step != 0 && step != one.axis.step_ns && !same) return 0;
    if (step == 0) step = one.axis.step_ns;
  }
  return step;
}

Json CsvReport::stamp(std::int64_t time_ns) const {
  if (relative) return seconds(time_ns);
  std::string text = time_text(time_ns, zone.empty() || zone == "UTC" ? "" : "UTC");
  if (date_only && text.size() > 10 && text.substr(10).starts_with("T00:00:00")) text.resize(10);
  return text;
}

Json CsvReport::to_json(const CsvOptions& options) const {
  Json out = Json::object();
  if (refusal) {
    out["error"] = refusal_json(*refusal);
    return out;
  }
  Json dialect = Json::object();
  dialect["delimiter"] = std::string(1, delimiter);
  dialect["decimal"] = std::string(1, numbers.decimal);
  dialect["thousands"] = mark(numbers.thousands);
  dialect["encoding"] = to_string(encoding);
  dialect["newline"] = to_string(newline);
  out["dialect"] = std::move(dialect);
  out["layout"] = id_column.empty() ? "wide" : "long";
  out["header_line"] = optional_json(header_line);
  out["skipped_lines"] = Json::list(skipped_lines);
  out["time"] = time_json(*this);
  out["columns"] = columns_json(*this);
  out["rows"] = rows;
  out["missing"] = missing();
  out["duplicates"] = duplicates();
  out["out_of_order"] = out_of_order();
  out["gaps"] = gaps_json(*this);
  out["warnings"] = Json::list(warnings);
  if (!id_column.empty()) {
    out["id_column"] = id_column;
    Json counts = Json::object();
    for (const CsvSeries& one : series) counts[one.id] = one.axis.rows;
    out["series"] = std::move(counts);
  }
  if (first_duplicate_line) out["first_duplicate_line"] = *first_duplicate_line;
  if (!implausible.empty()) {
    Json rows_aside = Json::array();
    for (const auto& [line, time] : implausible) {
      Json one = Json::object();
      one["line"] = line;
      one["stamp"] = stamp(time);
      rows_aside.push_back(std::move(one));
    }
    out["implausible"] = std::move(rows_aside);
  }
  if (!not_finite.empty()) {
    Json cells = Json::array();
    for (const CsvCell& cell : not_finite) {
      Json one = Json::object();
      one["line"] = cell.line;
      one["column"] = cell.column;
      one["text"] = cell.text;
      cells.push_back(std::move(one));
    }
    out["not_finite"] = std::move(cells);
  }
  if (!options.zone.empty() && !time_columns.empty()) {
    const auto [first, last] = span_of(*this);
    Json named = Json::object();
    named["zone"] = options.zone;
    named["duplicates"] = duplicates();
    named["gaps"] = gaps_json(*this);
    named["first_utc"] = time_text(first, "UTC");
    named["last_utc"] = time_text(last, "UTC");
    out["with_zone"] = std::move(named);
  }
  if (options.lenient) {
    Json lenient = Json::object();
    lenient["rows"] = rows;
    lenient["skipped_lines"] = Json::list(skipped_lines);
    out["lenient"] = std::move(lenient);
  }
  return out;
}

std::string warning_text(std::string_view warning) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= warning.size();) {
    const std::size_t end = std::min(warning.find(':', begin), warning.size());
    parts.emplace_back(warning.substr(begin, end - begin));
    begin = end + 1;
  }
  const std::string_view code = parts.front();
  // A column's name may hold colons itself: everything between the code and the counts at the end is the name.
  const auto name = [&](std::size_t counts) {
    std::string joined = parts.size() > 1 ? parts[1] : "";
    for (std::size_t i = 2; i + counts < parts.size(); ++i) joined.append(":").append(parts[i]);
    return joined;
  };
  const std::string one = name(0);
  struct Sentence {
    std::string_view code;
    const char* text;
  };
  // {} is what stands after the code.
  constexpr std::array<Sentence, 28> kSentences{{
      {"no_header", "No line of names stands above the data; the columns are called c0, c1, ... by their place."},
      {"preamble_skipped", "{} lines above the header are no data and were left out."},
      {"encoding_guessed", "The text is no UTF-8; it was read as {} (say otherwise with --encoding)."},
      {"no_time_column", "No column holds times; rows are counted instead (name one with --time-column)."},
      {"epoch_unit_guessed", "The times are numbers; by their size they were read as {} (say otherwise with --time-unit)."},
      {"date_order_inferred",
       "No day is above 12; the order of day and month is the one that gives a regular step (fix it with --date-order)."},
      {"date_order_ambiguous",
       "The order of day and month cannot be told from the file; the day was read first (fix it with --date-order)."},
      {"empty_last_column_dropped", "Every line ends with a delimiter; the empty last column was left out."},
      {"duplicate_name", "Several columns are called '{}'; the later ones got .1, .2, ..."},
      {"mixed_offsets", "The stamps name several offsets from UTC; they were read as instants."},
      {"too_short", "There are too few rows to learn from."},
      {"step_unknown", "With one stamp there is no step."},
      {"duplicate_stamps", "{} rows have a stamp that an earlier row has (choose with --duplicates error, first, last or mean)."},
      {"out_of_order", "{} rows stand before the row above them in time; they are sorted in."},
      {"gaps", "{} gaps: stamps that should be there are not."},
      {"implausible_stamp", "{} rows have a stamp decades away from their neighbours; they are set aside."},
      {"dst_suspected",
       "The clock seems to change between winter and summer time; name its zone with --zone, such as --zone Europe/Berlin."},
      {"nonexistent_local_time", "{} stamps name an hour that the zone's clock leaves out; they were read as if it had not yet changed."},
      {"mixed_steps", "The series have different steps; each keeps its own."},
      {"calendar_step", "The step is a number of months; rows are counted by month."},
      {"jitter", "The steps scatter; the step is their median, and rows are moved to the grid by --resample."},
      {"irregular_steps", "There is no regular step; choose one with --step and --resample."},
      {"off_grid", "{} steps are no multiple of the usual step."},
      {"text_column", "Column '{}' holds text and is not read."},
      {"constant_column", "Column '{}' never changes: there is nothing to learn in it."},
      {"empty_column", "Column '{}' has no value at all."},
      {"precision_loss", "Column '{}' has integers beyond 2^53, which lose their last digits."},
      {"lines_skipped", "{} bad lines were set aside."},
  }};
  for (const Sentence& sentence : kSentences) {
    if (sentence.code == code) return fmt::format(fmt::runtime(sentence.text), one);
  }
  if (code == "missing") return fmt::format("{} cells have no value.", one);
  if (code == "non_data_lines") return fmt::format("{} lines look like a logger's remarks and were left out.", one);
  if (code == "not_finite") return fmt::format("{} cells are infinite or too large and were set aside.", one);
  if (code == "sentinel_suspected" && parts.size() >= 4) {
    const std::string& value = parts[parts.size() - 2];
    return fmt::format("{} cells of '{}' are {}, far from all others: if that stands for no value, say so with --sentinels {}.",
                       parts.back(), name(2), value, value);
  }
  return std::string(warning);
}

}  // namespace kizzasi::io
