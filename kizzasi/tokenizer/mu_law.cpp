#include "kizzasi/tokenizer/mu_law.h"

#include <algorithm>
#include <cmath>

namespace kizzasi {

double MuLaw::compand(double x) const noexcept {
  const double mu = static_cast<double>(mu_);
  x = x > 1 ? 1 : x < -1 ? -1 : x;
  return std::copysign(std::log1p(mu * std::abs(x)) / std::log1p(mu), x);
}

double MuLaw::expand(double y) const noexcept {
  const double mu = static_cast<double>(mu_);
  return std::copysign(std::expm1(std::abs(y) * std::log1p(mu)) / mu, y);
}

std::optional<Token> MuLaw::quantize(double x) const noexcept {
  if (std::isnan(x)) return {};
  const double y = compand(x), mu = static_cast<double>(mu_);
  if (rule_ == MuLawRule::kTorchaudio) return static_cast<Token>(std::floor((y + 1) / 2 * mu + 0.5));
  return static_cast<Token>(std::min(mu, std::floor((y + 1) * (mu + 1) / 2 + 0.5)));
}

double MuLaw::dequantize(Token token) const noexcept {
  const double steps = static_cast<double>(rule_ == MuLawRule::kTorchaudio ? mu_ : mu_ + 1);
  return expand(2 * static_cast<double>(token) / steps - 1);
}

}  // namespace kizzasi
