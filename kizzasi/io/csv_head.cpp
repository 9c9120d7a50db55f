#include "kizzasi/io/csv_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "kizzasi/base/suggest.h"
#include "kizzasi/io/csv_names.h"
#include "kizzasi/io/number.h"

namespace kizzasi::io {
namespace {

constexpr std::array<char, 5> kDelimiters{',', ';', '\t', '|', ' '};
constexpr std::size_t kSampleRecords = 400;

bool is_typed(std::string_view cell) {
  return is_missing_word(cell) || number_styles(cell) != 0 || scan_stamp(cell).has_value() || bool_word(cell).has_value();
}

std::vector<SampleRecord> split_sample(std::string_view text, bool whole, char delimiter, Newline newline) {
  std::vector<SampleRecord> records;
  const auto source = memory_source(text, "");
  RecordReader reader(Utf8Reader(*source, Encoding::kUtf8), delimiter, newline);
  Record record;
  while (records.size() < kSampleRecords) {
    const auto more = reader.next(record);
    if (!more || !*more) {
      if (!whole && records.size() > 1) records.pop_back();  // the sample's end may have cut it
      break;
    }
    SampleRecord copy{record.line, record.lines, std::string(record.text), {}, trimmed(record.text).empty(), is_comment(record.text)};
    for (const auto field : record.fields) copy.fields.emplace_back(field);
    records.push_back(std::move(copy));
  }
  return records;
}

bool is_data_candidate(const SampleRecord& record) { return !record.blank && !record.comment; }

// The number of fields that most records have, the larger one in a tie.
std::size_t usual_fields(const std::vector<SampleRecord>& records, std::size_t& votes) {
  std::map<std::size_t, std::size_t> counts;
  for (const auto& record : records) {
    if (is_data_candidate(record)) ++counts[record.fields.size()];
  }
  std::size_t best = 1;
  votes = 0;
  for (const auto& [fields, count] : counts) {
    if (count >= votes) {
      votes = count;
      best = fields;
    }
  }
  return best;
}

// How well the records fit a delimiter: the share of records with the usual number of fields, times how much their cells look like cells.
double fit(const std::vector<SampleRecord>& records, char delimiter) {
  std::size_t votes = 0, candidates = 0;
  const std::size_t fields = usual_fields(records, votes);
  if (fields < 2) return 0;
  double quality = 0;
  for (const auto& record : records) {
    if (!is_data_candidate(record)) continue;
    ++candidates;
    if (record.fields.size() != fields) continue;
    double cells = 0;
    for (const auto& cell : record.fields) {
      const bool holds_another = cell.find_first_of(delimiter == ' ' ? ",;\t|" : delimiter == ',' ? ";\t|" : ",;\t|") != std::string::npos;
      cells += is_typed(cell) ? 1.0 : holds_another ? -0.5 : 0.3;
    }
    quality += cells / static_cast<double>(fields);
  }
  const double share = static_cast<double>(votes) / static_cast<double>(candidates);
  return share * quality / static_cast<double>(votes) * (delimiter == ' ' ? 0.6 : 1.0);
}

Result<char> named_delimiter(const std::string& name) {
  if (name == "comma") return ',';
  if (name == "semicolon") return ';';
  if (name == "tab" || name == "\\t") return '\t';
  if (name == "pipe") return '|';
  if (name == "blank" || name == "space") return ' ';
  if (name.size() == 1 && name[0] != '"' && name[0] != '\n' && name[0] != '\r') return name[0];
  return fail({Fault::kBadUse, fmt::format("'{}' is no delimiter", name), "--delimiter",
               "auto, comma, semicolon, tab, pipe, blank or one character", "For example --delimiter semicolon."});
}

// "sep=;" as spreadsheets write it.
std::optional<char> sep_line(std::string_view text) {
  text = text.substr(0, text.find_first_of("\r\n"));
  if (text.size() == 5 && (text.starts_with("sep=") || text.starts_with("SEP="))) return text[4];
  return std::nullopt;
}

// A single column with decimal commas looks like two of whole numbers, below a name without a comma.
bool is_column_of_commas(const std::vector<SampleRecord>& records) {
  const auto digits = [](std::string_view cell, bool sign) {
    if (sign && (cell.starts_with('-') || cell.starts_with('+'))) cell.remove_prefix(1);
    return !cell.empty() && cell.find_first_not_of("0123456789") == cell.npos;
  };
  bool first = true;
  std::size_t rows = 0;
  for (const auto& record : records) {
    if (!is_data_candidate(record)) continue;
    if (first && (record.fields.size() != 1 || number_styles(record.fields[0]) != 0)) return false;
    const bool whole = record.fields.size() == 1 && digits(record.fields[0], true);
    const bool split = record.fields.size() == 2 && digits(record.fields[0], true) && digits(record.fields[1], false);
    if (!first && !whole && !split) return false;
    rows += split ? 1 : 0;
    first = false;
  }
  return rows > 0;
}

Result<char> find_delimiter(std::string_view text, bool whole, Newline newline, const CsvOptions& options) {
  if (options.delimiter != "auto") return named_delimiter(options.delimiter);
  if (const auto sep = sep_line(text)) return *sep;
  char best = ',';
  double score = 0.05;
  for (const char delimiter : kDelimiters) {
    const double now = fit(split_sample(text, whole, delimiter, newline), delimiter);
    if (now > score + 1e-9) {
      score = now;
      best = delimiter;
    }
  }
  if (best == ',' && is_column_of_commas(split_sample(text, whole, best, newline))) return ';';
  return best;
}

// What the cells of one column of the sample are, by votes of the rows that are surely data.
struct ColumnVotes {
  std::size_t present = 0, numbers = 0, stamps = 0, bools = 0, dates = 0, clocks = 0;
  bool is_number() const { return 2 * numbers > present; }
  bool is_stamp() const { return stamps > 0 && 2 * stamps >= present; }
};

class HeadReader {
 public:
  HeadReader(std::vector<SampleRecord> records, const CsvOptions& options, CsvHead& head)
      : records_(std::move(records)), options_(options), head_(head) {}

