#include "kizzasi/tokenizer/linear_quantizer.h"

#include <algorithm>
#include <cmath>

namespace kizzasi {

LinearQuantizer::LinearQuantizer(double min, double max, int bits, LinearLevels where) noexcept
    : where_(where), levels_(std::size_t{1} << bits), min_(min), max_(max) {
  step_ = (max - min) / static_cast<double>(where == LinearLevels::kTread ? levels_ - 1 : levels_);
}

std::optional<Token> LinearQuantizer::quantize(double x) const noexcept {
  if (std::isnan(x)) return {};
  const double steps = (std::clamp(x, min_, max_) - min_) / step_, last = static_cast<double>(levels_ - 1);
  return static_cast<Token>(std::min(last, std::floor(where_ == LinearLevels::kTread ? steps + 0.5 : steps)));
}

double LinearQuantizer::dequantize(Token token) const noexcept {
  const double steps = static_cast<double>(token);
  if (where_ == LinearLevels::kRise) return min_ + (steps + 0.5) * step_;
  return token + 1 == levels_ ? max_ : min_ + steps * step_;  // the end itself, not what rounding makes of it
}

}  // namespace kizzasi
