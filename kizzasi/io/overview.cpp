#include "kizzasi/io/overview.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kizzasi::io {
namespace {

constexpr std::size_t kPieceRows = std::size_t{1} << 14U;

void add_rows(const Table& rows, std::vector<ChannelFacts>& channels) {
  const std::size_t width = rows.columns.size();
  channels.resize(width);
  for (std::size_t i = 0; i < rows.values.size(); ++i) channels[i % width].add(rows.values[i]);
}

template <typename T>
void drop_first(std::vector<T>& values, std::size_t count) {
  values.erase(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(std::min(count, values.size())));
}

void keep_last(Table& table, std::size_t rows) {
  if (table.rows() <= rows) return;
  const std::size_t surplus = table.rows() - rows;
  drop_first(table.time_ns, surplus);
  drop_first(table.series, surplus);
  drop_first(table.values, surplus * table.columns.size());
}

template <typename T>
void append(std::vector<T>& values, const std::vector<T>& more) {
  values.insert(values.end(), more.begin(), more.end());
}

Result<Overview> in_pieces(const std::string& path, const CsvOptions& options, CsvReport& report, std::size_t most_values) {
  auto source = open_source(path);
  if (!source) return fail(source.error());
  auto reader = CsvReader::open(std::move(*source), options, report);
  if (!reader) return fail(reader.error());
  Overview all;
  Table piece;
  while (true) {
    const auto more = reader->next(piece, kPieceRows);
    if (!more) return fail(more.error());
    if (!*more) break;
    add_rows(piece, all.channels);
    all.rows += piece.rows();
    if (all.latest.rows() == 0) {
      all.latest = std::move(piece);
    } else {
      append(all.latest.time_ns, piece.time_ns);
      append(all.latest.series, piece.series);
      append(all.latest.values, piece.values);
    }
    // Twice the rows that stay, so that dropping costs nothing beside reading.
    const std::size_t kept = std::max<std::size_t>(1, most_values / std::max<std::size_t>(1, all.latest.columns.size()));
    if (all.latest.rows() > 2 * kept) keep_last(all.latest, kept);
  }
  if (all.latest.values.size() > most_values) {
    keep_last(all.latest, std::max<std::size_t>(1, most_values / all.latest.columns.size()));
  }
  // What only the last piece knows.
  all.latest.zone = std::move(piece.zone);
  all.latest.ids = std::move(piece.ids);
  if (all.latest.columns.empty()) all.latest.columns = std::move(piece.columns);
  return all;
}

}  // namespace

void ChannelFacts::add(double value) {
  if (std::isnan(value)) {
    ++missing;
    return;
  }
  ++present;
  low = std::min(low, value);
  high = std::max(high, value);
  mean += (value - mean) / static_cast<double>(present);
  whole = whole && value == std::floor(value);
}

Result<Overview> read_overview(const std::string& path, const CsvOptions& options, RecordingReport& report, std::size_t most_values) {
  report = {};
  auto format = recording_format(path);
  if (!format) return fail(format.error());
  if (*format == "csv") {
    report.format = std::move(*format);
    report.csv.emplace();
    return in_pieces(path, options, *report.csv, most_values);
  }
  auto table = read_recording(path, options, report);
  if (!table) return fail(table.error());
  Overview all;
  all.rows = table->rows();
  add_rows(*table, all.channels);
  all.latest = std::move(*table);
  return all;
}

}  // namespace kizzasi::io