  Result<void> examine() {
    std::size_t votes = 0;
    head_.fields = usual_fields(records_, votes);
    vote();
    find_header();
    name_columns();
    if (auto done = find_time(); !done) return done;
    return find_id();
  }

 private:
  bool full(const SampleRecord& record) const { return is_data_candidate(record) && record.fields.size() == head_.fields; }

  // Votes come from the later half of the full records, which no header and no preamble reaches.
  void vote() {
    std::vector<const SampleRecord*> body;
    for (const auto& record : records_) {
      if (full(record)) body.push_back(&record);
    }
    columns_.assign(head_.fields, {});
    const std::size_t begin = body.size() / 2;
    body.erase(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(begin));
    for (const SampleRecord* record : body) {
      for (std::size_t c = 0; c < head_.fields; ++c) vote_cell(record->fields[c], columns_[c]);
    }
  }

  static void vote_cell(std::string_view cell, ColumnVotes& column) {
    if (is_missing_word(cell)) return;
    ++column.present;
    if (number_styles(cell) != 0) ++column.numbers;
    if (bool_word(cell)) ++column.bools;
    if (const auto stamp = scan_stamp(cell)) {
      const bool year_only = stamp->shape == StampShape::kYear;
      const bool compact = stamp->shape == StampShape::kCompact;
      if (!year_only && !compact) ++column.stamps;
      if (stamp->shape == StampShape::kTimeOfDay) ++column.clocks;
      if (!stamp->has_time && stamp->shape != StampShape::kTimeOfDay) ++column.dates;
    }
  }

