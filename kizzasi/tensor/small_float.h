// Floating-point numbers of one and two bytes, as files hold them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {

// `bits` with its sign, `exponent` and `mantissa` bits as IEEE 754 would have them; the widest exponent is infinity or NaN unless `finite`,
// where only all ones is NaN (F8_E4M3).
inline double small_float(unsigned bits, int exponent_bits, int mantissa_bits, bool finite) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const unsigned mantissa = bits & ((1u << mantissa_bits) - 1);
  const unsigned exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const double sign = (bits >> (exponent_bits + mantissa_bits)) & 1u ? -1.0 : 1.0;
  const bool widest = exponent == (1u << exponent_bits) - 1;
  if (widest && finite && mantissa == (1u << mantissa_bits) - 1) return std::numeric_limits<double>::quiet_NaN();
  if (widest && !finite) {
    return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  const int shift = std::max(1, static_cast<int>(exponent)) - bias - mantissa_bits;
  return sign * std::ldexp(static_cast<double>(mantissa + (exponent == 0 ? 0u : 1u << mantissa_bits)), shift);
}

}  // namespace kizzasi
