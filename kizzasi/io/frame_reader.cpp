#include "kizzasi/io/frame_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/base/json.h"
#include "kizzasi/base/suggest.h"
#include "kizzasi/io/csv_names.h"
#include "kizzasi/io/csv_records.h"

namespace kizzasi::io {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kMostNs = 9.2e18;

std::string shown(std::string_view text) { return text.size() <= 60 ? std::string(text) : std::string(text.substr(0, 57)).append("..."); }

// Seconds, or an epoch in s, ms, us, ns by its size.
std::int64_t unit_of(double size) { return size < 1e11 ? 1'000'000'000 : size < 1e14 ? 1'000'000 : size < 1e16 ? 1'000 : 1; }

}  // namespace

Result<std::vector<std::string>> channels_of_first_line(std::string_view line) {
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const std::string_view body = trimmed(line);
  const auto bad = [&] {
    return fail({Fault::kBadInput, fmt::format("'{}' names no channel", shown(body)), "line 1",
                 "a CSV header, or JSON objects such as {\"level\": 2.5}", "The first line says which value belongs to which channel."});
  };
  std::vector<std::string> names;
  if (body.starts_with('{')) {
    auto json = Json::parse(body, "line 1");
    if (!json) return fail(json.error());
    for (const auto& [key, value] : json->members()) {
      if (value.is_array()) return bad();
      if (!is_time_name(key)) names.push_back(key);
    }
    if (names.empty()) return bad();
    return names;
  }
  for (const char delimiter : {',', ';', '\t', '|', ' '}) {
    std::vector<std::string_view> fields;
    std::vector<std::string> unquoted;
    split_fields(body, delimiter, fields, unquoted);
    if (fields.size() < 2 && delimiter != ' ') continue;
    bool timed = false;
    for (const std::string_view cell : fields) {
      if (cell.empty() || is_missing_word(cell) || number_styles(cell) != 0 || scan_stamp(cell).has_value()) return bad();
      if (!timed && is_time_name(cell)) {
        timed = true;
      } else {
        names.emplace_back(cell);
      }
    }
    break;
  }
  if (names.empty()) return bad();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<std::ptrdiff_t>(i)) {
      return fail({Fault::kBadInput, fmt::format("the header names channel '{}' twice", names[i]), "line 1", "each channel once", ""});
    }
  }
  return names;
}

FrameReader::FrameReader(const Schema& schema, FrameOptions options)
    : names_(schema.names()), options_(std::move(options)), format_(options_.format) {
  if (options_.zone) clock_.emplace(*options_.zone);
}

tl::unexpected<Error> FrameReader::bad(std::string what, std::string expected, std::string hint, std::string_view column) const {
  std::string where = fmt::format("line {}", lines_);
  if (!column.empty()) where.append(", '").append(column).append("'");
  return fail({Fault::kBadInput, std::move(what), std::move(where), std::move(expected), std::move(hint)});
}

