// exp and log that stay finite: for densities and ratios where a bound is right and an infinity would spoil all that follows.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {

// e^x, or the largest number where that is beyond it. NaN stays NaN. Real-time: yes. Thread: any.
template <typename T>
T safe_exp(T x) noexcept {
  const T y = std::exp(x);
  return y > std::numeric_limits<T>::max() ? std::numeric_limits<T>::max() : y;
}

// log(max(x, floor)): for shares and densities that may vanish. floor > 0. An x below 0 is no share: NaN, as NaN stays NaN.
// Real-time: yes. Thread: any.
template <typename T>
T safe_log(T x, T floor = std::numeric_limits<T>::min()) noexcept {
  return x < 0 ? std::numeric_limits<T>::quiet_NaN() : std::min(std::log(x < floor ? floor : x), std::log(std::numeric_limits<T>::max()));
}

}  // namespace kizzasi
