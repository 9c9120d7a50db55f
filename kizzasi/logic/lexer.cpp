#include "kizzasi/logic/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace kizzasi::logic {
namespace {

constexpr std::array<std::string_view, 36> kReserved{"and",
                                                     "or",
                                                     "not",
                                                     "xor",
                                                     "implies",
                                                     "iff",
                                                     "in",
                                                     "always",
                                                     "eventually",
                                                     "until",
                                                     "release",
                                                     "next",
                                                     "once",
                                                     "since",
                                                     "unless",
                                                     "previous",
                                                     "historically",
                                                     "inf",
                                                     "nan",
                                                     "infinity",
                                                     "true",
                                                     "false",
                                                     "G",
                                                     "F",
                                                     "U",
                                                     "R",
                                                     "X",
                                                     "Y",
                                                     "O",
                                                     "H",
                                                     "S",
                                                     "W",
                                                     "from",
                                                     "alw_",
                                                     "ev_",
                                                     "until_"};

// Longest first, so that the first that fits is the one meant.
constexpr std::array<std::string_view, 31> kSigns{"<->",
                                                  "<=",
                                                  ">=",
                                                  "==",
                                                  "!=",
                                                  "->",
                                                  "=>",
                                                  "+-",
                                                  "&&",
                                                  "||",
                                                  "\xE2\x89\xA4",
                                                  "\xE2\x89\xA5",
                                                  "\xC2\xB1",
                                                  "<",
                                                  ">",
                                                  "=",
                                                  "+",
                                                  "-",
                                                  "*",
                                                  "/",
                                                  "(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  ",",
                                                  ":",
                                                  "!",
                                                  "&",
                                                  "|",
                                                  "^",
                                                  "~"};

// What a sign is called inside: one name for each meaning.
std::string_view meaning(std::string_view sign) {
  if (sign == "\xE2\x89\xA4") return "<=";
  if (sign == "\xE2\x89\xA5") return ">=";
  if (sign == "\xC2\xB1") return "+-";
  if (sign == "&&") return "&";
  if (sign == "||") return "|";
  return sign;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

class Lexer {
 public:
  explicit Lexer(const Source& source) : source_(source), text_(source.text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (;;) {
      skip_space();
      auto token = next();
      if (!token) return tl::unexpected(token.error());
      token->end = at_;
      tokens.push_back(*std::move(token));
      if (tokens.back().kind == Token::Kind::kEnd) return tokens;
    }
  }

 private:
  Result<Token> next() {
    Token token;
    token.offset = at_;
    if (at_ == text_.size()) return token;
    const char c = text_[at_];
    const bool point_first = c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
    if (is_digit(c) || point_first) return number(std::move(token));
    if (c == '"' || c == '`') return quoted(std::move(token), c);
    for (const std::string_view sign : kSigns) {
      if (!text_.substr(at_).starts_with(sign)) continue;
      at_ += sign.size();
      token.kind = Token::Kind::kSign;
      token.text = meaning(sign);
      return token;
    }
    if (is_letter(c)) {
      token.kind = Token::Kind::kWord;
      token.text = name();
      return token;
    }
    std::size_t end = at_ + 1;
    while (end < text_.size() && !begins_character(text_[end])) ++end;
    const bool shown = static_cast<unsigned char>(c) >= 0x20;
    return bad(shown ? fmt::format("'{}' is no sign of the language", text_.substr(at_, end - at_))
                     : fmt::format("a control character (code {}) stands in the text", static_cast<int>(c)),
               at_, "names, numbers, + - * / < <= > >= == and brackets", "A name with other characters goes in quotes: \"room-temp 2\".");
  }

  // a.b.c: plain words joined by dots; later parts may begin with a digit.
  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const bool dot = text_[at_] == '.' && at_ + 1 < text_.size() && (is_letter(text_[at_ + 1]) || is_digit(text_[at_ + 1]));
      if (!dot && !is_letter(text_[at_]) && !is_digit(text_[at_])) break;
      if (is_sign_beyond_ascii()) break;
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  bool is_sign_beyond_ascii() const {
    const std::string_view rest = text_.substr(at_);
    return rest.starts_with("\xE2\x89\xA4") || rest.starts_with("\xE2\x89\xA5") || rest.starts_with("\xC2\xB1");
  }

  Result<Token> number(Token token) {
    token.kind = Token::Kind::kNumber;
    const auto [rest, fault] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), token.number);
    const std::size_t end = static_cast<std::size_t>(rest - text_.data());
    if (fault == std::errc::result_out_of_range) {
      return bad(fmt::format("the number {} is outside what a double holds", text_.substr(at_, end - at_)), at_,
                 "a number between 5e-324 and 1.7e308 in size", "Leave the limit out where there is none.");
    }
    token.text = text_.substr(at_, end - at_);
    at_ = end;
    // A unit: letters right behind the digits, or anything in brackets.
    if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '%') && !is_sign_beyond_ascii()) {
      const std::size_t begin = at_;
      while (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '%') && !is_sign_beyond_ascii()) ++at_;
      token.unit = text_.substr(begin, at_ - begin);
      return token;
    }
    std::size_t look = at_;
    while (look < text_.size() && is_space(text_[look])) ++look;
    if (look == text_.size() || text_[look] != '[') return token;
    const std::size_t close = text_.find(']', look);
    if (close == text_.npos) return bad("the unit in [ ] does not end", look, "a closing ]", "For example 5 [m/s].");
    std::string_view unit = text_.substr(look + 1, close - look - 1);
    while (!unit.empty() && is_space(unit.front())) unit.remove_prefix(1);
    while (!unit.empty() && is_space(unit.back())) unit.remove_suffix(1);
    if (unit.empty()) return bad("the brackets hold no unit", look, "a unit, such as [m/s]", "Leave them out where there is none.");
    if (unit.find_first_of("[\n\r") != unit.npos) return bad(fmt::format("'{}' is no unit", unit), look, "a unit, such as [m/s]", "");
    token.unit = unit;
    at_ = close + 1;
    return token;
  }

  Result<Token> quoted(Token token, char quote) {
    const std::size_t close = text_.find(quote, at_ + 1);
    if (close == text_.npos) return bad("the quoted name does not end", at_, fmt::format("a closing {}", quote), "");
    token.kind = Token::Kind::kQuoted;
    token.text = text_.substr(at_ + 1, close - at_ - 1);
    if (token.text.empty()) return bad("the quotes hold no name", at_, "a channel's name", "");
    at_ = close + 1;
    return token;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  tl::unexpected<Error> bad(std::string what, std::size_t offset, std::string expected, std::string hint) const {
    return fail({Fault::kBadInput, std::move(what), source_.place(offset), std::move(expected), std::move(hint)});
  }

  const Source& source_;
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string Source::place(std::size_t offset) const {
  std::size_t line_now = line, column_now = column;
  for (std::size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') {
      ++line_now;
      column_now = 1;
    } else if (begins_character(text[i])) {
      ++column_now;
    }
  }
  if (line == 0 && line_now == 0) return fmt::format("{}{}{}", name, name.empty() ? "column " : ":", column_now);
  return fmt::format("{}{}{}:{}", name, name.empty() ? "line " : ":", line == 0 ? line_now + 1 : line_now, column_now);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_reserved(std::string_view word) { return std::find(kReserved.begin(), kReserved.end(), word) != kReserved.end(); }

Result<std::vector<Token>> tokenize(const Source& source) { return Lexer(source).run(); }

}  // namespace kizzasi::logic
