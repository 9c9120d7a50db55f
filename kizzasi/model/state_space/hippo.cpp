#include "kizzasi/model/state_space/hippo.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kizzasi {
namespace {

using Columns = std::vector<std::vector<double>>;

double dot(const std::vector<double>& a, const std::vector<double>& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

void rotate(std::vector<double>& a, std::vector<double>& b, double cosine, double sine) {
  for (std::size_t k = 0; k < a.size(); ++k) {
    const double left = a[k], right = b[k];
    a[k] = cosine * left - sine * right;
    b[k] = sine * left + cosine * right;
  }
}

// Turns the columns of a square matrix pair by pair until all stand upright on one another (one-sided Jacobi), and those of `right` alike:
// matrix right_before = matrix_after, so that the right ones become singular vectors, the lengths of the columns singular values.
void orthogonalise(Columns& matrix, Columns& right) {
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (std::size_t i = 0; i + 1 < matrix.size(); ++i) {
      for (std::size_t j = i + 1; j < matrix.size(); ++j) {
        const double ii = dot(matrix[i], matrix[i]), jj = dot(matrix[j], matrix[j]), ij = dot(matrix[i], matrix[j]);
        if (std::abs(ij) <= 1e-15 * std::sqrt(ii * jj)) continue;
        turned = true;
        const double zeta = (jj - ii) / (2 * ij);
        const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double cosine = 1 / std::sqrt(1 + t * t);
        rotate(matrix[i], matrix[j], cosine, cosine * t);
        rotate(right[i], right[j], cosine, cosine * t);
      }
    }
  }
}

}  // namespace

NormalLegS normal_legs(std::size_t n) {
  // The skew part S, by columns: S[i][k] = -sqrt((2i + 1)(2k + 1)) / 2 below the diagonal.
  Columns skew(n, std::vector<double>(n, 0.0)), right = skew;
  for (std::size_t i = 0; i < n; ++i) {
    right[i][i] = 1;
    for (std::size_t k = 0; k < i; ++k) {
      const double value = 0.5 * std::sqrt(static_cast<double>((2 * i + 1) * (2 * k + 1)));
      skew[k][i] = -value;
      skew[i][k] = value;
    }
  }
  orthogonalise(skew, right);
  // Singular values come in pairs w, w. With a one right vector of a pair and S a = w b: S b = -w a, so a + i b has the eigenvalue -i w.
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::vector<double> length(n);
  for (std::size_t k = 0; k < n; ++k) length[k] = std::sqrt(dot(skew[k], skew[k]));
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return length[a] > length[b]; });
  NormalLegS legs{n, {}, std::vector<std::complex<double>>(n * (n / 2))};
  for (std::size_t k = 0; k < n / 2; ++k) {
    const std::size_t at = order[2 * k];
    legs.lambda.emplace_back(-0.5, -0.5 * (length[at] + length[order[2 * k + 1]]));
    for (std::size_t row = 0; row < n; ++row) {
      legs.vectors[row * (n / 2) + k] = std::sqrt(0.5) * std::complex<double>(right[at][row], skew[at][row] / length[at]);
    }
  }
  return legs;
}

std::vector<std::complex<double>> NormalLegS::turned_root(double scale) const {
  std::vector<std::complex<double>> turned(n / 2);
  for (std::size_t k = 0; k < turned.size(); ++k) {
    for (std::size_t i = 0; i < n; ++i) turned[k] += scale * std::sqrt(static_cast<double>(2 * i + 1)) * std::conj(vector(i, k));
  }
  return turned;
}

}  // namespace kizzasi
