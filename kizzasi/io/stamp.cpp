#include "kizzasi/io/stamp.h"

#include <array>
#include <cctype>
#include <charconv>
#include <chrono>
#include <cmath>

namespace kizzasi::io {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
constexpr int kFirstYear = 1678, kLastYear = 2261;  // whole years that fit 64-bit nanoseconds

__extension__ using Wide = __int128;  // so that no product overflows before it is checked

bool digit(char c) { return c >= '0' && c <= '9'; }

class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}
  bool done() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_.front(); }
  bool take(char c) {
    if (peek() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {  // case does not matter
    if (text_.size() < word.size()) return false;
    for (std::size_t i = 0; i < word.size(); ++i) {
      if (std::tolower(static_cast<unsigned char>(text_[i])) != word[i]) return false;
    }
    text_.remove_prefix(word.size());
    return true;
  }
  void blanks() {
    while (take(' ')) {
    }
  }
  std::size_t digits() const {
    std::size_t n = 0;
    while (n < text_.size() && digit(text_[n])) ++n;
    return n;
  }
  int number(std::size_t width) {
    int value = 0;
    for (std::size_t i = 0; i < width; ++i) value = value * 10 + (text_[i] - '0');
    text_.remove_prefix(width);
    return value;
  }
  std::string_view rest() const { return text_; }

 private:
  std::string_view text_;
};

// 1 to 12 of an English month, in full or by three letters; 0 where there is none.
int month_name(Cursor& cursor) {
  constexpr std::array<std::string_view, 12> kMonths{"january", "february", "march",     "april",   "may",      "june",
                                                     "july",    "august",   "september", "october", "november", "december"};
  for (std::size_t m = 0; m < kMonths.size(); ++m) {
    if (cursor.take_word(kMonths[m]) || cursor.take_word(kMonths[m].substr(0, 3))) {
      cursor.take('.');
      return static_cast<int>(m) + 1;
    }
  }
  return 0;
}

// hh:mm[:ss[.fraction]] [AM|PM], or hhmm[ss] when `compact`.
bool scan_time(Cursor& cursor, bool compact, Stamp& stamp) {
  int hour = 0, minute = 0, second = 0;
  std::int64_t fraction = 0;
  if (compact) {
    const std::size_t width = cursor.digits();
    if (width != 4 && width != 6) return false;
    hour = cursor.number(2);
    minute = cursor.number(2);
    stamp.has_seconds = width == 6;
    if (stamp.has_seconds) second = cursor.number(2);
  } else {
    if (cursor.digits() < 1 || cursor.digits() > 2) return false;
    hour = cursor.number(cursor.digits());
    if (!cursor.take(':') || cursor.digits() != 2) return false;
    minute = cursor.number(2);
    if (cursor.take(':')) {
      if (cursor.digits() != 2) return false;
      second = cursor.number(2);
      stamp.has_seconds = true;
    }
  }
  if (stamp.has_seconds && (cursor.take('.') || cursor.take(','))) {
    const std::size_t width = cursor.digits();
    if (width == 0) return false;
    std::int64_t unit = kSecond;
    for (std::size_t i = 0; i < width; ++i) {
      unit /= 10;
      fraction += unit * cursor.number(1);  // digits beyond nanoseconds are dropped
    }
  }
  Cursor after = cursor;
  after.blanks();
  const bool am = after.take_word("am"), pm = !am && after.take_word("pm");
  if (am || pm) {
    if (hour < 1 || hour > 12) return false;
    hour = hour % 12 + (pm ? 12 : 0);
    cursor = after;
  }
  const bool midnight = hour == 24 && minute == 0 && second == 0 && fraction == 0;
  if ((hour > 23 && !midnight) || minute > 59 || second > 60) return false;
  stamp.has_time = true;
  stamp.of_day_ns = hour * kHour + minute * kMinute + second * kSecond + fraction;
  return true;
}

// Z, UTC, GMT, +hh, +hhmm, +hh:mm; nothing is fine, too.
bool scan_offset(Cursor& cursor, Stamp& stamp) {
  Cursor after = cursor;
  after.blanks();
  if (after.done()) {
    cursor = after;
    return true;
  }
  if (after.take_word("z") || after.take_word("utc") || after.take_word("gmt")) {
    stamp.zulu = true;
    stamp.offset_min = 0;
    if (after.done()) return true;
  }
  const int sign = after.take('+') ? 1 : after.take('-') ? -1 : 0;
  if (sign == 0) return false;
  const std::size_t width = after.digits();
  if (width != 1 && width != 2 && width != 4) return false;
  int hours = after.number(width == 4 ? 2 : width), minutes = 0;
  if (width == 4) {
    minutes = after.number(2);
  } else if (after.take(':')) {
    if (after.digits() != 2) return false;
    minutes = after.number(2);
  }
  if (!after.done() || hours > 18 || minutes > 59) return false;
  stamp.offset_min = sign * (hours * 60 + minutes);
  stamp.zulu = false;
  return true;
}

bool scan_time_and_offset(Cursor& cursor, bool compact, Stamp& stamp) {
  return scan_time(cursor, compact, stamp) && scan_offset(cursor, stamp);
}

// What follows a date: nothing, or T or blanks and a time.
bool scan_rest(Cursor& cursor, bool compact, Stamp& stamp) {
  if (cursor.done()) return true;
  const bool marked = cursor.take('T') || cursor.take('t');
  if (!marked && cursor.peek() != ' ') return scan_offset(cursor, stamp);
  cursor.blanks();
  return scan_time_and_offset(cursor, compact, stamp);
}

bool scan_compact(Cursor cursor, Stamp& stamp) {
  const std::size_t width = cursor.digits();
  if (width != 8 && width != 12 && width != 14) return false;
  stamp.shape = StampShape::kCompact;
  stamp.year = cursor.number(4);
  stamp.first = cursor.number(2);
  stamp.second = cursor.number(2);
  if (width > 8) return scan_time_and_offset(cursor, true, stamp);
  if (cursor.done()) return true;
  stamp.shape = StampShape::kYearFirst;
  const bool colons = cursor.rest().find(':') != std::string_view::npos;
  return scan_rest(cursor, !colons, stamp);
}

bool scan_year_first(Cursor cursor, Stamp& stamp) {
  stamp.shape = StampShape::kYearFirst;
  stamp.year = cursor.number(4);
  if (cursor.done()) {
    stamp.shape = StampShape::kYear;
    return true;
  }
  stamp.separator = cursor.peek();
  if (stamp.separator != '-' && stamp.separator != '/' && stamp.separator != '.') return false;
  cursor.take(stamp.separator);
  if (const int month = month_name(cursor); month != 0) {
    stamp.first = month;
  } else {
    if (cursor.digits() < 1 || cursor.digits() > 2) return false;
    stamp.first = cursor.number(cursor.digits());
  }
  if (cursor.done()) {
    stamp.shape = StampShape::kYearMonth;
    return stamp.separator != '.';  // 2024.03 is a number
  }
  if (!cursor.take(stamp.separator) || cursor.digits() < 1 || cursor.digits() > 2) return false;
  stamp.second = cursor.number(cursor.digits());
  return scan_rest(cursor, false, stamp);
}

bool scan_year(Cursor& cursor, Stamp& stamp) {
  const std::size_t width = cursor.digits();
  if (width != 2 && width != 4) return false;
  stamp.year = cursor.number(width);
  stamp.short_year = width == 2;
  if (stamp.short_year) stamp.year += stamp.year < 69 ? 2000 : 1900;  // as POSIX strptime
  return true;
}

// Mar 4, 2024
bool scan_month_first_name(Cursor cursor, Stamp& stamp) {
  stamp.shape = StampShape::kNamedMonth;
  stamp.first = month_name(cursor);
  stamp.separator = ' ';
  cursor.blanks();
  if (stamp.first == 0 || cursor.digits() < 1 || cursor.digits() > 2) return false;
  stamp.second = cursor.number(cursor.digits());
  cursor.take(',');
  cursor.blanks();
  return cursor.digits() == 4 && scan_year(cursor, stamp) && scan_rest(cursor, false, stamp);
}

// 04.03.2024, 3/4/24 8:00, 04-Mar-2024
bool scan_short(Cursor cursor, Stamp& stamp) {
  const std::size_t width = cursor.digits();
  if (width < 1 || width > 2) return false;
  stamp.first = cursor.number(width);
  stamp.separator = cursor.peek();
  if (stamp.separator != '-' && stamp.separator != '/' && stamp.separator != '.' && stamp.separator != ' ') return false;
  cursor.take(stamp.separator);
  if (stamp.separator == '.') cursor.blanks();  // 4. March 2024
  if (const int month = month_name(cursor); month != 0) {
    stamp.shape = StampShape::kNamedMonth;
    stamp.second = stamp.first;
    stamp.first = month;
    if (!cursor.take(stamp.separator)) cursor.blanks();
    return scan_year(cursor, stamp) && scan_rest(cursor, false, stamp);
  }
  if (stamp.separator == ' ' || cursor.digits() < 1 || cursor.digits() > 2) return false;
  stamp.shape = StampShape::kShort;
  stamp.second = cursor.number(cursor.digits());
  return cursor.take(stamp.separator) && scan_year(cursor, stamp) && scan_rest(cursor, false, stamp);
}

}  // namespace

