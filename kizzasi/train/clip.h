// Keeping gradients within bounds.
#pragma once

#include <span>

namespace kizzasi {

// (sum |g|^p)^(1/p) over all of them, p >= 1 or infinity; summed in double in one order. NaN where one is NaN.
double gradient_norm(std::span<const float> gradient, double p = 2);

// Scales all by min(1, max_norm / (norm + 1e-6)) (Pascanu et al. 2013); returns the norm before. A norm that is not finite: they are left
// as they are, for the caller to stop at.
double clip_by_norm(std::span<float> gradient, double max_norm, double p = 2);

// Every one into [-limit, limit]; NaN stays.
void clip_by_value(std::span<float> gradient, float limit);

}  // namespace kizzasi
