// The bytes of a text file as UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "kizzasi/io/byte_source.h"

namespace kizzasi::io {

enum class Encoding { kUtf8, kUtf8Bom, kUtf16Le, kUtf16Be, kWindows1252 };

const char* to_string(Encoding encoding);  // "utf-8", "utf-8-bom", "utf-16-le", "utf-16-be", "windows-1252"

// By the mark at the beginning; without one, UTF-16 where every other byte of the head is zero, else UTF-8. (Whether it is UTF-8 to the end
// only reading tells: Utf8Reader::invalid.)
Encoding guess_encoding(std::string_view head);

// A source's text in UTF-8, the mark left out, in blocks. UTF-16 surrogates without a partner and bytes that windows-1252 does not define
// become U+FFFD.
class Utf8Reader {
 public:
  Utf8Reader(ByteSource& source, Encoding encoding) : source_(&source), encoding_(encoding) {}

  // Appends the next block to `text`; false at the end.
  Result<bool> append(std::string& text);
  // True once a block was no valid UTF-8 although the encoding says so.
  bool invalid() const noexcept { return invalid_; }

 private:
  void decode(std::string_view bytes, bool last, std::string& text);
  void decode_utf8(std::string_view bytes, bool last, std::string& text);
  void decode_utf16(std::string_view bytes, bool last, std::string& text);

  ByteSource* source_;
  Encoding encoding_;
  std::unique_ptr<char[]> block_;
  std::string carry_;  // bytes of a character that a block's end cut in two
  bool begun_ = false, ended_ = false, invalid_ = false;
};

}  // namespace kizzasi::io
