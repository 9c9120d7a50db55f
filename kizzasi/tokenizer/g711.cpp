#include "kizzasi/tokenizer/g711.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kizzasi {
namespace {

constexpr int kBias = 33;         // of mu-law, in 14 bits: segments then begin at powers of two
constexpr int kLargest = 0x1FFF;  // of 14 bits without a sign
constexpr int kPlaces = 16;       // in a segment
constexpr std::uint8_t kMuTurned = 0xFF, kATurned = 0x55, kPositive = 0x80;

// Negative samples by their ones' complement, as the reference does it: -1 stands beside 0.
int size_of(std::int16_t sample) noexcept { return sample < 0 ? ~sample : sample; }

std::uint8_t mu_code(std::int16_t sample) noexcept {
  const int size = std::min((size_of(sample) >> 2) + kBias, kLargest);
  const int segment = std::bit_width(static_cast<unsigned>(size)) - 6;  // 0 to 7
  const int place = (size >> (segment + 1)) & (kPlaces - 1);
  const auto code = static_cast<std::uint8_t>(segment << 4 | place);
  return static_cast<std::uint8_t>((code ^ kMuTurned) & (sample < 0 ? 0x7F : 0xFF));
}

std::int16_t mu_sample(std::uint8_t code) noexcept {
  const int bits = code ^ kMuTurned, segment = bits >> 4 & 7, place = bits & (kPlaces - 1);
  const int size = ((2 * place + kBias) << (segment + 2)) - 4 * kBias;  // the middle of its cell
  return static_cast<std::int16_t>(code < kPositive ? -size : size);
}

std::uint8_t a_code(std::int16_t sample) noexcept {
  int size = size_of(sample) >> 4;
  if (size >= kPlaces) {
    const int segment = std::bit_width(static_cast<unsigned>(size)) - 4;  // 1 to 7
    size = (size >> (segment - 1)) - kPlaces + segment * kPlaces;
  }
  return static_cast<std::uint8_t>((size | (sample < 0 ? 0 : kPositive)) ^ kATurned);
}

std::int16_t a_sample(std::uint8_t code) noexcept {
  const int bits = code ^ kATurned, segment = bits >> 4 & 7, place = bits & (kPlaces - 1);
  const int size = segment == 0 ? 16 * place + 8 : (16 * (place + kPlaces) + 8) << (segment - 1);
  return static_cast<std::int16_t>((bits & kPositive) != 0 ? size : -size);
}

}  // namespace

std::uint8_t g711_encode(G711Law law, std::int16_t sample) noexcept { return law == G711Law::kMu ? mu_code(sample) : a_code(sample); }
std::int16_t g711_decode(G711Law law, std::uint8_t code) noexcept { return law == G711Law::kMu ? mu_sample(code) : a_sample(code); }

std::optional<Token> G711::quantize(double x) const noexcept {
  if (std::isnan(x)) return {};
  const double sample = std::clamp(std::round(std::clamp(x, -1.0, 1.0) * 32768), -32768.0, 32767.0);
  return g711_encode(law_, static_cast<std::int16_t>(sample));
}

double G711::dequantize(Token token) const noexcept { return g711_decode(law_, static_cast<std::uint8_t>(token)) / 32768.0; }

}  // namespace kizzasi