  // A record that can be data: its cells are what their columns hold.
  bool is_data(const SampleRecord& record) const {
    if (!full(record)) return false;
    std::size_t right = 0, wrong = 0;
    bool stamp_expected = false, stamp_found = false, stamp_is_word = false;
    for (std::size_t c = 0; c < head_.fields; ++c) {
      const std::string& cell = record.fields[c];
      if (columns_[c].is_stamp() && !stamp_expected) {
        stamp_expected = true;
        stamp_found = scan_stamp(cell).has_value();
        stamp_is_word = std::none_of(cell.begin(), cell.end(), [](unsigned char ch) { return std::isdigit(ch) != 0; });
      } else if (columns_[c].is_number()) {
        if (!is_missing_word(cell)) ++(number_styles(cell) != 0 ? right : wrong);
      } else if (columns_[c].present > 0 && columns_[c].bools == columns_[c].present) {
        ++(bool_word(cell) || is_missing_word(cell) ? right : wrong);
      }
    }
    if (stamp_expected && stamp_found) return true;
    if (stamp_expected && stamp_is_word) return false;
    return right > 0 && right >= wrong;
  }

  // A header may have one field more (a trailing delimiter) or one less (row names) than the data.
  bool can_be_header(const SampleRecord& record) const {
    if (!is_data_candidate(record) || sep_line(record.text)) return false;
    const std::size_t n = record.fields.size();
    const bool one_more = n == head_.fields + 1 && record.fields.back().empty();
    const bool one_less = n + 1 == head_.fields && head_.fields > 2;
    if (n != head_.fields && !one_more && !one_less) return false;
    return std::any_of(record.fields.begin(), record.fields.end(),
                       [](const std::string& cell) { return !cell.empty() && number_styles(cell) == 0; });
  }

  bool only_missing(const SampleRecord& record) const {
    if (!full(record)) return false;
    const auto infinite = [](std::string_view cell) { return cell == "inf" || cell == "-inf" || cell == "Inf" || cell == "-Inf"; };
    return std::all_of(record.fields.begin(), record.fields.end(), [&](const std::string& cell) {
      return cell.empty() || is_missing_word(cell) || infinite(cell) || number_styles(cell) != 0;
    });
  }

  bool is_units_row(const SampleRecord& record, const SampleRecord& header) const {
    if (!full(record) || record.fields.size() != header.fields.size()) return false;
    std::size_t units = 0, other = 0, words = 0;
    for (std::size_t c = 0; c < record.fields.size(); ++c) {
      const std::string& cell = record.fields[c];
      if (cell.empty()) continue;
      if (is_unit(cell)) {
        ++units;
      } else {
        ++other;
        words += is_time_name(cell) ? 1 : 0;
      }
    }
    return units > 0 && units >= other && words == 0;
  }

  void find_header() {
    std::size_t first = records_.size();
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (is_data(records_[i])) {
        first = i;
        break;
      }
    }
    if (options_.header == "no") {
      first = 0;
      while (first < records_.size() && !full(records_[first])) ++first;
    }
    const auto above = [&](std::size_t below) {
      for (std::size_t i = below; i-- > 0;) {
        if (is_data_candidate(records_[i])) return i;
      }
      return records_.size();
    };
    std::size_t header = records_.size(), units = records_.size();
    if (options_.header != "no") {
      if (options_.header == "yes" && (first == 0 || first == records_.size())) {
        for (header = 0; header < records_.size() && !full(records_[header]); ++header) {
        }
      } else {
        header = above(first);
        // Rows of "nan" and "inf" alone are data too, where a header stands above them.
        for (std::size_t over = header; over < records_.size() && only_missing(records_[header]);) {
          over = above(header);
          if (over == records_.size() || !can_be_header(records_[over])) break;
          first = header;
          header = over;
        }
        // Without data the first full record is the header.
        if (first == records_.size()) {
          for (std::size_t i = 0; i < records_.size(); ++i) {
            if (can_be_header(records_[i])) {
              header = i;
              break;
            }
          }
        }
        if (header < records_.size() && !can_be_header(records_[header])) header = records_.size();
        if (header < records_.size() && first < records_.size()) {
          const std::size_t over = above(header);
          if (over < records_.size() && over + 1 == header && can_be_header(records_[over]) &&
              is_units_row(records_[header], records_[over])) {
            units = header;
            header = over;
          }
        }
      }
    }
    std::size_t data = first;
    if (header < records_.size()) data = (units < records_.size() ? units : header) + 1;
    settle(header, units, std::min(data, records_.size()), first);
  }

