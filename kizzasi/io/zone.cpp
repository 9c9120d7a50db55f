#include "kizzasi/io/zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "kizzasi/base/suggest.h"
#include "kizzasi/io/file.h"
#include "kizzasi/io/stamp.h"

namespace kizzasi::io {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// Bytes of a zone file, big endian; reading past the end makes `good` false.
class Bytes {
 public:
  explicit Bytes(std::string_view text) : text_(text) {}
  std::int64_t number(std::size_t width) {
    if (text_.size() < width) {
      good = false;
      text_ = {};
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < width; ++i) value = (value << 8U) | static_cast<unsigned char>(text_[i]);
    text_.remove_prefix(width);
    if (width == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(value));
    return static_cast<std::int64_t>(value);
  }
  void skip(std::size_t count) {
    good = good && count <= text_.size();
    text_.remove_prefix(std::min(count, text_.size()));
  }
  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::string_view rest() const { return text_; }
  bool good = true;

 private:
  std::string_view text_;
};

struct Counts {
  std::size_t utc_flags, std_flags, leaps, changes, types, letters;
};

Counts read_counts(Bytes& bytes) {
  Counts counts{};
  for (std::size_t* count : {&counts.utc_flags, &counts.std_flags, &counts.leaps, &counts.changes, &counts.types, &counts.letters}) {
    *count = static_cast<std::size_t>(std::max<std::int64_t>(0, bytes.number(4)));
  }
  return counts;
}

std::int64_t days_of(int year, unsigned month, unsigned day) {
  return std::chrono::sys_days(std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day)).time_since_epoch().count();
}

int year_of(std::int64_t seconds) {
  const auto day = std::chrono::floor<std::chrono::days>(std::chrono::sys_seconds(std::chrono::seconds(seconds)));
  return static_cast<int>(std::chrono::year_month_day(day).year());
}

