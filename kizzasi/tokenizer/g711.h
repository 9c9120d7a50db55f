// The two codes of the telephone, ITU-T G.711, as the reference software of ITU-T G.191 has them.
#pragma once

#include <cstdint>

#include "kizzasi/tokenizer/tokenizer.h"

namespace kizzasi {

enum class G711Law : std::uint8_t { kMu, kA };

// Of 16-bit samples: eight bits of sign, three of segment, four of place, with the bits turned that the line wants turned (mu-law: all,
// A-law: every second). Mu-law uses the upper 14 bits, A-law the upper 13. Real-time: yes.
std::uint8_t g711_encode(G711Law law, std::int16_t sample) noexcept;
std::int16_t g711_decode(G711Law law, std::uint8_t code) noexcept;

// Values from -1 to 1 are 32768 times as many, to the nearest, ties away from 0.
class G711 final : public Quantizer {
 public:
  explicit G711(G711Law law) noexcept : law_(law) {}
  std::string_view name() const noexcept override { return law_ == G711Law::kMu ? "g711_mu_law" : "g711_a_law"; }
  std::size_t levels() const noexcept override { return 256; }
  std::optional<Token> quantize(double x) const noexcept override;
  double dequantize(Token token) const noexcept override;

 private:
  G711Law law_;
};

}  // namespace kizzasi