  void settle(std::size_t header, std::size_t units, std::size_t data, std::size_t first) {
    if (header == records_.size()) {
      adopt_commented_header(first);
      if (head_.header_line) data = first;
    } else {
      head_.header_line = records_[header].line;
      header_fields_ = records_[header].fields;
    }
    if (units < records_.size()) units_fields_ = records_[units].fields;
    bool unmarked = false;
    std::size_t preamble = 0;
    for (std::size_t i = 0; i < data; ++i) {
      const SampleRecord& record = records_[i];
      if (head_.header_line == record.line) continue;
      for (std::size_t l = 0; l < record.lines; ++l) head_.skipped.push_back(record.line + l);
      const bool sep = sep_line(record.text).has_value();
      if (i == units || sep || record.comment || (head_.header_line && record.line > *head_.header_line)) continue;
      preamble += record.lines;
      unmarked = unmarked || !record.blank;
    }
    head_.preamble = unmarked ? preamble : 0;
    if (data < records_.size()) {
      head_.data_line = records_[data].line;
    } else if (!records_.empty()) {
      head_.data_line = records_.back().line + records_.back().lines;
    }
  }

  // "# time temp hum" above the data, as plotting programs write it.
  void adopt_commented_header(std::size_t first) {
    if (first == 0 || first >= records_.size()) return;
    const SampleRecord& record = records_[first - 1];
    if (!record.comment || options_.header == "no") return;
    std::vector<std::string_view> fields;
    std::vector<std::string> unquoted;
    const std::string_view text = trimmed(std::string_view(record.text).substr(record.text.find_first_not_of("#/")));
    split_fields(text, head_.delimiter, fields, unquoted);
    if (fields.size() != head_.fields) return;
    head_.header_line = record.line;
    header_fields_.assign(fields.begin(), fields.end());
  }

  void name_columns() {
    head_.names.assign(head_.fields, "");
    head_.units.assign(head_.fields, "");
    std::size_t shift = 0;
    if (head_.header_line && header_fields_.size() + 1 == head_.fields) {
      // Either the rows end with a delimiter, or their first column has no name.
      shift = columns_.back().present == 0 ? 0 : 1;
      head_.row_names = shift == 1;
    }
    for (std::size_t c = 0; c < header_fields_.size() && c + shift < head_.fields; ++c) head_.names[c + shift] = header_fields_[c];
    for (std::size_t c = 0; c < head_.fields; ++c) {
      head_.units[c] = unit_in_name(head_.names[c]);
      if (c < units_fields_.size() && !units_fields_[c].empty()) head_.units[c] = without_brackets(units_fields_[c]);
    }
    head_.last_empty = head_.fields > 1 && head_.header_line && head_.names.back().empty() && columns_.back().present == 0;
  }