std::vector<std::string> zone_names(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::recursive_directory_iterator entry(folder, fault), end; !fault && entry != end && names.size() < 3000; entry.increment(fault)) {
    const std::string name = fs::relative(entry->path(), folder, fault).string();
    if (entry->is_regular_file(fault) && name.find('.') == std::string::npos && !name.starts_with("posix/") &&
        !name.starts_with("right/")) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace

// A POSIX rule such as CET-1CEST,M3.5.0,M10.5.0/3 (POSIX.1-2017, chapter 8.3).
struct Zone::Rule {
  struct Change {
    char kind = 'M';  // M: month, week, weekday; J: day 1..365 without leap days; 0: day 0..365
    int month = 0, week = 0, day = 0;
    std::int64_t at_s = 7200;  // wall clock of the day

    std::int64_t wall_s(int year) const {
      std::int64_t days = 0;
      if (kind == 'M') {
        const std::int64_t first = days_of(year, static_cast<unsigned>(month), 1);
        const auto weekday = static_cast<int>(((first + 4) % 7 + 7) % 7);
        days = first + (day - weekday + 7) % 7 + (week - 1) * 7;
        const std::int64_t next = month == 12 ? days_of(year + 1, 1, 1) : days_of(year, static_cast<unsigned>(month) + 1, 1);
        while (days >= next) days -= 7;
      } else {
        days = days_of(year, 1, 1) + day;
        if (kind == 'J') days += (day > 59 && std::chrono::year(year).is_leap()) ? 0 : -1;
      }
      return days * 86400 + at_s;
    }
  };
  std::int64_t standard_s = 0, summer_s = 0;
  bool has_summer = false;
  Change begin, end;

  static std::shared_ptr<const Rule> parse(std::string_view text);
};

namespace {

bool skip_name(std::string_view& text) {
  if (text.starts_with('<')) {
    const auto close = text.find('>');
    if (close == text.npos) return false;
    text.remove_prefix(close + 1);
    return true;
  }
  std::size_t n = 0;
  while (n < text.size() && ((text[n] >= 'A' && text[n] <= 'Z') || (text[n] >= 'a' && text[n] <= 'z'))) ++n;
  text.remove_prefix(n);
  return n >= 3;
}

bool take_number(std::string_view& text, int& value) {
  std::size_t n = 0;
  value = 0;
  while (n < text.size() && n < 4 && text[n] >= '0' && text[n] <= '9') value = value * 10 + (text[n++] - '0');
  text.remove_prefix(n);
  return n > 0;
}

// [+-]hh[:mm[:ss]] in seconds.
bool take_clock(std::string_view& text, std::int64_t& seconds) {
  std::int64_t sign = 1;
  if (text.starts_with('-') || text.starts_with('+')) {
    sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
  }
  std::int64_t unit = 3600;
  seconds = 0;
  for (int part = 0, value = 0; part < 3; ++part, unit /= 60) {
    if (part > 0) {
      if (!text.starts_with(':')) break;
      text.remove_prefix(1);
    }
    if (!take_number(text, value)) return false;
    seconds += value * unit;
  }
  seconds *= sign;
  return true;
}

template <typename Change>
bool take_change(std::string_view& text, Change& change) {
  if (!text.starts_with(',')) return false;
  text.remove_prefix(1);
  const auto take = [&](char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
  };
  if (take('M')) {
    if (!take_number(text, change.month) || !take('.') || !take_number(text, change.week) || !take('.') || !take_number(text, change.day))
      return false;
    if (change.month < 1 || change.month > 12 || change.week < 1 || change.week > 5 || change.day > 6) return false;
  } else {
    change.kind = take('J') ? 'J' : '0';
    if (!take_number(text, change.day) || change.day > 366) return false;
  }
  return !take('/') || take_clock(text, change.at_s);
}

}  // namespace

std::shared_ptr<const Zone::Rule> Zone::Rule::parse(std::string_view text) {
  auto rule = std::make_shared<Rule>();
  std::int64_t west = 0;
  if (!skip_name(text) || !take_clock(text, west)) return nullptr;
  rule->standard_s = -west;
  if (text.empty()) return rule;
  if (!skip_name(text)) return nullptr;
  rule->summer_s = rule->standard_s + 3600;
  if (!text.starts_with(',')) {
    if (!take_clock(text, west)) return nullptr;
    rule->summer_s = -west;
  }
  rule->has_summer = true;
  if (!take_change(text, rule->begin) || !take_change(text, rule->end)) return nullptr;
  return rule;
}

Result<Zone> Zone::open(std::string_view name, const std::string& folder) {
  Zone zone;
  zone.name_ = std::string(name);
  if (name == "UTC" || name == "Z" || name == "GMT") {
    zone.name_ = "UTC";
    return zone;
  }
  if (name.starts_with('+') || name.starts_with('-')) {
    if (const auto stamp = scan_stamp(std::string("2000-01-01T00:00").append(name)); stamp && stamp->offset_min) {
      zone.before_s_ = *stamp->offset_min * 60;
      return zone;
    }
  }
  const auto unknown = [&](std::string what) {
    return fail({Fault::kBadUse, std::move(what), "--zone", "a zone such as Europe/Berlin, UTC, or an offset such as +05:30",
                 did_you_mean(name, zone_names(folder))});
  };
  if (name.empty() || name.front() == '/' || name.find("..") != name.npos) return unknown(fmt::format("'{}' is no time zone", name));
  std::error_code fault;
  if (!std::filesystem::is_directory(folder, fault)) {
    return fail({Fault::kUnavailable, "the time zone database is not installed", folder, "the files of the package tzdata",
                 "Install tzdata, or give a fixed offset such as --zone +01:00."});
  }
  std::string path = folder;
  path.append("/").append(name);
  if (!std::filesystem::is_regular_file(path, fault)) return unknown(fmt::format("there is no time zone '{}'", name));
  const auto file = read_file(path, 1U << 20U);
  if (!file) return fail(file.error());
  const auto damaged = [&] {
    return fail({Fault::kBroken, "this is no time zone file", path, "the format of RFC 8536", "Reinstall the package tzdata."});
  };

  Bytes bytes(*file);
  if (!bytes.take("TZif") || bytes.rest().empty()) return damaged();
  const bool wide = bytes.rest().front() >= '2';
  bytes.skip(16);
  Counts counts = read_counts(bytes);
  if (wide) {  // the first block repeats the data in 32 bits, for old readers
    bytes.skip(counts.changes * 5 + counts.types * 6 + counts.letters + counts.leaps * 8 + counts.std_flags + counts.utc_flags);
    if (!bytes.take("TZif")) return damaged();
    bytes.skip(16);
    counts = read_counts(bytes);
  }
  const std::size_t width = wide ? 8 : 4;
  if (!bytes.good || counts.types == 0 || counts.changes > bytes.rest().size() / width) return damaged();
  for (std::size_t i = 0; i < counts.changes; ++i) zone.changes_s_.push_back(bytes.number(width));
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < counts.changes; ++i) kinds.push_back(static_cast<std::size_t>(bytes.number(1)));
  std::vector<std::int64_t> offsets;
  for (std::size_t i = 0; bytes.good && i < counts.types; ++i) {
    offsets.push_back(bytes.number(4));
    bytes.skip(2);
  }
  if (!bytes.good || !std::is_sorted(zone.changes_s_.begin(), zone.changes_s_.end())) return damaged();
  for (const std::size_t kind : kinds) {
    if (kind >= offsets.size()) return damaged();
    zone.offsets_s_.push_back(offsets[kind]);
  }
  zone.before_s_ = offsets.front();
  if (wide) {
    bytes.skip(counts.letters + counts.leaps * (width + 4) + counts.std_flags + counts.utc_flags);
    std::string_view footer = bytes.rest();
    if (bytes.good && footer.starts_with('\n')) {
      footer.remove_prefix(1);
      zone.rule_ = Rule::parse(footer.substr(0, footer.find('\n')));
    }
  }
  return zone;
}

