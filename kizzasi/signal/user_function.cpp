#include "kizzasi/signal/user_function.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace kizzasi {

Result<void> check_slopes(const UserFunction& function, std::span<const double> points, double tolerance) {
  const std::size_t n = function.arguments;
  if (n == 0 || points.size() % n != 0) {
    return fail(
        {Fault::kBadUse, fmt::format("{} numbers for points of {} arguments", points.size(), n), function.name, "whole points", ""});
  }
  std::vector<double> x(n), slopes(n);
  for (std::size_t begin = 0; begin < points.size(); begin += n) {
    std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(begin), n, x.begin());
    (void)function.value(x, slopes);
    for (std::size_t i = 0; i < n; ++i) {
      const double at = x[i], h = 1e-5 * std::max(1.0, std::abs(at));
      x[i] = at + h;
      const double above = function.value(x, {});
      x[i] = at - h;
      const double below = function.value(x, {});
      x[i] = at;
      const double measured = (above - below) / (2 * h), off = std::abs(measured - slopes[i]);
      if (off <= tolerance * std::max({1.0, std::abs(measured), std::abs(slopes[i])})) continue;
      return fail({Fault::kBadUse,
                   fmt::format("its slope by argument {} is {}, and differences of its values say {}", i + 1, slopes[i], measured),
                   fmt::format("{}({})", function.name, fmt::join(x, ", ")), "the derivative of its value", ""});
    }
  }
  return {};
}

}  // namespace kizzasi
