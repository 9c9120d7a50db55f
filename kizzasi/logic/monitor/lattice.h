// What conditions are worth: three-valued truth, or an interval of robustness. Both are lattices with a complement, so that every operator
// of the language is written once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace kizzasi::logic {

// Kleene's truth: -1 false, 0 unknown, 1 true.
using Verdict = std::int8_t;

// The ends of what the robustness may be; equal where it is known.
struct Robustness {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

template <typename V>
struct Lattice;

template <>
struct Lattice<Verdict> {
  static constexpr Verdict top() { return 1; }
  static constexpr Verdict bottom() { return -1; }
  static constexpr Verdict unknown() { return 0; }
  static Verdict meet(Verdict a, Verdict b) noexcept { return std::min(a, b); }
  static Verdict join(Verdict a, Verdict b) noexcept { return std::max(a, b); }
  static Verdict complement(Verdict a) noexcept { return static_cast<Verdict>(-a); }
};

template <>
struct Lattice<Robustness> {
  static constexpr double kInf = std::numeric_limits<double>::infinity();
  static constexpr Robustness top() { return {kInf, kInf}; }
  static constexpr Robustness bottom() { return {-kInf, -kInf}; }
  static constexpr Robustness unknown() { return {-kInf, kInf}; }
  static Robustness meet(const Robustness& a, const Robustness& b) noexcept { return {std::min(a.low, b.low), std::min(a.high, b.high)}; }
  static Robustness join(const Robustness& a, const Robustness& b) noexcept { return {std::max(a.low, b.low), std::max(a.high, b.high)}; }
  static Robustness complement(const Robustness& a) noexcept { return {-a.high, -a.low}; }
};

// y -> join(low, meet(high, y)): what until and since do with the value of their neighbour; closed under composition.
template <typename V>
struct Clamp {
  V low, high;
  V operator()(const V& y) const noexcept { return Lattice<V>::join(low, Lattice<V>::meet(high, y)); }
  Clamp after(const Clamp& inner) const noexcept { return {(*this)(inner.low), (*this)(inner.high)}; }
};

// join(b, meet(a, y)) and meet(a, join(b, y)).
template <typename V>
Clamp<V> join_of(const V& b, const V& a) noexcept {
  return {b, Lattice<V>::join(a, b)};
}
template <typename V>
Clamp<V> meet_of(const V& a, const V& b) noexcept {
  return {Lattice<V>::meet(a, b), a};
}

}  // namespace kizzasi::logic
