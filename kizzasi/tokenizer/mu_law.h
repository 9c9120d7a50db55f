// Mu-law: small values get more levels than large ones.
#pragma once

#include "kizzasi/tokenizer/tokenizer.h"

namespace kizzasi {

// Of y = sign(x) ln(1 + mu |x|) / ln(1 + mu), x clipped to [-1, 1]:
//   kHalf        level = min(levels - 1, round((y + 1) levels / 2)), back y = 2 level / levels - 1: 0 has a level of its own
//   kTorchaudio  level = floor((y + 1) mu / 2 + 1/2),                back y = 2 level / mu - 1 (WaveNet, van den Oord et al. 2016)
// The two differ by one level for about half of all values: what one wrote, the other reads with half a step of bias.
enum class MuLawRule : std::uint8_t { kHalf, kTorchaudio };

class MuLaw final : public Quantizer {
 public:
  // bits 1 to 16: 2^bits levels.
  explicit MuLaw(int bits, MuLawRule rule = MuLawRule::kHalf) noexcept : MuLaw(rule, (std::int64_t{1} << bits) - 1) {}
  // mu >= 1: mu + 1 levels.
  static MuLaw with_mu(std::int64_t mu, MuLawRule rule = MuLawRule::kHalf) noexcept { return MuLaw(rule, mu); }

  std::string_view name() const noexcept override { return rule_ == MuLawRule::kHalf ? "mu_law" : "mu_law_torchaudio"; }
  std::size_t levels() const noexcept override { return static_cast<std::size_t>(mu_) + 1; }
  std::optional<Token> quantize(double x) const noexcept override;
  double dequantize(Token token) const noexcept override;

  std::int64_t mu() const noexcept { return mu_; }
  // x from -1 to 1, else the nearer end; NaN stays.
  double compand(double x) const noexcept;
  double expand(double y) const noexcept;

 private:
  MuLaw(MuLawRule rule, std::int64_t mu) noexcept : rule_(rule), mu_(mu) {}

  MuLawRule rule_;
  std::int64_t mu_;
};

}  // namespace kizzasi