std::optional<Stamp> scan_stamp(std::string_view text) {
  Stamp stamp;
  const Cursor cursor(text);
  const std::size_t width = cursor.digits();
  bool good = false;
  if (text.size() < 4 || text.size() > 48) return std::nullopt;
  if (width == 0) {
    good = scan_month_first_name(cursor, stamp);
  } else if (width == 4) {
    good = scan_year_first(cursor, stamp);
  } else if (width > 4) {
    good = scan_compact(cursor, stamp);
  } else if (text[width] == ':') {
    stamp.shape = StampShape::kTimeOfDay;
    Cursor time = cursor;
    good = scan_time_and_offset(time, false, stamp);
  } else {
    good = scan_short(cursor, stamp);
  }
  return good ? std::optional(stamp) : std::nullopt;
}

std::optional<std::int64_t> Stamp::wall_ns(DateOrder order) const {
  if (shape == StampShape::kTimeOfDay) return of_day_ns;
  const bool day_first = shape == StampShape::kShort && order == DateOrder::kDayFirst;
  const int month = day_first ? second : first, day = day_first ? first : second;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || year < kFirstYear || year > kLastYear) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * kDay + of_day_ns;
}

std::string format_name(const Stamp& stamp, DateOrder order) {
  const std::string time = !stamp.has_time ? "" : stamp.has_seconds ? " hh:mm:ss" : " hh:mm";
  const std::string year = stamp.short_year ? "yy" : "yyyy";
  const std::string gap(1, stamp.separator);
  std::string name;
  switch (stamp.shape) {
    case StampShape::kYearFirst:
      if (stamp.has_time && stamp.separator == '-') return "iso8601";
      return name.append("yyyy").append(gap).append("mm").append(gap).append("dd").append(time);
    case StampShape::kCompact:
      return stamp.has_time ? (stamp.has_seconds ? "yyyymmddhhmmss" : "yyyymmddhhmm") : "yyyymmdd";
    case StampShape::kYear:
      return "yyyy";
    case StampShape::kYearMonth:
      return name.append("yyyy").append(gap).append("mm");
    case StampShape::kShort:
      name = order == DateOrder::kMonthFirst ? name.append("mm").append(gap).append("dd") : name.append("dd").append(gap).append("mm");
      return name.append(gap).append(year).append(time);
    case StampShape::kNamedMonth:
      return name.append("dd").append(gap).append("mmm").append(gap).append(year).append(time);
    case StampShape::kTimeOfDay:
      break;
  }
  return stamp.has_seconds ? "hh:mm:ss" : "hh:mm";
}

