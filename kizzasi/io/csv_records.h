// The records of a delimited text, one at a time, with the physical lines they stand on.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kizzasi/io/csv_encoding.h"

namespace kizzasi::io {

enum class Newline { kLf, kCrLf, kCr };

const char* to_string(Newline newline);  // "lf", "crlf", "cr"

// The newline that `head` uses first and most.
Newline guess_newline(std::string_view head);

// Views are valid until the next record is read.
struct Record {
  std::size_t line = 0;   // physical line where it begins, from 1
  std::size_t lines = 1;  // physical lines that it covers
  std::string_view text;  // as it stands, without the newline
  std::vector<std::string_view> fields;
  bool has_nul = false;
  bool open_quote = false;  // the file ends inside its quotes
  bool too_long = false;    // it was cut at RecordReader::kMostBytes
};

// Fields: separated by the delimiter (' ' stands for runs of blanks and tabs); a field that begins with a double quote ends with one, and
// may hold delimiters, newlines and doubled quotes. Blanks around a field are no part of it. Memory is bounded by the longest record.
class RecordReader {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;

  RecordReader(Utf8Reader text, char delimiter, Newline newline) : reader_(std::move(text)), delimiter_(delimiter), newline_(newline) {}

  // False at the end.
  Result<bool> next(Record& record);
  bool invalid_text() const noexcept { return reader_.invalid(); }

 private:
  Result<bool> fill();

  Utf8Reader reader_;
  char delimiter_;
  Newline newline_;
  std::string text_;       // decoded, not yet given out
  std::size_t begin_ = 0;  // of the next record
  std::size_t line_ = 1;
  bool ended_ = false;
  std::vector<std::string> unquoted_;  // fields whose doubled quotes were undone
};

// The fields of one line, by the same rules; views into `line` or `unquoted`. False when a quote is not closed.
bool split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields, std::vector<std::string>& unquoted);

// Without blanks (also the no-break kind) at both ends.
std::string_view trimmed(std::string_view text);

}  // namespace kizzasi::io
