// Numbers as files write them, read without the locale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kizzasi::io {

// Which marks a file uses inside its numbers.
struct NumberStyle {
  char decimal = '.';
  char thousands = '\0';  // '.', ',', ' ' (also the no-break kinds) or '\''; 0: none
};

// Every style that is told apart, in order of preference; bit i of number_styles stands for kStyles[i].
inline constexpr NumberStyle kStyles[] = {{'.', '\0'}, {',', '\0'}, {'.', ','},  {',', '.'},
                                          {'.', ' '},  {',', ' '},  {'.', '\''}, {',', '\''}};
inline constexpr std::size_t kStyleCount = 8;

// The styles in which `text` is a number: a sign, digits in groups of three or not at all, a fraction, an exponent, a percent sign.
// "inf", "Infinity" and the like are numbers in every style (that are not finite). 0: no number.
std::uint8_t number_styles(std::string_view text);

// The value in one style; nothing where it is no number. Not finite where it overflows.
std::optional<double> parse_number(std::string_view text, NumberStyle style);

bool has_percent(std::string_view text);

// An integer beyond 2^53, which a double does not hold exactly.
bool loses_precision(std::string_view text, NumberStyle style);

// Empty, NaN, NA, N/A, #N/A, null, None, -, --, ? and the other usual words for "no value".
bool is_missing_word(std::string_view text);

// Words for yes and no: 1 and 0, and which pair they come from (0 true/false, 1 yes/no, 2 y/n, 3 t/f, 4 on/off).
struct BoolWord {
  bool value;
  std::uint8_t family;
};
std::optional<BoolWord> bool_word(std::string_view text);

}  // namespace kizzasi::io