std::int64_t Zone::rule_offset_s(std::int64_t utc_s) const noexcept {
  if (!rule_->has_summer) return rule_->standard_s;
  const int year = year_of(utc_s + rule_->standard_s);
  const std::int64_t begin = rule_->begin.wall_s(year) - rule_->standard_s, end = rule_->end.wall_s(year) - rule_->summer_s;
  const bool summer = begin < end ? utc_s >= begin && utc_s < end : utc_s >= begin || utc_s < end;
  return summer ? rule_->summer_s : rule_->standard_s;
}

std::int64_t Zone::offset_s(std::int64_t utc_s) const noexcept {
  const auto next = std::upper_bound(changes_s_.begin(), changes_s_.end(), utc_s);
  if (next == changes_s_.end() && rule_) return rule_offset_s(utc_s);
  if (next == changes_s_.begin()) return before_s_;
  return offsets_s_[static_cast<std::size_t>(next - changes_s_.begin()) - 1];
}

Zone::Instants Zone::instants(std::int64_t wall_ns) const noexcept {
  // No offset changes twice within two days, so the offsets a day before and a day after are all there can be.
  const std::int64_t wall_s = wall_ns / kSecond - (wall_ns % kSecond < 0 ? 1 : 0);
  const std::int64_t early = offset_s(wall_s - 86400), late = offset_s(wall_s + 86400);
  const bool fits_early = offset_s(wall_s - early) == early, fits_late = offset_s(wall_s - late) == late;
  const std::int64_t a = wall_ns - early * kSecond, b = wall_ns - late * kSecond;
  if (fits_early && fits_late) return {std::min(a, b), std::max(a, b), true};
  if (fits_early) return {a, a, true};
  if (fits_late) return {b, b, true};
  return {a, a, false};
}

std::int64_t WallClock::utc_ns(std::int64_t wall_ns) noexcept {
  const Zone::Instants when = zone_->instants(wall_ns);
  if (!when.exists) ++nonexistent_;
  // Not behind the row above, where that can be: a stamp that stands three times stays in the second of its two hours.
  const std::int64_t chosen = when.first_ns > previous_ns_ || when.second_ns < previous_ns_ ? when.first_ns : when.second_ns;
  previous_ns_ = chosen;
  return chosen;
}

}  // namespace kizzasi::io
