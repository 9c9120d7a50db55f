#include "kizzasi/io/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <unordered_map>

#include "kizzasi/io/csv_head.h"
#include "kizzasi/io/csv_survey.h"
#include "kizzasi/io/csv_warnings.h"
#include "kizzasi/io/zone.h"

namespace kizzasi::io {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kHeadBytes = std::size_t{1} << 20U;
constexpr std::size_t kShownCells = 1000;
constexpr std::int64_t kDay = 86'400'000'000'000;

// A cell as a message shows it.
std::string shown(std::string_view text) {
  if (text.size() <= 60) return std::string(text);
  std::size_t cut = 57;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
  return std::string(text.substr(0, cut)).append("...");
}

// A kind of file by its first bytes, where that is no text.
const char* foreign_format(std::string_view head) {
  constexpr std::array<std::pair<std::string_view, const char*>, 10> kMagics{
      {{"\x1F\x8B", "a gzip file: unpack it first (gunzip)"},
       {"PK\x03\x04", "a zip or spreadsheet file: save it as CSV first"},
       {"\x89PNG", "a picture"},
       {"PAR1", "a Parquet file"},
       {"\x89HDF", "an HDF5 file"},
       {"RIFF", "a RIFF file, such as WAV"},
       {"%PDF", "a PDF file"},
       {"\x93NUMPY", "a NumPy file"},
       {"\xD0\xCF\x11\xE0", "an old spreadsheet: save it as CSV first"},
       {"SQLite format 3", "an SQLite database"}}};
  for (const auto& [magic, name] : kMagics) {
    if (head.starts_with(magic)) return name;
  }
  return nullptr;
}

struct OffsetVotes {
  std::size_t none = 0, utc = 0;
  std::map<int, std::size_t> fixed;
};

std::string offset_text(int minutes) {
  const int size = std::abs(minutes);
  return fmt::format("{}{:02}:{:02}", minutes < 0 ? '-' : '+', size / 60, size % 60);
}

}  // namespace

struct CsvReader::State {
  std::unique_ptr<ByteSource> source;
  CsvOptions options;
  CsvReport* report = nullptr;
  CsvHead head;
  std::size_t survey_rows = 0;
  DateOrder order = DateOrder::kYearFirst;
  OrderReason order_reason = OrderReason::kSettled;
  MissingCells missing{CsvOptions{}};
  std::optional<Zone> zone;
  std::unique_ptr<RecordReader> records;
  bool done = false;

  struct Column {
    std::size_t at = 0;      // field
    std::size_t report = 0;  // in report->columns
    ColumnFacts facts;
  };
  std::vector<Column> channels, texts;
  std::vector<std::string> names;  // (fields) final names

  struct Track {
    std::vector<std::int64_t> times;
    std::vector<std::pair<std::size_t, std::size_t>> lines;  // row and line wherever a line does not follow the one above
    std::size_t rows = 0;
    std::int64_t clock_days_ns = 0;  // of times of day, which begin again at midnight
    std::optional<WallClock> clock;

    void note_line(std::size_t line) {
      const std::size_t row = times.size() - 1;
      if (lines.empty() || line != lines.back().second + (row - lines.back().first)) lines.emplace_back(row, line);
    }
    std::size_t line_of(std::size_t row) const {
      const auto after = std::upper_bound(lines.begin(), lines.end(), row, [](std::size_t r, const auto& at) { return r < at.first; });
      return std::prev(after)->second + (row - std::prev(after)->first);
    }
  };
  std::vector<Track> tracks;
  std::unordered_map<std::string, std::size_t> ids;
  OffsetVotes offsets;
  std::size_t remarks = 0, set_aside = 0;

  Result<void> open();
  Result<void> look(Encoding encoding);
  void name_columns();
  void type_columns(const CsvSurvey& survey);
  Result<bool> row(const Record& record, Table& piece, std::vector<TextColumn>* text_cells);
  Result<std::int64_t> time_of(const Record& record, Track& track);
  Result<void> cells_of(const Record& record, Table& piece, std::vector<TextColumn>* text_cells);
  void finish();

