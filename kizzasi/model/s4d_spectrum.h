// The eigenvalues with which a diagonal system starts (Gu et al. 2022, "On the parameterization and initialization of diagonal state space
// models", section 4).
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kizzasi {

inline constexpr std::int64_t kLargestLegS = 512;  // the eigenvalues of LegS cost n^3

// n even; n / 2 eigenvalues, of each conjugate pair the one with imaginary part >= 0, k = 0 .. n/2 - 1:
//   lin   -1/2 + i pi k
//   inv   -1/2 + i n/pi (n / (2k + 1) - 1)
//   legs  those of the normal part of HiPPO-LegS, rising: -1/2 + i w
//   real  -(k + 1), no oscillation
std::vector<std::complex<double>> s4d_spectrum(std::string_view init, std::size_t n);

}  // namespace kizzasi
