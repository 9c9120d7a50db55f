#include "kizzasi/io/csv_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "kizzasi/io/csv_records.h"

namespace kizzasi::io {
namespace {

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "time [utc]" and "Time (s)" without what stands in brackets.
std::string_view without_unit(std::string_view name) {
  if (const auto open = name.find_last_of("[("); open != name.npos && open > 0 && (name.back() == ']' || name.back() == ')')) {
    return trimmed(name.substr(0, open));
  }
  return name;
}

constexpr std::array<std::string_view, 44> kTimeNames{
    "time",        "timestamp",   "time_stamp", "date",        "datetime",      "date_time",    "date time", "ts",       "t",
    "ds",          "zeit",        "datum",      "zeitstempel", "uhrzeit",       "utc",          "epoch",     "unixtime", "unix_time",
    "seconds",     "secs",        "sec",        "elapsed",     "elapsed_time",  "time_s",       "time_ms",   "time_us",  "time_ns",
    "t_s",         "t_ms",        "t_us",       "t_ns",        "day",           "year",         "month",     "clock",    "when",
    "measured_at", "recorded_at", "created_at", "time_utc",    "timestamp_utc", "datetime_utc", "period",    "fecha"};

constexpr std::array<std::string_view, 20> kIdNames{
    "unique_id", "id",        "series", "series_id", "item_id", "item",       "mote_id", "mote",   "sensor",     "sensor_id",
    "device",    "device_id", "node",   "node_id",   "station", "station_id", "tag",     "tag_id", "machine_id", "entity_id"};

constexpr std::array<std::string_view, 96> kUnits{
    "degc", "deg c", "°c",  "c",   "k",     "degf", "°f",    "f",    "%",   "%rh", "rh",    "kpa",   "pa",   "hpa",   "mpa",   "bar",
    "mbar", "psi",   "m",   "mm",  "cm",    "km",   "um",    "in",   "ft",  "m/s", "km/h",  "mph",   "m/s2", "m/s^2", "g",     "mg",
    "kg",   "t",     "w",   "kw",  "mw",    "gw",   "wh",    "kwh",  "mwh", "va",  "kva",   "var",   "v",    "mv",    "kv",    "a",
    "ma",   "ua",    "hz",  "khz", "mhz",   "rpm",  "1/min", "s",    "sec", "ms",  "us",    "ns",    "min",  "h",     "d",     "l",
    "ml",   "m3",    "m^3", "l/s", "l/min", "l/h",  "m3/h",  "m³/h", "n",   "nm",  "kn",    "rad",   "deg",  "°",     "rad/s", "deg/s",
    "ppm",  "ppb",   "lux", "lx",  "db",    "dba",  "ph",    "j",    "kj",  "ohm", "µg/m³", "ug/m3", "w/m2", "w/m²",  "utc",   "ut"};

}  // namespace

bool is_time_name(std::string_view name) { return contains(kTimeNames, lower(without_unit(name))); }

bool is_id_name(std::string_view name) { return contains(kIdNames, lower(name)); }

bool is_series_name(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames{"unique_id", "id", "series", "series_id", "item_id"};
  const std::string small = lower(name);
  return contains(kNames, small) || small.ends_with("_id");
}

double unit_hint(std::string_view name) {
  std::string unit = lower(unit_in_name(name));
  if (unit.empty()) {
    const auto mark = name.find_last_of('_');
    if (mark == name.npos) return 0;
    unit = lower(name.substr(mark + 1));
  }
  constexpr std::array<std::pair<std::string_view, double>, 9> kHints{{{"s", 1.0},
                                                                       {"sec", 1.0},
                                                                       {"ms", 1e-3},
                                                                       {"us", 1e-6},
                                                                       {"ns", 1e-9},
                                                                       {"min", 60.0},
                                                                       {"h", 3600.0},
                                                                       {"d", 86400.0},
                                                                       {"days", 86400.0}}};
  for (const auto& [word, seconds] : kHints) {
    if (unit == word) return seconds;
  }
  return 0;
}

std::string without_brackets(std::string_view text) {
  text = trimmed(text);
  if (text.size() > 2 && ((text.front() == '[' && text.back() == ']') || (text.front() == '(' && text.back() == ')'))) {
    text = trimmed(text.substr(1, text.size() - 2));
  }
  return std::string(text);
}

bool is_unit(std::string_view text) {
  const std::string inside = without_brackets(text);
  if (inside.size() != text.size() && inside.size() <= 16) return true;
  if (contains(kUnits, lower(inside))) return true;
  // Compound units: short, with a mark that names do not have.
  return inside.size() <= 12 && inside.find_first_of("/^%\xC2\xB0") != std::string::npos && inside.find(' ') == std::string::npos;
}

std::string unit_in_name(std::string_view name) {
  name = trimmed(name);
  if (name.size() < 4 || (name.back() != ']' && name.back() != ')')) return "";
  const auto open = name.find_last_of(name.back() == ']' ? '[' : '(');
  if (open == name.npos || open == 0) return "";
  const std::string inside(trimmed(name.substr(open + 1, name.size() - open - 2)));
  // A plain word in brackets says what is measured ("raw", "mean"), not in which unit.
  const bool word = inside.size() > 3 && std::all_of(inside.begin(), inside.end(), [](unsigned char c) { return std::islower(c) != 0; });
  constexpr std::array<std::string_view, 8> kNoUnits{"raw", "avg", "min", "max", "sum", "std", "set", "sp"};
  if (inside.empty() || inside.size() > 16 || contains(kNoUnits, inside))
    return inside == "min" && is_time_name(name.substr(0, open)) ? inside : "";
  return word && !contains(kUnits, inside) ? "" : inside;
}

}  // namespace kizzasi::io
