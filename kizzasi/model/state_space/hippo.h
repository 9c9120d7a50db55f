// HiPPO-LegS (Gu et al. 2020) in the basis where its normal part is diagonal: where S4 and S5 start.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kizzasi {

inline constexpr std::int64_t kLargestHippo = 256;  // the eigenvectors cost n^3

// LegS is A[i][k] = -sqrt((2i + 1)(2k + 1)) below the diagonal, -(i + 1) on it; B[i] = sqrt(2i + 1); with P[i] = sqrt(i + 1/2), A + P P^T
// is normal: -1/2 I plus a skew-symmetric matrix.
//
// n even. Of each conjugate pair of eigenvalues of the normal part the one with imaginary part below 0, rising: n / 2 of them.
struct NormalLegS {
  std::size_t n = 0;
  std::vector<std::complex<double>> lambda;   // (n / 2)
  std::vector<std::complex<double>> vectors;  // (n, n / 2), columns of length 1, each with a phase that is nobody's choice
  std::complex<double> vector(std::size_t row, std::size_t k) const { return vectors[row * (n / 2) + k]; }
  // V^* x for x[i] = sqrt(2i + 1) scale: B with scale 1, P with sqrt(1/2).
  std::vector<std::complex<double>> turned_root(double scale) const;
};
NormalLegS normal_legs(std::size_t n);

}  // namespace kizzasi