  tl::unexpected<Error> refuse(CsvRefusal refusal, std::string what, std::string expected, std::string hint) const {
    std::string where = source->name();
    if (refusal.line) where = fmt::format("{}:{}", where, *refusal.line);
    if (!refusal.column.empty()) where = fmt::format("{}, column '{}'", where, refusal.column);
    report->refusal = std::move(refusal);
    return fail({Fault::kBadInput, std::move(what), std::move(where), std::move(expected), std::move(hint)});
  }
};

Result<void> CsvReader::State::look(Encoding encoding) {
  report->encoding = encoding;
  if (auto again = source->rewind(); !again) return again;
  std::string text;
  Utf8Reader reader(*source, encoding);
  bool whole = false;
  while (text.size() < kHeadBytes && !whole) {
    const auto more = reader.append(text);
    if (!more) return fail(more.error());
    whole = !*more;
  }
  if (trimmed(text).empty() || text.find_first_not_of(" \t\r\n") == std::string::npos) {
    return refuse({.kind = "empty_file"}, "the file is empty", "rows of numbers", "Check that the recording was written.");
  }
  auto found = examine_head(text, whole, options);
  if (!found) return fail(found.error());
  head = std::move(*found);
  return {};
}

Result<void> CsvReader::State::open() {
  if (auto good = check_fields(options); !good) return good;
  missing = MissingCells(options);
  std::vector<char> block(4096);
  const auto got = source->read(block);
  if (!got) return fail(got.error());
  const std::string_view first(block.data(), *got);
  if (const char* format = foreign_format(first)) {
    return refuse({.kind = "not_text"}, fmt::format("this is {}", format), "a text file with rows of numbers", "Name a CSV file.");
  }
  Encoding encoding = guess_encoding(first);
  const bool named = options.encoding != "auto";
  if (options.encoding == "windows-1252") encoding = Encoding::kWindows1252;
  if (options.encoding == "utf-16-le") encoding = Encoding::kUtf16Le;
  if (options.encoding == "utf-16-be") encoding = Encoding::kUtf16Be;
  if (options.encoding == "utf-8" && encoding != Encoding::kUtf8Bom) encoding = Encoding::kUtf8;
  if (auto seen = look(encoding); !seen) return seen;
  auto facts = survey(*source, encoding, head, options);
  if (!facts) return fail(facts.error());
  if (facts->invalid_text) {
    if (named) {
      return refuse({.kind = "not_text"}, "the text is not valid UTF-8", "the encoding that was named",
                    "Leave --encoding out, or try windows-1252.");
    }
    encoding = Encoding::kWindows1252;
    if (auto seen = look(encoding); !seen) return seen;
    facts = survey(*source, encoding, head, options);
    if (!facts) return fail(facts.error());
  }
  survey_rows = facts->rows;

  report->delimiter = head.delimiter;
  report->newline = head.newline;
  report->header_line = head.header_line;
  report->skipped_lines = head.skipped;
  report->numbers = choose_style(*facts, head, options);
  const OrderChoice choice = choose_order(*facts, head, options);
  order = choice.order;
  order_reason = choice.reason;

  auto& warnings = report->warnings;
  if (!head.header_line) warnings.emplace_back("no_header");
  if (head.preamble > 0) warnings.push_back(fmt::format("preamble_skipped:{}", head.preamble));
  if (encoding == Encoding::kWindows1252 && !named) warnings.emplace_back("encoding_guessed:windows-1252");
  name_columns();
  type_columns(*facts);
  if (!options.zone.empty() || !head.header_zone.empty()) {
    auto opened = Zone::open(options.zone.empty() ? head.header_zone : options.zone);
    if (!opened) return fail(opened.error());
    zone = std::move(*opened);
  }
  if (auto again = source->rewind(); !again) return again;
  records = std::make_unique<RecordReader>(Utf8Reader(*source, encoding), head.delimiter, head.newline);
  return {};
}