  Result<std::size_t> column_named(const std::string& wanted, std::string_view option) const {
    const auto found = std::find(head_.names.begin(), head_.names.end(), wanted);
    if (found != head_.names.end()) return static_cast<std::size_t>(found - head_.names.begin());
    std::size_t index = 0;
    const auto [rest, fault] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), index);
    if (fault == std::errc{} && rest == wanted.data() + wanted.size() && index < head_.fields) return index;
    std::string hint = did_you_mean(wanted, head_.names);
    if (hint.empty()) hint = fmt::format("The columns are: {}.", fmt::join(head_.names, ", "));
    return fail({Fault::kBadUse, fmt::format("there is no column '{}'", wanted), std::string(option),
                 "the name of a column, or its number from 0", hint});
  }

  // Cells of a column in the records that are data.
  std::vector<std::string_view> cells(std::size_t c) const {
    std::vector<std::string_view> out;
    for (const auto& record : records_) {
      if (record.line >= head_.data_line && full(record) && !is_missing_word(record.fields[c])) out.push_back(record.fields[c]);
    }
    return out;
  }

  Result<void> find_time() {
    if (options_.time_column == "none") return {};
    if (!options_.time_column.empty()) {
      const auto at = column_named(options_.time_column, "--time-column");
      if (!at) return fail(at.error());
      if (!take_stamp(*at) && !take_number(*at, true)) {
        const auto some = cells(*at);
        return fail({Fault::kBadInput, "this column holds no times", fmt::format("column '{}'", options_.time_column),
                     "dates, times or numbers of seconds",
                     some.empty() ? "The column is empty." : fmt::format("Its first cell is '{}'.", some.front())});
      }
      return {};
    }
    std::vector<std::size_t> order;  // columns whose name says time first
    for (std::size_t c = 0; c < head_.fields; ++c) {
      if (is_time_name(head_.names[c])) order.push_back(c);
    }
    for (const std::size_t c : order) {
      if (take_stamp(c) || take_number(c, true)) return {};
    }
    for (std::size_t c = 0; c < head_.fields; ++c) {
      if (columns_[c].is_stamp() && take_stamp(c)) return {};
    }
    if (take_number(0, false)) return {};
    return {};
  }

  bool take_stamp(std::size_t c) {
    std::map<StampShape, std::size_t> shapes;
    std::map<StampShape, Stamp> usual;
    std::size_t present = 0;
    for (const auto cell : cells(c)) {
      ++present;
      const auto stamp = scan_stamp(cell);
      if (!stamp) continue;
      const bool needs_date = stamp->shape == StampShape::kCompact || stamp->shape == StampShape::kYear;
      if (needs_date && (!stamp->wall_ns(DateOrder::kYearFirst) || stamp->year < 1500 || stamp->year > 2200)) continue;
      ++shapes[stamp->shape];
      Stamp& kept = usual.try_emplace(stamp->shape, *stamp).first->second;
      kept.has_time = kept.has_time || stamp->has_time;
      kept.has_seconds = kept.has_seconds || stamp->has_seconds;
    }
    const auto most = std::max_element(shapes.begin(), shapes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == shapes.end() || 2 * most->second < present) return false;
    // Plain numbers are dates only where every one of them is.
    if ((most->first == StampShape::kCompact || most->first == StampShape::kYear) && most->second < present) return false;
    head_.time = TimeKind::kStamp;
    head_.stamp = usual[most->first];
    head_.time_at = {c};
    if (most->first == StampShape::kTimeOfDay || !head_.stamp.has_time) join_date_and_clock(c);
    note_zone(c);
    return true;
  }

  // A column of dates beside one of times of day is one time.
  void join_date_and_clock(std::size_t c) {
    const bool clock = head_.stamp.shape == StampShape::kTimeOfDay;
    for (const std::size_t other : {c + 1, c == 0 ? head_.fields : c - 1}) {
      if (other >= head_.fields) continue;
      const ColumnVotes& votes = columns_[other];
      if (votes.present == 0 || 2 * (clock ? votes.dates : votes.clocks) < votes.present) continue;
      const auto date = cells(clock ? other : c), time = cells(clock ? c : other);
      if (date.empty() || time.empty()) continue;
      std::string both(date.front());
      const auto stamp = scan_stamp(both.append(" ").append(time.front()));
      if (!stamp) continue;
      head_.stamp = *stamp;
      head_.time_at = clock ? std::vector<std::size_t>{other, c} : std::vector<std::size_t>{c, other};
      return;
    }
  }

  void note_zone(std::size_t c) {
    const std::string inside = unit_in_name(head_.names[c]);
    if (inside == "UTC" || inside == "utc" || inside == "GMT" || inside == "Z") head_.header_zone = "UTC";
    if (const auto sign = inside.find_first_of("+-");
        sign != std::string::npos && (inside.starts_with("UTC") || inside.starts_with("GMT"))) {
      const auto stamp = scan_stamp(std::string("2000-01-01T00:00").append(inside.substr(sign)));
      if (stamp && stamp->offset_min) {
        const int size = std::abs(*stamp->offset_min);
        head_.header_zone = fmt::format("{}{:02}:{:02}", *stamp->offset_min < 0 ? '-' : '+', size / 60, size % 60);
      }
    }
  }

  // Numbers as time: since 1970 by magnitude, or since the start of the recording. Without a name only rising numbers of an epoch's size.
  bool take_number(std::size_t c, bool named) {
    std::vector<double> values;
    const auto some = cells(c);
    for (const auto cell : some) {
      auto value = parse_number(cell, kStyles[0]);
      if (!value) value = parse_number(cell, kStyles[1]);
      if (value) values.push_back(*value);
    }
    if (values.empty() || 2 * values.size() < some.size()) return false;
    std::vector<double> sizes = values;
    for (double& size : sizes) size = std::abs(size);
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
    const double size = sizes[sizes.size() / 2];
    const std::string& unit = options_.time_unit;
    const double hinted = unit_hint(head_.names[c]);
    if (unit == "seconds" || (unit == "auto" && size < 1e8)) {
      if (!named) return false;
      head_.time = TimeKind::kRelative;
      head_.unit_ns = hinted > 0 ? static_cast<std::int64_t>(hinted * 1e9) : 1'000'000'000;
    } else {
      if (!named && (size < 5e8 || !std::is_sorted(values.begin(), values.end()) || values.front() == values.back())) return false;
      head_.time = TimeKind::kEpoch;
      // Below 1e11 seconds, 1e14 milliseconds, 1e16 microseconds, else nanoseconds.
      head_.unit_ns = size < 1e11 ? 1'000'000'000 : size < 1e14 ? 1'000'000 : size < 1e16 ? 1'000 : 1;
      if (unit == "epoch_s") head_.unit_ns = 1'000'000'000;
      if (unit == "epoch_ms") head_.unit_ns = 1'000'000;
      if (unit == "epoch_us") head_.unit_ns = 1'000;
      if (unit == "epoch_ns") head_.unit_ns = 1;
    }
    head_.time_at = {c};
    return true;
  }

  Result<void> find_id() {
    if (options_.id_column == "none") return {};
    if (!options_.id_column.empty()) {
      const auto at = column_named(options_.id_column, "--id-column");
      if (!at) return fail(at.error());
      head_.id_at = *at;
      return {};
    }
    for (std::size_t c = 0; c < head_.fields; ++c) {
      if (!is_id_name(head_.names[c]) || std::find(head_.time_at.begin(), head_.time_at.end(), c) != head_.time_at.end()) continue;
      // A name that stands in every row once is a row number, and one with fractions a measurement, not a series.
      const auto some = cells(c);
      const std::set<std::string_view> distinct(some.begin(), some.end());
      if (some.size() > 3 && distinct.size() * 10 > some.size() * 9) continue;
      if (columns_[c].is_number() && std::any_of(some.begin(), some.end(), [](auto cell) { return cell.find_first_of(".,") != cell.npos; }))
        continue;
      if (distinct.size() < 2 && !is_series_name(head_.names[c])) continue;
      head_.id_at = c;
      return {};
    }
    return {};
  }

  std::vector<SampleRecord> records_;
  const CsvOptions& options_;
  CsvHead& head_;
  std::vector<ColumnVotes> columns_;  // (fields)
  std::vector<std::string> header_fields_, units_fields_;
};

}  // namespace

bool is_comment(std::string_view text) {
  text = trimmed(text);
  return (text.starts_with('#') && !text.starts_with("#N/A")) || text.starts_with("//");
}

Result<CsvHead> examine_head(std::string_view text, bool whole, const CsvOptions& options) {
  CsvHead head;
  head.newline = guess_newline(text);
  const auto delimiter = find_delimiter(text, whole, head.newline, options);
  if (!delimiter) return fail(delimiter.error());
  head.delimiter = *delimiter;
  if (auto done = HeadReader(split_sample(text, whole, head.delimiter, head.newline), options, head).examine(); !done)
    return fail(done.error());
  return head;
}

}  // namespace kizzasi::io
