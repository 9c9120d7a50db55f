// How surprising a frame is under the distribution that was predicted for it.
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi {

// The probability of a value at least as far out on its side, twice: 1 at the median, near 0 far out. Between the quantiles the
// distribution is linear, beyond the outermost it falls off exponentially at the rate of the outer two, with a scale of at least
// least_scale > 0 (so that a distribution without width gives no infinite surprise). levels: rising, two or more; quantiles: not falling.
// NaN where value or a quantile is NaN. Thread: any. Real-time: yes.
double tail_probability(double value, std::span<const double> levels, std::span<const double> quantiles, double least_scale) noexcept;

// Surprise of several channels as one number: log10 of the mean of 1 / p, the negative logarithm of the harmonic mean p-value, which holds
// for dependent channels, too (Wilson 2019). One channel far out and many a little out both count. Channels whose p is NaN are left out;
// NaN where none is left. 0: nothing unusual; 3: once in about a thousand frames. At most 300.
double combined_surprise(std::span<const double> tail_probabilities) noexcept;

}  // namespace kizzasi
