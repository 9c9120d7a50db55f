#include "kizzasi/model/s4d_spectrum.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kizzasi {
namespace {

// The singular values of a square matrix whose columns these are, rising: columns are rotated pair by pair until all stand upright on one
// another (one-sided Jacobi; Demmel and Veselic 1992 show its accuracy).
std::vector<double> singular_values(std::vector<std::vector<double>> columns) {
  const std::size_t n = columns.size();
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) {
        double ii = 0, jj = 0, ij = 0;
        for (std::size_t k = 0; k < n; ++k) {
          ii += columns[i][k] * columns[i][k];
          jj += columns[j][k] * columns[j][k];
          ij += columns[i][k] * columns[j][k];
        }
        if (std::abs(ij) <= 1e-15 * std::sqrt(ii * jj)) continue;
        turned = true;
        const double zeta = (jj - ii) / (2 * ij);
        const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + t * t), sine = cosine * t;
        for (std::size_t k = 0; k < n; ++k) {
          const double left = columns[i][k], right = columns[j][k];
          columns[i][k] = cosine * left - sine * right;
          columns[j][k] = sine * left + cosine * right;
        }
      }
    }
  }
  std::vector<double> values;
  for (const auto& column : columns) {
    double square = 0;
    for (const double v : column) square += v * v;
    values.push_back(std::sqrt(square));
  }
  std::sort(values.begin(), values.end());
  return values;
}

// LegS plus its rank-one correction is -1/2 I + S with S skew-symmetric, S[i][k] = -sqrt((2i + 1)(2k + 1)) / 2 below the diagonal. The
// eigenvalues of S are +-i w, its singular values each w twice.
std::vector<double> legs_frequencies(std::size_t n) {
  std::vector<std::vector<double>> columns(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const double value = 0.5 * std::sqrt(static_cast<double>((2 * i + 1) * (2 * k + 1)));
      columns[k][i] = -value;
      columns[i][k] = value;
    }
  }
  const std::vector<double> twice = singular_values(std::move(columns));
  std::vector<double> once;
  for (std::size_t k = 0; k < n / 2; ++k) once.push_back(0.5 * (twice[2 * k] + twice[2 * k + 1]));
  return once;
}

}  // namespace

std::vector<std::complex<double>> s4d_spectrum(std::string_view init, std::size_t n) {
  const double size = static_cast<double>(n), pi = std::numbers::pi;
  const std::vector<double> legs = init == "legs" ? legs_frequencies(n) : std::vector<double>{};
  std::vector<std::complex<double>> lambda;
  for (std::size_t i = 0; i < n / 2; ++i) {
    const double k = static_cast<double>(i);
    if (init == "inv") {
      lambda.emplace_back(-0.5, size / pi * (size / (2 * k + 1) - 1));
    } else if (init == "legs") {
      lambda.emplace_back(-0.5, legs[i]);
    } else if (init == "real") {
      lambda.emplace_back(-(k + 1), 0.0);
    } else {
      lambda.emplace_back(-0.5, pi * k);
    }
  }
  return lambda;
}

}  // namespace kizzasi
