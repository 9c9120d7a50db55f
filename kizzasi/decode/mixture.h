// A weighted sum of normal distributions.
#pragma once

#include <cstddef>
#include <span>

#include "kizzasi/base/rng.h"

namespace kizzasi {

// A view of K weights (sum 1), K means and K standard deviations, one after the other. Thread: any. Real-time: yes.
class NormalMixture {
 public:
  explicit NormalMixture(std::span<const double> parameters) noexcept
      : weights_(parameters.first(parameters.size() / 3)),
        means_(parameters.subspan(parameters.size() / 3, parameters.size() / 3)),
        scales_(parameters.last(parameters.size() / 3)) {}

  // By bracketed root finding: it lies between the least and the greatest of the components' own quantiles.
  double quantile(double p) const noexcept;
  double mean() const noexcept;
  double cdf(double x) const noexcept;
  double log_density(double x) const noexcept;
  double sample(Rng& rng) const noexcept;

 private:
  double above(double x) const noexcept;  // 1 - cdf, without cancellation
  std::span<const double> weights_, means_, scales_;
};

}  // namespace kizzasi
