// The numbers that can leave: all doubles, or those that a text with n decimals reads back to; and the last of them that obeys.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kizzasi::logic {

// Real-time: yes. Infinite and NaN arguments come back as they are.
class Grid {
 public:
  static constexpr int kMostDecimals = 22;  // 10^22 is the last power of ten that a double holds exactly
  Grid() = default;
  explicit Grid(int decimals);  // -1: all doubles; 0..kMostDecimals

  int decimals() const noexcept { return decimals_; }
  bool all_doubles() const noexcept { return decimals_ < 0; }
  double nearest(double x) const noexcept;  // ties to even
  double floor(double x) const noexcept;    // the largest member <= x
  double ceil(double x) const noexcept { return -floor(-x); }
  double above(double x) const noexcept;  // the next larger member after a member
  double below(double x) const noexcept { return -above(-x); }
  bool contains(double x) const noexcept { return nearest(x) == x; }

 private:
  // Where doubles lie at least 10^-n apart, each reads back from its own n decimals.
  bool coarse(double x) const noexcept;
  double below_or_at(double x) const noexcept;  // the largest whole k with k / 10^n <= x
  int decimals_ = -1;
  double power_ = 1, step_ = 0;
};

// Doubles in order, as whole numbers: neighbours differ by one, and both zeros are 0.
inline std::int64_t order_of(double x) noexcept {
  const auto bits = std::bit_cast<std::int64_t>(x);
  return bits >= 0 ? bits : std::numeric_limits<std::int64_t>::min() - bits;
}
inline double with_order(std::int64_t order) noexcept {
  return std::bit_cast<double>(order >= 0 ? order : std::numeric_limits<std::int64_t>::min() - order);
}

// The largest finite double x with holds(x), where `holds` is true up to some point and false beyond it. Steps away from `guess` in growing
// strides, then halves: a handful of calls where the guess is good, about 130 at worst. +infinity: all obey; -infinity: none does.
template <typename Holds>
double largest(double guess, Holds holds) noexcept {
  constexpr std::int64_t kTop = std::bit_cast<std::int64_t>(std::numeric_limits<double>::max());
  constexpr std::int64_t kLongestStride = std::int64_t{1} << 61;
  std::int64_t good = std::isnan(guess) ? 0 : order_of(guess);
  good = good > kTop ? kTop : (good < -kTop ? -kTop : good);
  std::int64_t bad = good, stride = 1;
  if (holds(with_order(good))) {
    for (;;) {
      if (good == kTop) return std::numeric_limits<double>::infinity();
      bad = good > kTop - stride ? kTop : good + stride;
      if (!holds(with_order(bad))) break;
      good = bad;
      if (stride < kLongestStride) stride *= 2;
    }
  } else {
    for (;;) {
      if (bad == -kTop) return -std::numeric_limits<double>::infinity();
      good = bad < -kTop + stride ? -kTop : bad - stride;
      if (holds(with_order(good))) break;
      bad = good;
      if (stride < kLongestStride) stride *= 2;
    }
  }
  for (;;) {
    const std::uint64_t gap = static_cast<std::uint64_t>(bad) - static_cast<std::uint64_t>(good);
    if (gap <= 1) return with_order(good);
    const std::int64_t middle = good + static_cast<std::int64_t>(gap / 2);
    (holds(with_order(middle)) ? good : bad) = middle;
  }
}

// The smallest, where `holds` is false up to some point and true beyond it. -infinity: all obey; +infinity: none does.
template <typename Holds>
double smallest(double guess, Holds holds) noexcept {
  return -largest(-guess, [&](double x) { return holds(-x); });
}

}  // namespace kizzasi::logic
