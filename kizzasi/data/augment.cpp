#include "kizzasi/data/augment.h"

#include <cmath>
#include <limits>

namespace kizzasi::data {

void AugmentOptions::fields(FieldVisitor& visit) {
  visit.field({"noise", "Standard deviation of noise on inputs, in normalised units.", 0, 10}, noise);
  visit.field({"scale", "Spread of a random factor on each channel of a window.", 0, 3}, scale);
  visit.field({"shift", "Spread of a random offset on each channel of a window, in normalised units.", 0, 10}, shift);
  visit.field({"mask", "Share of input frames that are hidden.", 0, 0.9}, mask);
}

void augment(std::span<float> values, std::size_t channels, std::size_t inputs, const AugmentOptions& options, Rng& rng) {
  const std::size_t rows = channels == 0 ? 0 : values.size() / channels;
  for (std::size_t c = 0; c < channels && (options.scale > 0 || options.shift > 0); ++c) {
    const double factor = options.scale > 0 ? std::exp(options.scale * rng.normal()) : 1;
    const double offset = options.shift > 0 ? options.shift * rng.normal() : 0;
    for (std::size_t r = 0; r < rows; ++r) {
      float& value = values[r * channels + c];
      value = static_cast<float>(value * factor + offset);
    }
  }
  for (std::size_t r = 0; r < std::min(rows, inputs); ++r) {
    const bool hidden = options.mask > 0 && rng.uniform() < options.mask;
    for (std::size_t c = 0; c < channels; ++c) {
      float& value = values[r * channels + c];
      if (options.noise > 0) value = static_cast<float>(value + options.noise * rng.normal());
      if (hidden) value = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace kizzasi::data