void CsvReader::State::name_columns() {
  names = head.names;
  std::map<std::string, std::size_t> seen;
  std::vector<std::string> repeated;
  for (std::size_t c = 0; c < names.size(); ++c) {
    if (names[c].empty()) names[c] = fmt::format("c{}", c);
    const std::string wanted = names[c];
    const std::size_t times = seen[wanted]++;
    if (times == 0) continue;
    if (times == 1) repeated.push_back(wanted);
    for (std::size_t i = times;; ++i) {
      names[c] = fmt::format("{}.{}", wanted, i);
      if (!seen.contains(names[c])) break;
    }
    ++seen[names[c]];
  }
  auto& warnings = report->warnings;
  for (const std::size_t at : head.time_at) {
    // "time" above a stamp with a blank in a file of blanks: the date stands before its name.
    if (head.time_at.size() == 2 && head.row_names && at == 0) continue;
    report->time_columns.push_back(names[at]);
    if (head.names[at].empty()) report->time_index = at;
  }
  if (head.id_at) report->id_column = names[*head.id_at];
  switch (head.time) {
    case TimeKind::kNone:
      warnings.emplace_back("no_time_column");
      break;
    case TimeKind::kStamp:
      report->time_format = format_name(head.stamp, order);
      report->date_only = !head.stamp.has_time;
      report->relative = head.stamp.shape == StampShape::kTimeOfDay;
      break;
    case TimeKind::kEpoch:
      report->time_format = head.unit_ns == 1           ? "epoch_ns"
                            : head.unit_ns == 1'000     ? "epoch_us"
                            : head.unit_ns == 1'000'000 ? "epoch_ms"
                                                        : "epoch_s";
      if (options.time_unit == "auto") warnings.push_back(fmt::format("epoch_unit_guessed:{}", report->time_format));
      break;
    case TimeKind::kRelative:
      report->time_format = head.unit_ns == 1           ? "nanoseconds"
                            : head.unit_ns == 1'000     ? "microseconds"
                            : head.unit_ns == 1'000'000 ? "milliseconds"
                                                        : "seconds";
      report->relative = true;
      break;
  }
  if (order_reason == OrderReason::kInferred) warnings.emplace_back("date_order_inferred");
  if (order_reason == OrderReason::kAmbiguous) warnings.emplace_back("date_order_ambiguous");
  if (head.last_empty) warnings.emplace_back("empty_last_column_dropped");
  for (const auto& name : repeated) warnings.push_back(fmt::format("duplicate_name:{}", name));
}

void CsvReader::State::type_columns(const CsvSurvey& survey_facts) {
  std::size_t style = 0;
  while (style + 1 < kStyleCount &&
         (kStyles[style].decimal != report->numbers.decimal || kStyles[style].thousands != report->numbers.thousands))
    ++style;
  for (std::size_t c = 0; c < head.fields; ++c) {
    const bool is_time = std::find(head.time_at.begin(), head.time_at.end(), c) != head.time_at.end();
    if (is_time || c == head.id_at || (head.last_empty && c + 1 == head.fields)) continue;
    const ColumnSurvey& facts = survey_facts.columns[c];
    CsvColumn column{names[c], head.units[c]};
    const bool all_bool = facts.present > 0 && std::find(facts.bools.begin(), facts.bools.end(), facts.present) != facts.bools.end();
    // More than half of the cells make a column of numbers; the rest are then errors, not text.
    column.type = all_bool                                                         ? CellType::kBool
                  : 2 * facts.numbers[style] > facts.present || facts.present == 0 ? CellType::kNumber
                                                                                   : CellType::kText;
    if (column.type == CellType::kNumber && column.unit.empty() && facts.percent > 0 && facts.percent == facts.present) column.unit = "%";
    (column.type == CellType::kText ? texts : channels).push_back({c, report->columns.size(), {}});
    report->columns.push_back(std::move(column));
  }
}

