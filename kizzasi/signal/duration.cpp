#include "kizzasi/signal/duration.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

namespace kizzasi {
namespace {

using Unit = std::pair<std::string_view, std::int64_t>;

constexpr std::int64_t kSecond = 1'000'000'000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour, kWeek = 7 * kDay;
constexpr std::array<Unit, 8> kUnits{
    {{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", kSecond}, {"min", kMinute}, {"h", kHour}, {"d", kDay}, {"w", kWeek}}};
// pandas writes these; its M, Q and Y are calendar steps of no fixed length.
constexpr std::array<Unit, 9> kAliases{{{"N", 1},
                                        {"U", 1000},
                                        {"L", 1'000'000},
                                        {"S", kSecond},
                                        {"T", kMinute},
                                        {"H", kHour},
                                        {"D", kDay},
                                        {"W", kWeek},
                                        {"\xc2\xb5s", 1000}}};
constexpr std::array<Unit, 4> kIsoTime{{{"H", kHour}, {"M", kMinute}, {"S", kSecond}, {"", 0}}};
constexpr std::array<Unit, 4> kIsoDate{{{"W", kWeek}, {"D", kDay}, {"", 0}, {"", 0}}};

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? std::string_view{} : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

template <std::size_t N>
std::optional<std::int64_t> length_of(std::string_view name, const std::array<Unit, N>& units) {
  for (const auto& [unit, nanoseconds] : units) {
    if (!unit.empty() && name == unit) return nanoseconds;
  }
  return std::nullopt;
}

struct Number {
  double value = 0;
  std::optional<std::int64_t> whole;  // where it is written without a point: exact beyond 2^53
  std::size_t characters = 0;
};

std::optional<Number> leading_number(std::string_view text) {
  Number number;
  const char* end = text.data() + text.size();
  const auto [rest, fault] = std::from_chars(text.data(), end, number.value);
  if (fault != std::errc{}) return std::nullopt;
  number.characters = static_cast<std::size_t>(rest - text.data());
  std::int64_t whole = 0;
  const auto [whole_rest, whole_fault] = std::from_chars(text.data(), rest, whole);
  if (whole_fault == std::errc{} && whole_rest == rest) number.whole = whole;
  return number;
}

// number * unit, rounded to a nanosecond; nothing where it is negative, not finite or longer than 292 years.
std::optional<std::int64_t> times(const Number& number, std::int64_t unit) {
  if (number.whole) {
    std::int64_t product = 0;
    if (*number.whole < 0 || __builtin_mul_overflow(*number.whole, unit, &product)) return std::nullopt;
    return product;
  }
  const double product = number.value * static_cast<double>(unit);
  if (!(product >= 0 && product < 9.2e18)) return std::nullopt;
  return std::llround(product);
}

// "P1DT2H30M", "PT0.5S", "P2W"; years and months have no fixed length and are refused.
std::optional<std::int64_t> iso_duration(std::string_view text) {
  if (text.size() < 3 || text.front() != 'P') return std::nullopt;
  text.remove_prefix(1);
  bool clock = false, any = false;
  std::int64_t total = 0;
  while (!text.empty()) {
    if (text.front() == 'T' && !clock) {
      clock = true;
      any = false;
      text.remove_prefix(1);
      continue;
    }
    const auto number = leading_number(text);
    if (!number || number->characters >= text.size()) return std::nullopt;
    const auto unit = length_of(text.substr(number->characters, 1), clock ? kIsoTime : kIsoDate);
    if (!unit) return std::nullopt;
    const auto part = times(*number, *unit);
    if (!part || __builtin_add_overflow(total, *part, &total)) return std::nullopt;
    text.remove_prefix(number->characters + 1);
    any = true;
  }
  return any ? std::optional(total) : std::nullopt;
}

// Seconds east of Greenwich of "+01:00", "-0530" or "+02"; nothing where it is no offset.
std::optional<int> offset_seconds(std::string_view zone) {
  if (zone.size() < 3 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
  std::string digits;
  for (std::size_t i = 1; i < zone.size(); ++i) {
    if (zone[i] == ':' && i == 3) continue;
    if (zone[i] < '0' || zone[i] > '9') return std::nullopt;
    digits += zone[i];
  }
  if (digits.size() == 2) digits += "00";
  if (digits.size() != 4) return std::nullopt;
  const int seconds = ((digits[0] - '0') * 10 + (digits[1] - '0')) * 3600 + ((digits[2] - '0') * 10 + (digits[3] - '0')) * 60;
  return zone[0] == '-' ? -seconds : seconds;
}

}  // namespace

Result<std::int64_t> parse_duration(std::string_view text, std::string_view where) {
  const auto bad = [&](std::string what) {
    return fail({Fault::kBadUse, std::move(what), std::string(where), "a number and one of ns, us, ms, s, min, h, d, w",
                 "For example 10s or 250 ms."});
  };
  const std::string_view body = trimmed(text);
  if (const auto iso = iso_duration(body)) return *iso;
  auto number = leading_number(body);
  std::string_view name = number ? trimmed(body.substr(number->characters)) : body;
  if (!number) {
    if (!length_of(body, kAliases)) return bad(fmt::format("'{}' does not begin with a number", text));
    number = Number{1, 1, 0};  // "H" alone is one hour
  }
  auto unit = length_of(name, kUnits);
  if (!unit) unit = length_of(name, kAliases);
  if (!unit) return bad(name.empty() ? fmt::format("'{}' has no unit", text) : fmt::format("'{}' is no unit of time", name));
  const auto value = times(*number, *unit);
  if (!value) return bad(fmt::format("'{}' is negative, too long or no number", text));
  return *value;
}

std::string duration_text(std::int64_t nanoseconds) {
  if (nanoseconds == 0) return "0s";
  for (auto unit = kUnits.rbegin(); unit != kUnits.rend(); ++unit) {
    if (nanoseconds % unit->second == 0) return fmt::format("{}{}", nanoseconds / unit->second, unit->first);
  }
  return fmt::format("{}ns", nanoseconds);
}

std::string time_text(std::int64_t time_ns, std::string_view zone) {
  const auto offset = offset_seconds(zone);
  const std::string_view suffix = zone.empty() ? "" : offset ? zone : "Z";
  std::int64_t second = time_ns / kSecond, rest = time_ns % kSecond;
  if (rest < 0) {
    rest += kSecond;
    --second;
  }
  second += offset.value_or(0);
  const std::chrono::sys_seconds moment{std::chrono::seconds(second)};
  const auto day = std::chrono::floor<std::chrono::days>(moment);
  const std::chrono::year_month_day date(day);
  const auto clock = (moment - day).count();
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                                 static_cast<unsigned>(date.day()), clock / 3600, clock / 60 % 60, clock % 60);
  if (rest != 0) {
    std::string decimals = fmt::format("{:09}", rest);
    decimals.erase(decimals.find_last_not_of('0') + 1);
    text.append(".").append(decimals);
  }
  return text.append(suffix);
}

}  // namespace kizzasi
