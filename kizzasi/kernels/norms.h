// Normalisations of one row.
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi::kernels {

// out[i] = gain[i] x[i] / sqrt(mean(x^2) + epsilon) (Zhang and Sennrich 2019). gain empty: ones. out may be x.
// The sum runs in one order that depends on the length alone. Real-time: yes. Thread: any.
void rms_norm(std::span<const float> x, std::span<const float> gain, float epsilon, std::span<float> out) noexcept;
// The same over each of `groups` equal pieces of the row, one gain for the whole row.
void rms_norm_groups(std::span<const float> x, std::size_t groups, std::span<const float> gain, float epsilon,
                     std::span<float> out) noexcept;
// out[i] = gain[i] (x[i] - mean) / sqrt(variance + epsilon) + bias[i] (Ba et al. 2016); the mean is taken out before squaring.
void layer_norm(std::span<const float> x, std::span<const float> gain, std::span<const float> bias, float epsilon,
                std::span<float> out) noexcept;

}  // namespace kizzasi::kernels
