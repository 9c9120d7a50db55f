// The words and signs of a constraint, each with the place where it stands.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/signal/constraint_text.h"

namespace kizzasi::logic {

// Where a text begins, so that messages name places as the user counts: line and column from 1, columns in characters, not bytes.
struct Source {
  std::string_view text;
  std::string_view name;   // "limits.toml", "--limit"
  std::size_t line = 0;    // of the first character; 0: the text stands in no file, or `name` holds the line
  std::size_t column = 1;  // of the first character
  std::span<const std::shared_ptr<const UserFunction>> functions{};  // that it may name

  // "limits.toml:3:14", "--limit:5" of the character at this byte.
  std::string place(std::size_t offset) const;
};

// What is viewed outlives the source.
inline Source source_of(const ConstraintText& text) { return {text.that, text.where, text.line, text.column, text.functions}; }

struct Token {
  enum class Kind { kEnd, kNumber, kWord, kQuoted, kSign };
  Kind kind = Kind::kEnd;
  std::string text;   // the word, the sign or the name between quotes
  double number = 0;  // kNumber
  std::string unit;   // kNumber: "s" of 10s, "1/s" of 5 [1/s]; empty: none
  std::size_t offset = 0, end = 0;
};

// Letters that begin and go on in a plain word. Bytes of UTF-8 beyond ASCII count as letters.
bool is_letter(char c);
bool is_digit(char c);
// A word that the language keeps for itself: "always", "G", "in".
bool is_reserved(std::string_view word);

// All tokens, the end among them. Errors: a sign that is none, a quote or unit that does not end, a number too large.
Result<std::vector<Token>> tokenize(const Source& source);

}  // namespace kizzasi::logic