Result<std::int64_t> CsvReader::State::time_of(const Record& record, Track& track) {
  std::string both;
  std::string_view cell = record.fields[head.time_at.front()];
  if (head.time_at.size() == 2) {
    both.append(cell).append(" ").append(record.fields[head.time_at.back()]);
    cell = both;
  }
  const auto bad = [&](std::string what, std::string hint) {
    return refuse({.kind = "bad_time", .line = record.line, .column = names[head.time_at.front()], .text = std::string(cell)},
                  std::move(what), fmt::format("a time as in the other rows ({})", report->time_format), std::move(hint));
  };
  constexpr const char* kWayOut = "Correct the line, or set bad lines aside with --lenient.";
  if (head.time != TimeKind::kStamp) {
    auto time = scaled_ns(cell, head.unit_ns, '.');
    if (!time && report->numbers.decimal == ',') time = scaled_ns(cell, head.unit_ns, ',');
    if (!time) return bad(fmt::format("'{}' is no number of time", shown(cell)), kWayOut);
    return *time;
  }
  const auto stamp = scan_stamp(cell);
  const bool plain_date =
      stamp && (stamp->shape == StampShape::kCompact || stamp->shape == StampShape::kYear || stamp->shape == StampShape::kYearMonth);
  if (!stamp || (stamp->shape != head.stamp.shape && (plain_date || head.stamp.shape == StampShape::kShort ||
                                                      stamp->shape == StampShape::kShort || stamp->shape == StampShape::kTimeOfDay))) {
    return bad(fmt::format("'{}' is no time", shown(cell)), kWayOut);
  }
  const auto wall = stamp->wall_ns(order);
  if (!wall) return bad(fmt::format("'{}' is no date that exists", shown(cell)), kWayOut);
  if (stamp->shape == StampShape::kTimeOfDay) {
    std::int64_t time = *wall + track.clock_days_ns;
    if (!track.times.empty() && time < track.times.back() - kDay / 2) {
      track.clock_days_ns += kDay;
      time += kDay;
    }
    return time;
  }
  if (stamp->offset_min) {
    if (offsets.none > 0 && !zone)
      return bad("this stamp names a zone, and those above name none", "Name the zone of the others with --zone.");
    *stamp->offset_min == 0 ? ++offsets.utc : ++offsets.fixed[*stamp->offset_min];
    return *wall - *stamp->offset_min * std::int64_t{60'000'000'000};
  }
  if (offsets.utc + offsets.fixed.size() > 0 && !zone)
    return bad("this stamp names no zone, and those above do", "Name its zone with --zone.");
  ++offsets.none;
  if (!zone) return *wall;
  if (!track.clock) track.clock.emplace(*zone);
  return track.clock->utc_ns(*wall);
}

Result<void> CsvReader::State::cells_of(const Record& record, Table& piece, std::vector<TextColumn>* text_cells) {
  const std::size_t base = piece.values.size();
  const auto cell_at = [&](std::size_t at) { return at < record.fields.size() ? record.fields[at] : std::string_view{}; };
  piece.values.resize(base + channels.size(), kNaN);
  // First whether all are good, so that a line that is set aside leaves no trace in the counts.
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const Column& channel = channels[i];
    const std::string_view cell = cell_at(channel.at);
    if (missing.is_word(cell)) continue;
    if (report->columns[channel.report].type == CellType::kBool) {
      piece.values[base + i] = bool_word(cell)->value ? 1 : 0;
      continue;
    }
    const auto value = parse_number(cell, report->numbers);
    if (!value) {
      piece.values.resize(base);
      const bool other_mark = number_styles(cell) != 0;
      return refuse(
          {.kind = "not_a_number", .line = record.line, .column = names[channel.at], .text = std::string(cell)},
          fmt::format("'{}' is no number{}", shown(cell), other_mark ? fmt::format(" with decimal '{}'", report->numbers.decimal) : ""),
          "a number, or an empty cell for no value",
          other_mark ? "Say which mark stands before the fraction with --decimal point or --decimal comma."
                     : fmt::format("Correct it, name it as missing with --missing-words '{}', or set bad lines aside with --lenient.",
                                   shown(cell)));
    }
    piece.values[base + i] = *value;
  }
  for (std::size_t i = 0; i < channels.size(); ++i) {
    Column& channel = channels[i];
    CsvColumn& column = report->columns[channel.report];
    double& value = piece.values[base + i];
    const std::string_view cell = cell_at(channel.at);
    if (std::isnan(value) || missing.is_sentinel(value)) {
      value = kNaN;
      ++column.missing;
    } else if (std::isinf(value)) {
      if (!options.keep_infinite) value = kNaN;
      ++report->not_finite_cells;
      if (report->not_finite.size() < kShownCells) report->not_finite.push_back({record.line, column.name, std::string(cell)});
    } else {
      channel.facts.add(value, loses_precision(cell, report->numbers));
    }
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view cell = cell_at(texts[i].at);
    report->columns[texts[i].report].missing += missing.is_word(cell) ? 1 : 0;
    if (text_cells) (*text_cells)[i].cells.emplace_back(cell);
  }
  return {};
}