std::optional<std::int64_t> scaled_ns(std::string_view text, std::int64_t unit_ns, char decimal) {
  if (text.empty()) return std::nullopt;
  const bool minus = text.front() == '-';
  std::string_view body = text.substr(minus || text.front() == '+' ? 1 : 0);
  Wide total = 0;
  std::int64_t unit = unit_ns;
  bool fraction = false, any = false;
  for (const char c : body) {
    if (c == decimal && !fraction) {
      fraction = true;
      continue;
    }
    if (!digit(c)) {  // an exponent, or no number
      double value = 0;
      const auto [rest, fault] = std::from_chars(body.data(), body.data() + body.size(), value);
      if (fault != std::errc{} || rest != body.data() + body.size() || decimal != '.') return std::nullopt;
      const double ns = value * static_cast<double>(unit_ns);
      if (!(std::fabs(ns) < 9.2e18)) return std::nullopt;
      return static_cast<std::int64_t>(std::llround(minus ? -ns : ns));
    }
    any = true;
    if (fraction) {
      unit /= 10;
      total += static_cast<Wide>(c - '0') * unit;
    } else {
      total = total * 10 + static_cast<Wide>(c - '0') * unit_ns;
    }
    if (total > static_cast<Wide>(9'200'000'000'000'000'000)) return std::nullopt;
  }
  if (!any) return std::nullopt;
  return static_cast<std::int64_t>(minus ? -total : total);
}

}  // namespace kizzasi::io