Result<LineKind> FrameReader::read(std::string_view line, StreamFrame& frame) {
  ++lines_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (lines_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  const std::string_view body = trimmed(line);
  if (body.empty() || (format_ != FrameFormat::kJson && body.front() == '#' && !body.starts_with("#N/A"))) return LineKind::kBlank;
  if (format_ == FrameFormat::kAuto) format_ = body.front() == '{' || body.front() == '[' ? FrameFormat::kJson : FrameFormat::kCsv;
  frame.time_ns.reset();
  frame.values.assign(names_.size(), kNaN);
  return format_ == FrameFormat::kJson ? read_json(body, frame) : read_csv(line, frame);
}

Result<std::int64_t> FrameReader::read_time(std::string_view text) {
  if (number_styles(text) != 0) {
    const auto value = parse_number(text, {options_.decimal, '\0'});
    if (value && std::isfinite(*value)) {
      if (const auto ns = scaled_ns(text, unit_of(std::fabs(*value)), options_.decimal)) return *ns;
    }
  }
  const auto stamp = scan_stamp(text);
  const auto wall = stamp ? stamp->wall_ns(options_.date_order) : std::nullopt;
  if (!wall) return bad(fmt::format("'{}' is no time", shown(text)), "a stamp such as 2024-03-04T08:00:00, or a number of seconds", "");
  if (stamp->offset_min) return *wall - *stamp->offset_min * std::int64_t{60'000'000'000};
  return clock_ ? clock_->utc_ns(*wall) : *wall;
}

// Whether the fields have a frame's number of cells and none of them could be a value or a moment.
bool FrameReader::is_line_of_names() const {
  const std::size_t cells = fields_.size();
  if (cells < 2 || (cells != names_.size() && cells != names_.size() + 1)) return false;
  const bool timed = std::any_of(fields_.begin(), fields_.end(), [](std::string_view cell) { return is_time_name(cell); });
  return std::none_of(fields_.begin(), fields_.end(), [&](std::string_view cell) {
    return is_missing_word(cell) || number_styles(cell) != 0 || scan_stamp(cell).has_value() || (!timed && bool_word(cell).has_value());
  });
}

// Which cell is which channel, from the first line that can tell. True: the line is a header.
Result<bool> FrameReader::settle_columns(std::string_view line) {
  const std::size_t channels = names_.size();
  for (const char delimiter : {',', ';', '\t', '|', ' '}) {
    if (delimiter == options_.decimal) continue;
    split_fields(line, delimiter, fields_, unquoted_);
    const auto is_channel = [&](std::string_view cell) { return std::find(names_.begin(), names_.end(), cell) != names_.end(); };
    if (std::any_of(fields_.begin(), fields_.end(), is_channel)) {
      std::vector<int> columns;
      bool timed = false;
      for (const auto cell : fields_) {
        const auto found = std::find(names_.begin(), names_.end(), cell);
        if (found != names_.end()) {
          columns.push_back(static_cast<int>(found - names_.begin()));
        } else if (!timed && is_time_name(cell)) {
          timed = true;
          columns.push_back(kTime);
        } else {
          columns.push_back(kIgnored);
        }
      }
      for (std::size_t c = 0; c < channels; ++c) {
        const auto times = std::count(columns.begin(), columns.end(), static_cast<int>(c));
        if (times != 1) {
          header_refused_ = true;
          return bad(times == 0 ? fmt::format("the header lacks channel '{}'", names_[c])
                                : fmt::format("the header names channel '{}' twice", names_[c]),
                     fmt::format("the channels {}", fmt::join(names_, ", ")), "Name each channel once, in any order.");
        }
      }
      delimiter_ = delimiter;
      columns_ = std::move(columns);
      settled_ = true;
      return true;
    }
    if (delimiter != ' ' && is_line_of_names()) {
      header_refused_ = true;
      return bad(fmt::format("the header '{}' names none of the model's channels", shown(line)),
                 fmt::format("the channels {}", fmt::join(names_, ", ")),
                 "Leave the header out where the cells are these channels in order.");
    }
    if (fields_.size() != channels && fields_.size() != channels + 1) continue;
    const bool timed = fields_.size() == channels + 1;
    // Every cell but the time must be able to be a value; else this is not the delimiter.
    const bool fits = std::all_of(fields_.begin() + (timed ? 1 : 0), fields_.end(), [](std::string_view cell) {
      return is_missing_word(cell) || number_styles(cell) != 0 || bool_word(cell).has_value();
    });
    if (!fits) continue;
    delimiter_ = delimiter;
    columns_.clear();
    if (timed) columns_.push_back(kTime);
    for (std::size_t c = 0; c < channels; ++c) columns_.push_back(static_cast<int>(c));
    settled_ = true;
    return false;
  }
  return bad(fmt::format("'{}' has not the cells of a frame", shown(line)),
             fmt::format("{} numbers ({}), a time before them or not", channels, fmt::join(names_, ", ")),
             "Begin with a line of names if the order differs.");
}

Result<LineKind> FrameReader::read_csv(std::string_view line, StreamFrame& frame) {
  if (!settled_) {
    const auto header = settle_columns(line);
    if (!header) return fail(header.error());
    if (*header) return LineKind::kHeader;
  }
  if (!split_fields(line, delimiter_, fields_, unquoted_)) return bad("a quote is not closed", "closed quotes", "");
  if (fields_.size() != columns_.size()) {
    return bad(fmt::format("{} cells", fields_.size()), fmt::format("{} cells", columns_.size()), "");
  }
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::string_view cell = fields_[i];
    if (columns_[i] == kIgnored) continue;
    if (columns_[i] == kTime) {
      if (cell.empty()) continue;
      const auto time = read_time(cell);
      if (!time) return fail(time.error());
      frame.time_ns = *time;
      continue;
    }
    const auto channel = static_cast<std::size_t>(columns_[i]);
    if (is_missing_word(cell)) continue;
    auto value = parse_number(cell, {options_.decimal, '\0'});
    if (!value) {
      if (const auto word = bool_word(cell)) value = word->value ? 1 : 0;
    }
    if (!value) return bad(fmt::format("'{}' is no number", shown(cell)), "a number, or an empty cell for no value", "", names_[channel]);
    if (!std::isfinite(*value))
      return bad(fmt::format("'{}' is not finite", shown(cell)), "a finite number, or an empty cell for no value", "", names_[channel]);
    const bool sentinel = std::find(options_.sentinels.begin(), options_.sentinels.end(), *value) != options_.sentinels.end();
    frame.values[channel] = sentinel ? kNaN : *value;
  }
  return LineKind::kFrame;
}

Result<LineKind> FrameReader::read_json(std::string_view line, StreamFrame& frame) {
  const auto parsed = Json::parse(line, fmt::format("line {}", lines_));
  if (!parsed) {
    return bad("this is no JSON", "one JSON object a line, such as {\"time\": \"2024-03-04T08:00:00\", \"temp\": 20.5}",
               parsed.error().what);
  }
  const auto take = [&](std::size_t channel, const Json& value) -> Result<void> {
    if (value.is_null()) return {};
    if (value.is_bool()) {
      frame.values[channel] = value.boolean() ? 1 : 0;
      return {};
    }
    if (!value.is_number() || !std::isfinite(value.number()))
      return bad(fmt::format("{} is no number", shown(value.dump())), "a number or null", "", names_[channel]);
    const bool sentinel = std::find(options_.sentinels.begin(), options_.sentinels.end(), value.number()) != options_.sentinels.end();
    frame.values[channel] = sentinel ? kNaN : value.number();
    return {};
  };
  const auto take_list = [&](const Json& list) -> Result<void> {
    if (list.items().size() != names_.size()) {
      return bad(fmt::format("{} values", list.items().size()), fmt::format("{} values ({})", names_.size(), fmt::join(names_, ", ")), "");
    }
    for (std::size_t c = 0; c < names_.size(); ++c) {
      if (auto good = take(c, list.items()[c]); !good) return good;
    }
    return {};
  };
  if (parsed->is_array()) {
    if (auto good = take_list(*parsed); !good) return fail(good.error());
    return LineKind::kFrame;
  }
  if (!parsed->is_object()) return bad(fmt::format("a {} is no frame", parsed->kind()), "an object or a list of numbers", "");
  const auto take_members = [&](const Json& object, bool outer, auto& again) -> Result<void> {
    for (const auto& [key, value] : object.members()) {
      if (const auto channel = std::find(names_.begin(), names_.end(), key); channel != names_.end()) {
        if (auto good = take(static_cast<std::size_t>(channel - names_.begin()), value); !good) return good;
      } else if (outer && key == "values" && value.is_array()) {
        if (auto good = take_list(value); !good) return good;
      } else if (outer && key == "values" && value.is_object()) {
        if (auto good = again(value, false, again); !good) return good;
      } else if (outer && is_time_name(key)) {
        if (value.is_null()) continue;
        if (!value.is_string() && !value.is_number())
          return bad(fmt::format("{} is no time", shown(value.dump())), "a stamp or a number of seconds", "", key);
        if (value.is_number() && !(std::fabs(value.number()) * static_cast<double>(unit_of(std::fabs(value.number()))) < kMostNs)) {
          return bad(fmt::format("{} is no time", value.dump()), "a stamp or a number of seconds", "", key);
        }
        const auto time = value.is_string() ? read_time(value.string()) : read_time(value.dump());
        if (!time) return fail(time.error());
        frame.time_ns = *time;
      } else {
        return bad(fmt::format("there is no channel '{}'", shown(key)), fmt::format("the channels {}", fmt::join(names_, ", ")),
                   did_you_mean(key, names_));
      }
    }
    return {};
  };
  if (auto good = take_members(*parsed, true, take_members); !good) return fail(good.error());
  return LineKind::kFrame;
}

}  // namespace kizzasi::io
