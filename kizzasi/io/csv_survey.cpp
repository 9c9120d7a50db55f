#include "kizzasi/io/csv_survey.h"

#include <algorithm>
#include <optional>

#include "kizzasi/io/time_axis.h"

namespace kizzasi::io {
namespace {

constexpr std::size_t kMostAmbiguous = 5000;

void survey_cell(std::string_view cell, const MissingCells& missing, ColumnSurvey& column) {
  if (missing.is_word(cell)) return;
  ++column.present;
  if (const std::uint8_t styles = number_styles(cell); styles != 0) {
    for (std::size_t i = 0; i < kStyleCount; ++i) column.numbers[i] += (styles >> i) & 1U;
    column.percent += has_percent(cell) ? 1 : 0;
  } else if (const auto word = bool_word(cell)) {
    ++column.bools[word->family];
  }
}

void survey_stamp(const Record& record, const CsvHead& head, CsvSurvey& out) {
  if (head.time != TimeKind::kStamp || head.stamp.shape != StampShape::kShort) return;
  std::string both(record.fields[head.time_at.front()]);
  if (head.time_at.size() == 2) both.append(" ").append(record.fields[head.time_at.back()]);
  const auto stamp = scan_stamp(both);
  if (!stamp || stamp->shape != StampShape::kShort) return;
  out.first_above_12 += stamp->first > 12 ? 1 : 0;
  out.second_above_12 += stamp->second > 12 ? 1 : 0;
  if (out.ambiguous.size() < kMostAmbiguous) out.ambiguous.push_back(*stamp);
}

// How regular the stamps are in one reading: the share of steps that equal the most common one; -1 where a date does not exist.
double regularity(const std::vector<Stamp>& stamps, DateOrder order) {
  std::vector<std::int64_t> times;
  for (const Stamp& stamp : stamps) {
    const auto time = stamp.wall_ns(order);
    if (!time) return -1;
    times.push_back(*time);
  }
  std::vector<std::int64_t> steps;
  for (std::size_t i = 1; i < times.size(); ++i) steps.push_back(times[i] - times[i - 1]);
  if (steps.size() < 2) return 0;
  std::sort(steps.begin(), steps.end());
  std::size_t most = 0;
  for (std::size_t i = 0; i < steps.size();) {
    const std::size_t end = static_cast<std::size_t>(std::upper_bound(steps.begin(), steps.end(), steps[i]) - steps.begin());
    if (steps[i] > 0) most = std::max(most, end - i);
    i = end;
  }
  const TimeAxis axis = examine_times(times);
  const double score = static_cast<double>(most) / static_cast<double>(steps.size());
  // Month by month is a step, too, but days are the plainer reading of the same stamps.
  return axis.regularity == Regularity::kCalendar ? std::max(score, 0.6) : score;
}

}  // namespace

bool MissingCells::is_sentinel(double value) const { return std::find(sentinels_.begin(), sentinels_.end(), value) != sentinels_.end(); }

RecordKind kind_of(const Record& record, const CsvHead& head, bool strict) {
  if (record.text.empty() || trimmed(record.text).empty()) return RecordKind::kBlank;
  if ((record.text.front() == '#' || record.text.front() == '/' || record.text.front() == ' ') && is_comment(record.text))
    return RecordKind::kComment;
  const std::size_t n = record.fields.size();
  if (n == head.fields || (head.last_empty && n + 1 == head.fields)) {
    const bool nothing =
        !head.time_at.empty() && n > 1 && std::all_of(record.fields.begin(), record.fields.end(), [](auto cell) { return cell.empty(); });
    return nothing ? RecordKind::kBlank : RecordKind::kData;
  }
  const bool no_number = record.text.find_first_of("0123456789") == std::string_view::npos;
  if (!strict && no_number && (n == 1 || head.delimiter == ' ')) return RecordKind::kRemark;
  return RecordKind::kFieldCount;
}

Result<CsvSurvey> survey(ByteSource& source, Encoding encoding, const CsvHead& head, const CsvOptions& options) {
  CsvSurvey out;
  out.columns.resize(head.fields);
  if (auto done = source.rewind(); !done) return fail(done.error());
  RecordReader reader(Utf8Reader(source, encoding), head.delimiter, head.newline);
  const MissingCells missing(options);
  Record record;
  while (true) {
    const auto more = reader.next(record);
    if (!more) return fail(more.error());
    if (reader.invalid_text()) {
      out.invalid_text = true;
      return out;
    }
    if (!*more) return out;
    if (record.line < head.data_line || record.has_nul || record.too_long || kind_of(record, head, options.strict) != RecordKind::kData)
      continue;
    ++out.rows;
    for (std::size_t c = 0; c < record.fields.size(); ++c) {
      if (c == head.id_at || std::find(head.time_at.begin(), head.time_at.end(), c) != head.time_at.end()) continue;
      survey_cell(record.fields[c], missing, out.columns[c]);
    }
    survey_stamp(record, head, out);
  }
}

NumberStyle choose_style(const CsvSurvey& survey, const CsvHead& head, const CsvOptions& options) {
  std::array<std::size_t, kStyleCount> order{0, 1, 2, 3, 4, 5, 6, 7};
  // Between commas a mark inside a number is the one of thousands; elsewhere it is a decimal comma.
  if (head.delimiter == ',') order = {0, 2, 1, 3, 4, 5, 6, 7};
  NumberStyle best;
  std::size_t votes = 0;
  for (const std::size_t style : order) {
    if (options.decimal == "point" && kStyles[style].decimal != '.') continue;
    if (options.decimal == "comma" && kStyles[style].decimal != ',') continue;
    std::size_t now = 0;
    for (const ColumnSurvey& column : survey.columns) now += column.numbers[style];
    if (now > votes || (votes == 0 && options.decimal == "comma" && best.decimal == '.')) {
      votes = now;
      best = kStyles[style];
    }
  }
  return best;
}

OrderChoice choose_order(const CsvSurvey& survey, const CsvHead& head, const CsvOptions& options) {
  if (head.time != TimeKind::kStamp || head.stamp.shape != StampShape::kShort) return {};
  if (options.date_order == "day_first") return {DateOrder::kDayFirst, OrderReason::kSettled};
  if (options.date_order == "month_first") return {DateOrder::kMonthFirst, OrderReason::kSettled};
  if (survey.first_above_12 != survey.second_above_12) {
    return {survey.first_above_12 > survey.second_above_12 ? DateOrder::kDayFirst : DateOrder::kMonthFirst, OrderReason::kSettled};
  }
  const double day = regularity(survey.ambiguous, DateOrder::kDayFirst), month = regularity(survey.ambiguous, DateOrder::kMonthFirst);
  if (day > month + 0.05) return {DateOrder::kDayFirst, OrderReason::kInferred};
  if (month > day + 0.05) return {DateOrder::kMonthFirst, OrderReason::kInferred};
  return {DateOrder::kDayFirst, OrderReason::kAmbiguous};
}

}  // namespace kizzasi::io
