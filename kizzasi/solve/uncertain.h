// Linear limits  a . x <= b  whose coefficients are not certain: the value that must not pass b, with its gradient.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace kizzasi::solve {

// Each returns the left side that is to stay at most b, a convex function of x, and adds nothing where `gradient` (n) is empty, else
// overwrites it with the derivative in x (0 where a norm has its tip). Thread: any. Real-time: yes.

// Gaussian coefficients, a ~ N(mean, covariance): P(a . x <= b) >= confidence exactly where  mean . x + z sqrt(x' covariance x) <= b,
// z the standard normal's quantile of `confidence` (Charnes and Cooper 1963). covariance (n, n) symmetric, by rows; confidence in [0.5, 1).
double gaussian_limit(std::span<const double> x, std::span<const double> mean, std::span<const double> covariance, double confidence,
                      std::span<double> gradient = {}) noexcept;
// Every a with |a_i - centre_i| <= radius_i (Soyster 1973): centre . x + radius . |x|.
double box_limit(std::span<const double> x, std::span<const double> centre, std::span<const double> radius,
                 std::span<double> gradient = {}) noexcept;
// Every a = centre + shape u with |u| <= 1 (Ben-Tal and Nemirovski 1999): centre . x + |shape' x|. shape (n, k), by rows; k at most 64.
double ellipsoid_limit(std::span<const double> x, std::span<const double> centre, std::span<const double> shape,
                       std::span<double> gradient = {}) noexcept;
// Every a of the polytope with these corners, (corners, n) by rows: the largest over the corners.
double polytope_limit(std::span<const double> x, std::span<const double> corners, std::span<double> gradient = {}) noexcept;

// The mean of the worst share 1 - alpha of equally likely losses, the last of them counted in part (Rockafellar and Uryasev 2000).
// alpha in [0, 1). `scratch` (losses) is overwritten; `weights` (losses), if not empty, receives the derivative in each loss.
double conditional_value_at_risk(std::span<const double> losses, double alpha, std::span<double> scratch,
                                 std::span<double> weights = {}) noexcept;
// The same of a Gaussian loss: mean + deviation * density(z) / (1 - alpha).
double gaussian_conditional_value_at_risk(double mean, double deviation, double alpha) noexcept;

// How many samples of the uncertainty a convex problem with `variables` decision variables must obey, so that its optimum breaks a new one
// with a probability of at most `violation`, with `confidence` (Campi and Garatti 2008, exact for fully supported problems):
// the least N with  sum over i < variables of C(N, i) violation^i (1 - violation)^(N - i)  <=  1 - confidence.
// Nothing where an argument is outside (0, 1), or where N passes 10^9. Real-time: no.
std::optional<std::int64_t> scenario_count(double violation, double confidence, std::int64_t variables);

// The z with P(standard normal <= z) = p; infinite at 0 and 1.
double standard_normal_quantile(double p) noexcept;

}  // namespace kizzasi::solve
