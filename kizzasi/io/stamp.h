// Moments as files write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kizzasi::io {

enum class DateOrder { kYearFirst, kDayFirst, kMonthFirst };

// What a stamp looks like, before anything is decided about the order of day and month.
enum class StampShape : std::uint8_t {
  kYearFirst,   // 2024-03-04, 2024/03/04, 2024-03-04T08:00:00.5+01:00, 20240304T080000
  kCompact,     // 20240304, 202403040800, 20240304080000
  kYear,        // 2024
  kYearMonth,   // 2024-03
  kShort,       // 04.03.2024, 3/4/24: two numbers before the year, in an order that has to be found
  kNamedMonth,  // 04-Mar-2024, Mar 4 2024
  kTimeOfDay,   // 08:00:00
};

struct Stamp {
  StampShape shape = StampShape::kYearFirst;
  int year = 0, first = 1, second = 1;  // kShort: the two numbers as written; else month and day
  std::int64_t of_day_ns = 0;           // 0 to 24 h (24:00:00 is midnight of the next day), a minute more for a leap second
  bool has_time = false, has_seconds = false, short_year = false;
  char separator = '-';
  std::optional<int> offset_min;  // east of UTC
  bool zulu = false;              // written as Z, UTC or GMT

  // The wall clock as nanoseconds since 1970 as if it were UTC; nothing for a date that does not exist or lies outside 1678 to 2261.
  std::optional<std::int64_t> wall_ns(DateOrder order) const;
};

// The whole text as a stamp; nothing where it is none. Whether the date exists only wall_ns tells.
std::optional<Stamp> scan_stamp(std::string_view text);

// "dd.mm.yyyy", "mm/dd/yyyy hh:mm", "yyyy-mm-dd", "iso8601": how a column of stamps of this kind is called.
std::string format_name(const Stamp& stamp, DateOrder order);

// A decimal number of units (1e9: seconds, 1: nanoseconds) as nanoseconds, exact where it has no exponent; nothing where it is no number or
// does not fit.
std::optional<std::int64_t> scaled_ns(std::string_view text, std::int64_t unit_ns, char decimal);

}  // namespace kizzasi::io
