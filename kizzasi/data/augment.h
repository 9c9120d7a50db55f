// Windows changed a little, so that a model sees more than was recorded.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/base/fields.h"
#include "kizzasi/base/rng.h"

namespace kizzasi::data {

// Sizes in units of normalised values (a standard deviation is 1). 0: off.
struct AugmentOptions {
  double noise = 0;  // standard deviation of independent noise on every input value
  double scale = 0;  // each channel times exp(normal(0, scale)), inputs and answers alike
  double shift = 0;  // each channel plus normal(0, shift), inputs and answers alike
  double mask = 0;   // share of input frames that are hidden: set to NaN, as missing values are

  void fields(FieldVisitor& visit);
  bool any() const { return noise > 0 || scale > 0 || shift > 0 || mask > 0; }
};

// One window in place: rows [0, inputs) are inputs, the rest answers. A missing value stays missing. The same generator gives the same
// window on every machine. Thread: any, one generator each.
void augment(std::span<float> values, std::size_t channels, std::size_t inputs, const AugmentOptions& options, Rng& rng);

}  // namespace kizzasi::data
