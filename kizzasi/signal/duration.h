// Durations and moments as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kizzasi/base/error.h"

namespace kizzasi {

// Nanoseconds of "10s", "250 ms", "1.5min", "15 min", "1h", "7 d": a number and one of ns, us, ms, s, min, h, d, w; also pandas' aliases
// ("15T", "H", "D") and ISO 8601 durations ("PT15M"). Years and months have no fixed length and are refused, as is what is negative or
// longer than 292 years. `where` names the place for the message, such as "--step".
Result<std::int64_t> parse_duration(std::string_view text, std::string_view where);

// The shortest exact form: "15min", "5ms", "1h".
std::string duration_text(std::int64_t nanoseconds);

// "2016-07-01T00:15:00Z" with as many decimals of a second as needed; `zone` empty: no suffix (a wall clock); "+01:00": shifted and marked
// so; any other name: UTC.
std::string time_text(std::int64_t time_ns, std::string_view zone);

}  // namespace kizzasi
