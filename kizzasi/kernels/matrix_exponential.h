// The exponential of a matrix: what a linear system does in a given time.
#pragma once

#include <cstddef>
#include <span>

namespace kizzasi::kernels {

// out = e^a, both (n, n), row-major; out may be a. The Pade approximant of degree [13/13] of a / 2^s, squared s times (Higham 2005).
// Returns false, with out untouched, where a is not finite or e^a is beyond the range of double. Allocates its six (n, n) of workspace.
// Real-time: no. Thread: any.
[[nodiscard]] bool matrix_exponential(std::span<const double> a, std::size_t n, std::span<double> out);

}  // namespace kizzasi::kernels
