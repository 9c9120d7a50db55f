#include "kizzasi/io/number.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace kizzasi::io {
namespace {

constexpr double kTwoTo53 = 9007199254740992.0;
constexpr std::string_view kUnicodeMinus = "\xE2\x88\x92";

bool digit(char c) { return c >= '0' && c <= '9'; }

bool equals(std::string_view text, std::string_view small) {
  if (text.size() != small.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != small[i]) return false;
  }
  return true;
}

struct Signed {
  bool minus = false;
  std::string_view body;
};

// Sign and percent sign taken off.
Signed stripped(std::string_view text) {
  Signed out;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
  }
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  } else if (text.starts_with('-')) {
    out.minus = true;
    text.remove_prefix(1);
  } else if (text.starts_with(kUnicodeMinus)) {
    out.minus = true;
    text.remove_prefix(kUnicodeMinus.size());
  }
  out.body = text;
  return out;
}

// Bytes of the thousands mark at the beginning of `text`; 0: none.
std::size_t mark_length(std::string_view text, char thousands) {
  if (text.empty() || thousands == '\0') return 0;
  if (thousands == ' ') {
    if (text.starts_with("\xC2\xA0")) return 2;
    if (text.starts_with("\xE2\x80\xAF") || text.starts_with("\xE2\x80\x89")) return 3;
  }
  if (thousands == '\'' && text.starts_with("\xE2\x80\x99")) return 3;
  return text.front() == thousands ? 1 : 0;
}

// The number with '.' and without marks, into `plain`; false where it is none in this style.
template <std::size_t N>
bool normalise(std::string_view body, NumberStyle style, std::array<char, N>& plain, std::size_t& length) {
  length = 0;
  const auto put = [&](char c) {
    if (length >= N) return false;
    plain[length++] = c;
    return true;
  };
  std::size_t at = 0, digits = 0, group = 0;
  bool marked = false;
  while (at < body.size()) {
    if (digit(body[at])) {
      if (!put(body[at])) return false;
      ++digits;
      ++group;
      ++at;
      continue;
    }
    const std::size_t mark = mark_length(body.substr(at), style.thousands);
    if (mark == 0) break;
    // A first group of one to three digits that is not 0, then groups of exactly three.
    if (marked ? group != 3 : (group < 1 || group > 3 || plain[0] == '0')) return false;
    marked = true;
    group = 0;
    at += mark;
  }
  if (marked && group != 3) return false;
  if (at < body.size() && body[at] == style.decimal) {
    if (!put('.')) return false;
    ++at;
    while (at < body.size() && digit(body[at])) {
      if (!put(body[at])) return false;
      ++digits;
      ++at;
    }
  }
  if (digits == 0) return false;
  if (at < body.size() && (body[at] == 'e' || body[at] == 'E')) {
    put('e');
    ++at;
    if (at < body.size() && (body[at] == '+' || body[at] == '-')) {
      if (body[at] == '-' && !put('-')) return false;
      ++at;
    }
    const std::size_t begin = at;
    while (at < body.size() && digit(body[at])) {
      if (!put(body[at])) return false;
      ++at;
    }
    if (at == begin) return false;
  }
  return at == body.size();
}

bool is_infinite(std::string_view body) { return equals(body, "inf") || equals(body, "infinity") || equals(body, "1.#inf"); }

}  // namespace

std::uint8_t number_styles(std::string_view text) {
  if (text.empty() || text.size() > 64) return 0;
  const std::string_view body = stripped(text).body;
  if (body.empty()) return 0;
  std::size_t at = 0;
  while (at < body.size() && digit(body[at])) ++at;
  if (at == body.size()) return 0xFF;
  if (!digit(body.front()) && body.front() != '.' && body.front() != ',') return is_infinite(body) ? 0xFF : 0;
  std::array<char, 72> plain{};
  std::size_t length = 0;
  std::uint8_t styles = 0;
  for (std::size_t i = 0; i < kStyleCount; ++i) {
    if (normalise(body, kStyles[i], plain, length)) styles = static_cast<std::uint8_t>(styles | (1U << i));
  }
  return styles;
}

std::optional<double> parse_number(std::string_view text, NumberStyle style) {
  if (text.empty() || text.size() > 64) return std::nullopt;
  const Signed parts = stripped(text);
  if (is_infinite(parts.body)) return parts.minus ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  std::array<char, 72> plain{};
  std::size_t length = 0;
  if (!normalise(parts.body, style, plain, length)) return std::nullopt;
  double value = 0;
  const auto [rest, fault] = std::from_chars(plain.data(), plain.data() + length, value);
  if (fault == std::errc::result_out_of_range) {
    // Too small reads as 0, too large as infinite; the exponent tells which.
    const std::string_view written(plain.data(), length);
    const auto e = written.find('e');
    value = e != written.npos && written.substr(e + 1).starts_with('-') ? 0.0 : std::numeric_limits<double>::infinity();
  } else if (fault != std::errc{} || rest != plain.data() + length) {
    return std::nullopt;
  }
  return parts.minus ? -value : value;
}

bool has_percent(std::string_view text) { return text.ends_with('%'); }

bool loses_precision(std::string_view text, NumberStyle style) {
  if (text.size() < 16) return false;
  const std::string_view body = stripped(text).body;
  for (std::size_t at = 0; at < body.size();) {
    if (digit(body[at])) {
      ++at;
      continue;
    }
    const std::size_t mark = mark_length(body.substr(at), style.thousands);
    if (mark == 0) return false;
    at += mark;
  }
  const auto value = parse_number(text, style);
  return value && std::fabs(*value) >= kTwoTo53 && body != "9007199254740992";
}

bool is_missing_word(std::string_view text) {
  switch (text.size()) {
    case 0:
      return true;
    case 1:
      return text == "-" || text == "?";
    case 2:
      return text == "--" || text == "NA";
    case 3:
      return text == "NaN" || text == "nan" || text == "N/A" || text == "n/a" || text == "NAN";
    case 4:
      return text == "null" || text == "NULL" || text == "None" || text == "Null" || text == "#N/A" || text == "-nan" || text == "-NaN";
    default:
      return false;
  }
}

std::optional<BoolWord> bool_word(std::string_view text) {
  constexpr std::array<std::array<std::string_view, 2>, 5> kPairs{
      {{"false", "true"}, {"no", "yes"}, {"n", "y"}, {"f", "t"}, {"off", "on"}}};
  if (text.empty() || text.size() > 5) return std::nullopt;
  for (std::size_t family = 0; family < kPairs.size(); ++family) {
    for (std::size_t value = 0; value < 2; ++value) {
      if (equals(text, kPairs[family][value])) return BoolWord{value == 1, static_cast<std::uint8_t>(family)};
    }
  }
  return std::nullopt;
}

}  // namespace kizzasi::io