// One data record into the piece. False: the line was set aside.
Result<bool> CsvReader::State::row(const Record& record, Table& piece, std::vector<TextColumn>* text_cells) {
  std::size_t which = 0;
  if (head.id_at) {
    const std::string id(record.fields[*head.id_at]);
    const auto [place, added] = ids.try_emplace(id, tracks.size());
    which = place->second;
    if (added) {
      tracks.emplace_back();
      report->series.push_back({id, {}});
    }
  } else if (tracks.empty()) {
    tracks.emplace_back();
    if (head.time != TimeKind::kNone) tracks.back().times.reserve(survey_rows);
    report->series.emplace_back();
  }
  Track& track = tracks[which];
  std::int64_t time = 0;
  if (head.time != TimeKind::kNone) {
    const auto read = time_of(record, track);
    if (!read) return fail(read.error());
    time = *read;
  }
  if (auto good = cells_of(record, piece, text_cells); !good) return fail(good.error());
  if (head.time != TimeKind::kNone) {
    piece.time_ns.push_back(time);
    track.times.push_back(time);
    track.note_line(record.line);
  }
  if (head.id_at) piece.series.push_back(static_cast<std::int32_t>(which));
  ++track.rows;
  ++report->rows;
  return true;
}

void CsvReader::State::finish() {
  done = true;
  if (head.time == TimeKind::kStamp && head.stamp.shape != StampShape::kTimeOfDay) {
    if (offsets.utc + offsets.fixed.size() == 0) {
      report->zone = zone ? zone->name() : "";
    } else if (offsets.fixed.empty()) {
      report->zone = "UTC";
    } else if (offsets.utc == 0 && offsets.fixed.size() == 1) {
      report->zone = offset_text(offsets.fixed.begin()->first);
    } else {
      report->zone = "mixed";
    }
  } else if (head.time == TimeKind::kEpoch) {
    report->zone = "UTC";
  }
  AxisFindings findings;
  findings.timed = head.time != TimeKind::kNone;
  findings.clocks = head.time == TimeKind::kStamp && head.stamp.has_time && report->zone.empty();
  for (std::size_t s = 0; s < tracks.size(); ++s) {
    Track& track = tracks[s];
    TimeAxis& axis = report->series[s].axis;
    axis = examine_times(track.times);
    axis.rows = track.rows;
    if (axis.duplicates > 0) {
      const std::size_t line = track.line_of(axis.first_duplicate);
      report->first_duplicate_line = std::min(report->first_duplicate_line.value_or(line), line);
    }
    for (const std::size_t bad : axis.implausible) report->implausible.emplace_back(track.line_of(bad), track.times[bad]);
    if (track.clock) findings.nonexistent += track.clock->nonexistent();
    if (findings.clocks) findings.clock_change = findings.clock_change || clocks_change(track.times, axis);
  }
  std::sort(report->implausible.begin(), report->implausible.end());
  findings.remarks = remarks;
  findings.set_aside = set_aside;
  std::vector<const ColumnFacts*> facts(report->columns.size(), nullptr);
  for (Column& channel : channels) {
    report->columns[channel.report].constant = channel.facts.constant();
    facts[channel.report] = &channel.facts;
  }
  add_warnings(*report, facts, findings);
}

