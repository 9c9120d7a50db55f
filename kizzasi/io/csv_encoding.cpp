#include "kizzasi/io/csv_encoding.h"

#include <array>
#include <span>

namespace kizzasi::io {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

// 0x80..0x9F of windows-1252; the rest of the page is Latin-1.
constexpr std::array<std::uint16_t, 32> kWindowsPage{0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
                                                     0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
                                                     0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};

void put(std::uint32_t code, std::string& text) {
  const auto byte = [&](std::uint32_t value) { text.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0U | (code >> 6U));
    byte(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    byte(0xE0U | (code >> 12U));
    byte(0x80U | ((code >> 6U) & 0x3FU));
    byte(0x80U | (code & 0x3FU));
  } else {
    byte(0xF0U | (code >> 18U));
    byte(0x80U | ((code >> 12U) & 0x3FU));
    byte(0x80U | ((code >> 6U) & 0x3FU));
    byte(0x80U | (code & 0x3FU));
  }
}

// Length of the valid UTF-8 character that begins at `at`; 0: none; -1: cut off by the end (RFC 3629, section 4).
int character_length(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  int length = 0;
  unsigned low = 0x80, high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  for (int i = 1; i < length; ++i) {
    const std::size_t place = at + static_cast<std::size_t>(i);
    if (place >= bytes.size()) return -1;
    if (byte(place) < low || byte(place) > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

}  // namespace

const char* to_string(Encoding encoding) {
  constexpr std::array<const char*, 5> kNames{"utf-8", "utf-8-bom", "utf-16-le", "utf-16-be", "windows-1252"};
  return kNames[static_cast<std::size_t>(encoding)];
}

Encoding guess_encoding(std::string_view head) {
  if (head.starts_with("\xEF\xBB\xBF")) return Encoding::kUtf8Bom;
  if (head.starts_with("\xFF\xFE")) return Encoding::kUtf16Le;
  if (head.starts_with("\xFE\xFF")) return Encoding::kUtf16Be;
  const std::size_t pairs = std::min<std::size_t>(head.size() / 2, 2000);
  std::size_t even = 0, odd = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    even += head[2 * i] == '\0' ? 1 : 0;
    odd += head[2 * i + 1] == '\0' ? 1 : 0;
  }
  if (pairs >= 4 && odd * 10 >= pairs * 8 && even * 10 <= pairs) return Encoding::kUtf16Le;
  if (pairs >= 4 && even * 10 >= pairs * 8 && odd * 10 <= pairs) return Encoding::kUtf16Be;
  return Encoding::kUtf8;
}

Result<bool> Utf8Reader::append(std::string& text) {
  if (ended_) return false;
  constexpr std::size_t kBlock = std::size_t{1} << 16U;
  if (!block_) block_ = std::make_unique_for_overwrite<char[]>(kBlock);
  const auto got = source_->read(std::span(block_.get(), kBlock));
  if (!got) return fail(got.error());
  ended_ = *got < kBlock;
  std::string joined = std::move(carry_);
  carry_.clear();
  joined.append(block_.get(), *got);
  std::string_view bytes = joined;
  if (!begun_) {
    begun_ = true;
    if (encoding_ == Encoding::kUtf8Bom) bytes.remove_prefix(std::min<std::size_t>(3, bytes.size()));
    if (bytes.starts_with(encoding_ == Encoding::kUtf16Le ? "\xFF\xFE" : "\xFE\xFF") &&
        (encoding_ == Encoding::kUtf16Le || encoding_ == Encoding::kUtf16Be)) {
      bytes.remove_prefix(2);
    }
  }
  decode(bytes, ended_, text);
  return true;
}

void Utf8Reader::decode(std::string_view bytes, bool last, std::string& text) {
  switch (encoding_) {
    case Encoding::kUtf8:
    case Encoding::kUtf8Bom:
      return decode_utf8(bytes, last, text);
    case Encoding::kUtf16Le:
    case Encoding::kUtf16Be:
      return decode_utf16(bytes, last, text);
    case Encoding::kWindows1252:
      for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        put(byte >= 0x80 && byte < 0xA0 ? kWindowsPage[byte - 0x80U] : byte, text);
      }
  }
}

void Utf8Reader::decode_utf8(std::string_view bytes, bool last, std::string& text) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const int length = character_length(bytes, at);
    if (length > 0) {
      at += static_cast<std::size_t>(length);
      continue;
    }
    if (length < 0 && !last) break;
    invalid_ = true;
    text.append(bytes.substr(0, at));
    put(kReplacement, text);
    bytes.remove_prefix(at + 1);
    at = 0;
  }
  text.append(bytes.substr(0, at));
  carry_.assign(bytes.substr(at));
}

void Utf8Reader::decode_utf16(std::string_view bytes, bool last, std::string& text) {
  const bool little = encoding_ == Encoding::kUtf16Le;
  const auto unit = [&](std::size_t at) {
    const auto a = static_cast<unsigned char>(bytes[at]), b = static_cast<unsigned char>(bytes[at + 1]);
    return static_cast<std::uint32_t>(little ? a | (b << 8U) : b | (a << 8U));
  };
  std::size_t at = 0;
  while (at + 1 < bytes.size()) {
    const std::uint32_t code = unit(at);
    const bool leads = code >= 0xD800 && code < 0xDC00;
    if (leads && at + 3 >= bytes.size() && !last) break;
    if (leads && at + 3 < bytes.size() && unit(at + 2) >= 0xDC00 && unit(at + 2) < 0xE000) {
      put(0x10000U + ((code - 0xD800U) << 10U) + (unit(at + 2) - 0xDC00U), text);
      at += 4;
      continue;
    }
    put(code >= 0xD800 && code < 0xE000 ? kReplacement : code, text);
    at += 2;
  }
  if (last && at < bytes.size()) put(kReplacement, text);
  if (!last) carry_.assign(bytes.substr(at));
}

}  // namespace kizzasi::io
