// Forecasts that need no fitting: what every model has to beat.
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi {

// Each fills `out` with the steps after the last value of `past`. Missing values (NaN) are passed over: the newest present value of the
// kind wanted takes their place. Where there is none, the step is NaN. Thread: any. Real-time: yes.

// The last value. Standard deviation of step h: s sqrt(h), s^2 the mean squared one-step error.
void naive(std::span<const double> past, std::span<double> out) noexcept;
// The value of the same slot one season before; s sqrt(floor((h - 1) / season) + 1).
void seasonal_naive(std::span<const double> past, std::size_t season, std::span<double> out) noexcept;
// The line through the first and the last value; s sqrt(h (1 + h / (n - 1))), s^2 the mean squared distance of the steps from their mean.
void drift(std::span<const double> past, std::span<double> out) noexcept;
// The mean of all values; s sqrt(1 + 1 / n), s^2 with divisor n - 1.
void mean(std::span<const double> past, std::span<double> out) noexcept;
// The mean of the last `window` values.
void window_average(std::span<const double> past, std::size_t window, std::span<double> out) noexcept;
// The mean of the values of the same slot in the last `seasons` seasons.
void seasonal_mean(std::span<const double> past, std::size_t season, std::size_t seasons, std::span<double> out) noexcept;

// Standard deviations of the steps by the formulas above, for Gaussian intervals (Hyndman and Athanasopoulos 2021, table 5.2).
void naive_deviation(std::span<const double> past, std::span<double> out) noexcept;
void seasonal_naive_deviation(std::span<const double> past, std::size_t season, std::span<double> out) noexcept;
void drift_deviation(std::span<const double> past, std::span<double> out) noexcept;
void mean_deviation(std::span<const double> past, std::span<double> out) noexcept;

}  // namespace kizzasi
