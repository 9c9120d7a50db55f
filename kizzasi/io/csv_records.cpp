#include "kizzasi/io/csv_records.h"

#include <array>
#include <cstring>

namespace kizzasi::io {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Where the record that begins at `begin` ends: the newline outside quotes, or text.size(). Counts the newlines inside.
struct Extent {
  std::size_t end = 0;
  std::size_t inner_lines = 0;
  bool complete = false;    // the newline is there
  bool open_quote = false;  // the text ends inside quotes
};

Extent extent(std::string_view text, std::size_t begin, char delimiter, char newline) {
  Extent found;
  const std::size_t plain = std::min(text.find(newline, begin), text.size());
  const std::size_t quote = text.substr(begin, plain - begin).find('"');
  if (quote == text.npos) {
    found.end = plain;
    found.complete = plain < text.size();
    return found;
  }
  bool at_start = true, inside = false;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      if (c == '"') {
        if (i + 1 < text.size() && text[i + 1] == '"') {
          ++i;
        } else {
          inside = false;
        }
      } else if (c == newline) {
        ++found.inner_lines;
      }
      continue;
    }
    if (c == newline) {
      found.end = i;
      found.complete = true;
      return found;
    }
    if (c == '"' && at_start) {
      inside = true;
      at_start = false;
    } else if (c == delimiter || (delimiter == ' ' && c == '\t')) {
      at_start = true;
    } else if (!is_blank(c)) {
      at_start = false;
    }
  }
  found.end = text.size();
  found.open_quote = inside;
  return found;
}

std::string undoubled(std::string_view quoted) {
  std::string plain;
  plain.reserve(quoted.size());
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    plain.push_back(quoted[i]);
    if (quoted[i] == '"' && i + 1 < quoted.size() && quoted[i + 1] == '"') ++i;
  }
  return plain;
}

}  // namespace

const char* to_string(Newline newline) {
  constexpr std::array<const char*, 3> kNames{"lf", "crlf", "cr"};
  return kNames[static_cast<std::size_t>(newline)];
}

Newline guess_newline(std::string_view head) {
  std::size_t lf = 0, crlf = 0, cr = 0;
  for (std::size_t i = 0; i < head.size(); ++i) {
    if (head[i] == '\n') ++lf;
    if (head[i] != '\r') continue;
    if (i + 1 < head.size() && head[i + 1] == '\n') {
      ++crlf;
      ++i;
    } else {
      ++cr;
    }
  }
  if (crlf > 0 && crlf >= lf && crlf >= cr) return Newline::kCrLf;
  return cr > lf ? Newline::kCr : Newline::kLf;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kNoBreak = "\xC2\xA0";
  while (true) {
    if (!text.empty() && is_blank(text.front())) {
      text.remove_prefix(1);
    } else if (!text.empty() && is_blank(text.back())) {
      text.remove_suffix(1);
    } else if (text.starts_with(kNoBreak)) {
      text.remove_prefix(2);
    } else if (text.ends_with(kNoBreak)) {
      text.remove_suffix(2);
    } else {
      return text;
    }
  }
}

bool split_fields(std::string_view line, char delimiter, std::vector<std::string_view>& fields, std::vector<std::string>& unquoted) {
  fields.clear();
  // Views into `unquoted` must stay valid while it grows.
  std::size_t quotes = 0;
  for (const char c : line) quotes += c == '"' ? 1 : 0;
  unquoted.clear();
  unquoted.reserve(quotes / 2 + 1);
  const bool blanks = delimiter == ' ';
  const auto ends_field = [&](char c) { return c == delimiter || (blanks && c == '\t'); };
  bool closed = true;
  std::size_t at = 0;
  if (blanks) line = trimmed(line);
  while (true) {
    while (at < line.size() && is_blank(line[at]) && line[at] != delimiter) ++at;
    if (at < line.size() && line[at] == '"') {
      const std::size_t begin = at + 1;
      bool doubled = false;
      std::size_t end = begin;
      closed = false;
      for (; end < line.size(); ++end) {
        if (line[end] != '"') continue;
        if (end + 1 < line.size() && line[end + 1] == '"') {
          doubled = true;
          ++end;
          continue;
        }
        closed = true;
        break;
      }
      std::string_view inside = line.substr(begin, std::min(end, line.size()) - begin);
      at = std::min(end + 1, line.size());
      std::size_t next = at;
      while (next < line.size() && !ends_field(line[next])) ++next;
      const std::string_view after = trimmed(line.substr(at, next - at));
      if (doubled || !after.empty()) {
        unquoted.push_back(undoubled(inside));
        unquoted.back().append(after);  // "abc"def: what stands behind the quotes belongs to the field
        inside = unquoted.back();
      }
      fields.push_back(inside);
      at = next;
    } else {
      std::size_t next = at;
      while (next < line.size() && !ends_field(line[next])) ++next;
      fields.push_back(trimmed(line.substr(at, next - at)));
      at = next;
    }
    if (at >= line.size()) return closed;
    ++at;
    if (blanks) {
      while (at < line.size() && is_blank(line[at])) ++at;
    } else if (at >= line.size()) {
      fields.emplace_back();
      return closed;
    }
  }
}

Result<bool> RecordReader::fill() {
  if (begin_ > 0) {
    text_.erase(0, begin_);
    begin_ = 0;
  }
  auto more = reader_.append(text_);
  if (more && !*more) ended_ = true;
  return more;
}

Result<bool> RecordReader::next(Record& record) {
  const char newline = newline_ == Newline::kCr ? '\r' : '\n';
  Extent found;
  while (true) {
    found = extent(text_, begin_, delimiter_, newline);
    const std::size_t length = found.end - begin_;
    if (found.complete || length > kMostBytes) break;
    if (ended_) {
      if (begin_ >= text_.size()) return false;
      break;
    }
    // Read on in growing steps, so that a very long record is not scanned again for every block.
    const std::size_t wanted = text_.size() - begin_ + std::max<std::size_t>(1, (text_.size() - begin_) / 2);
    do {
      const auto more = fill();
      if (!more) return fail(more.error());
      if (!*more) break;
    } while (text_.size() < wanted);
  }
  record.line = line_;
  record.too_long = found.end - begin_ > kMostBytes;
  record.open_quote = found.open_quote && !record.too_long;
  std::string_view text = std::string_view(text_).substr(begin_, found.end - begin_);
  if (newline == '\n' && text.ends_with('\r')) text.remove_suffix(1);
  record.text = text;
  record.lines = found.inner_lines + 1;
  record.has_nul = std::memchr(text.data(), '\0', text.size()) != nullptr;
  split_fields(text, delimiter_, record.fields, unquoted_);
  line_ += record.lines;
  begin_ = std::min(found.end + (found.complete ? 1 : 0), text_.size());
  return true;
}

}  // namespace kizzasi::io
