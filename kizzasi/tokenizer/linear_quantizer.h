// Levels at equal distances.
#pragma once

#include "kizzasi/tokenizer/tokenizer.h"

namespace kizzasi {

// kTread: both ends are levels, step (max - min) / (2^bits - 1), the nearest level.
// kRise: 2^bits cells of (max - min) / 2^bits, each told by its middle.
enum class LinearLevels : std::uint8_t { kTread, kRise };

class LinearQuantizer final : public Quantizer {
 public:
  // min < max, bits 1 to 16.
  LinearQuantizer(double min, double max, int bits, LinearLevels where = LinearLevels::kTread) noexcept;
  std::string_view name() const noexcept override { return where_ == LinearLevels::kTread ? "linear" : "linear_rise"; }
  std::size_t levels() const noexcept override { return levels_; }
  std::optional<Token> quantize(double x) const noexcept override;
  double dequantize(Token token) const noexcept override;
  double step_size() const noexcept { return step_; }

 private:
  LinearLevels where_;
  std::size_t levels_;
  double min_, max_, step_;
};

}  // namespace kizzasi