CsvReader::CsvReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader& CsvReader::operator=(CsvReader&&) noexcept = default;
CsvReader::~CsvReader() = default;

Result<CsvReader> CsvReader::open(std::unique_ptr<ByteSource> source, const CsvOptions& options, CsvReport& report) {
  report = {};
  auto state = std::make_unique<State>();
  state->source = std::move(source);
  state->options = options;
  state->report = &report;
  if (auto good = state->open(); !good) return fail(good.error());
  return CsvReader(std::move(state));
}

Result<bool> CsvReader::next(Table& piece, std::size_t rows, std::vector<TextColumn>* texts) {
  State& s = *state_;
  CsvReport& report = *s.report;
  piece = {};
  piece.source = s.source->name();
  for (const auto& channel : s.channels)
    piece.columns.push_back({report.columns[channel.report].name, report.columns[channel.report].unit});
  if (texts) {
    texts->clear();
    for (const auto& column : s.texts) texts->push_back({report.columns[column.report].name, {}});
  }
  std::size_t taken = 0;
  Record record;
  while (!s.done && taken < rows) {
    const auto more = s.records->next(record);
    if (!more) return fail(more.error());
    if (!*more) {
      if (report.rows == 0) {
        const std::size_t line = s.head.header_line.value_or(1);
        return s.refuse({.kind = "no_rows", .line = line}, "the file has no row of data", "rows of numbers below the header",
                        "Check that the recording was written.");
      }
      s.finish();
      break;
    }
    if (record.line < s.head.data_line) continue;
    RecordKind kind = kind_of(record, s.head, s.options.strict);
    Result<bool> read = true;
    if (record.has_nul) {
      read = s.refuse({.kind = "nul_byte", .line = record.line}, "a NUL byte stands in this line", "text",
                      "The file is damaged, or no text; set such lines aside with --lenient.");
    } else if (record.too_long || record.open_quote) {
      return s.refuse({.kind = record.too_long ? "record_too_long" : "open_quote", .line = record.line},
                      record.too_long ? "this record is longer than 64 MiB" : "a quote that is opened here is never closed",
                      "closed quotes", "Close the quote, or take it away.");
    } else if (kind == RecordKind::kFieldCount) {
      read = s.refuse({.kind = "field_count", .line = record.line, .expected_fields = s.head.fields, .found_fields = record.fields.size()},
                      fmt::format("this line has {} fields", record.fields.size()), fmt::format("{} fields", s.head.fields),
                      "Correct the line, or set bad lines aside with --lenient.");
    } else if (kind == RecordKind::kData) {
      read = s.row(record, piece, texts);
      taken += read ? 1 : 0;
    } else {
      s.remarks += kind == RecordKind::kRemark ? 1 : 0;
      read = false;
    }
    if (!read) {
      if (!s.options.lenient) return fail(read.error());
      report.refusal.reset();
      ++s.set_aside;
    }
    if (!read || !*read) {
      for (std::size_t l = 0; l < record.lines; ++l) report.skipped_lines.push_back(record.line + l);
    }
  }
  for (const auto& series : report.series) {
    if (s.head.id_at) piece.ids.push_back(series.id);
  }
  piece.zone = report.zone;
  return taken > 0;
}

Result<Table> read_csv(std::unique_ptr<ByteSource> source, const CsvOptions& options, CsvReport& report, std::vector<TextColumn>* texts) {
  auto reader = CsvReader::open(std::move(source), options, report);
  if (!reader) return fail(reader.error());
  Table table;
  if (auto read = reader->next(table, std::numeric_limits<std::size_t>::max(), texts); !read) return fail(read.error());
  return table;
}

Result<Table> read_csv(const std::string& path, const CsvOptions& options, CsvReport& report) {
  report = {};
  auto source = open_source(path);
  if (!source) return fail(source.error());
  return read_csv(std::move(*source), options, report);
}

}  // namespace kizzasi::io
