// A distribution that is known by some of its quantiles.
#pragma once

#include <span>

namespace kizzasi {

// Linear between the levels; beyond the outermost an exponential tail through the two outermost (DistributionFamily states it).
// A view: levels (n, rising, inside (0, 1)) and values (n, not falling) outlive it. One level alone is a point.
// Thread: any. Real-time: yes.
class QuantileCurve {
 public:
  QuantileCurve(std::span<const double> levels, std::span<const double> values) noexcept;

  double quantile(double p) const noexcept;
  double mean() const noexcept;
  double cdf(double x) const noexcept;
  double log_density(double x) const noexcept;

 private:
  std::span<const double> levels_, values_;
  double lower_ = 0, upper_ = 0;  // scales of the tails
};

}  // namespace kizzasi
