// What the numbers that a head gives for one predicted value mean, as a distribution.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kizzasi/base/error.h"
#include "kizzasi/base/rng.h"
#include "kizzasi/signal/head.h"

namespace kizzasi {

// One head's family of distributions. A member of it is a span of `parameters()` doubles that `decode` writes, in the units asked for:
//   point      value
//   gaussian   mean, standard deviation
//   student_t  location, scale, degrees of freedom
//   mixture    K weights (sum 1), K means, K standard deviations
//   quantiles  the quantiles at `levels()`, rising: linear between them; beyond the outermost an exponential tail through the two
//              outermost, q(p) = q_0 + s log(p / p_0) below with s = (q_1 - q_0) / log(p_1 / p_0), and its mirror image above
// A point has no spread: every quantile is its value, its cdf is a step, and it has no density (`has_density()` is false).
// Where the parameters are not finite, so is what comes out: the caller checks with `finite`.
// Thread: any. Real-time: yes, after `of`.
class DistributionFamily {
 public:
  static Result<DistributionFamily> of(const HeadConfig& head);

  HeadKind kind() const noexcept { return kind_; }
  std::size_t parameters() const noexcept { return parameters_; }
  std::span<const double> levels() const noexcept { return levels_; }  // of a quantile head; else empty
  bool has_density() const noexcept { return kind_ != HeadKind::kPoint; }

  // The member for `raw` (HeadConfig states the order) seen through x -> x * scale + offset, scale > 0.
  void decode(std::span<const float> raw, double scale, double offset, std::span<double> member) const noexcept;
  static bool finite(std::span<const double> member) noexcept;

  // p in [0, 1]; 0 and 1 give the ends of the support. Rises with p.
  double quantile(std::span<const double> member, double p) const noexcept;
  // At rising `levels` in one go; exactly the values of `quantile`, made never to fall.
  void quantiles(std::span<const double> member, std::span<const double> levels, std::span<double> out) const noexcept;
  double median(std::span<const double> member) const noexcept { return quantile(member, 0.5); }
  double mean(std::span<const double> member) const noexcept;
  double cdf(std::span<const double> member, double x) const noexcept;
  // Of the quantile family: between levels that (nearly) coincide the density is that of a width of 1e-9 of the whole range.
  double log_density(std::span<const double> member, double x) const noexcept;
  // median + temperature * (draw - median): temperature 0 gives the median, 1 the distribution; it never scales the prediction itself.
  double sample(std::span<const double> member, Rng& rng, double temperature = 1) const noexcept;

 private:
  HeadKind kind_ = HeadKind::kPoint;
  std::size_t parameters_ = 1;
  std::size_t components_ = 0;
  std::size_t middle_ = 0;  // of the levels: where 0.5 stands
  std::vector<double> levels_;
};

}  // namespace kizzasi
