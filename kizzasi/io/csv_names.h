// Words in the headers of files: names that mean time or series, and units.
#pragma once

#include <string>
#include <string_view>

namespace kizzasi::io {

// "time", "Timestamp", "ds", "Datum", "t_s", "time [UTC]": capitals and a unit at the end do not matter.
bool is_time_name(std::string_view name);

// "unique_id", "series", "sensor_id", ...
bool is_id_name(std::string_view name);

// Of these, the names that say so even where the file holds one series only: "unique_id", "series_id", ...
bool is_series_name(std::string_view name);

// Seconds of the unit that a time's name ends with ("t_ms", "elapsed [us]"); 0 where it names none.
double unit_hint(std::string_view name);

// A unit of measurement: "degC", "°C", "%", "m/s", "[kPa]", "1/min".
bool is_unit(std::string_view text);

std::string without_brackets(std::string_view text);

// The unit in the brackets at the end of a name: "degC" of "temp (degC)", "%" of "hum [%]"; empty where there is none.
std::string unit_in_name(std::string_view name);

}  // namespace kizzasi::io
