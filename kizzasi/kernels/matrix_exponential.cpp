#include "kizzasi/kernels/matrix_exponential.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kizzasi/kernels/lu.h"

namespace kizzasi::kernels {
namespace {

using Square = std::vector<double>;

// Coefficients of the approximant's numerator; the denominator has those of odd powers negated.
constexpr double kPade[] = {64764752532480000.,
                            32382376266240000.,
                            7771770303897600.,
                            1187353796428800.,
                            129060195264000.,
                            10559470521600.,
                            670442572800.,
                            33522128640.,
                            1323241920.,
                            40840800.,
                            960960.,
                            16380.,
                            182.,
                            1.};
// Up to this norm the approximant is exact to the roundoff of double (Higham 2005, table 2.3).
constexpr double kWithin = 5.371920351148152;

Square product(const Square& a, const Square& b, std::size_t n) {
  Square c(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return c;
}

// The largest sum of the sizes of one column; NaN where there is one.
double norm_1(std::span<const double> a, std::size_t n) {
  double largest = 0;
  for (std::size_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(a[i * n + j]);
    if (!(sum <= largest)) largest = sum;
    if (std::isnan(largest)) break;
  }
  return largest;
}

}  // namespace

bool matrix_exponential(std::span<const double> a, std::size_t n, std::span<double> out) {
  const double norm = norm_1(a, n);
  if (!std::isfinite(norm)) return false;
  const int squarings = norm > kWithin ? static_cast<int>(std::ceil(std::log2(norm / kWithin))) : 0;
  Square x(a.begin(), a.end());
  for (double& v : x) v = std::ldexp(v, -squarings);

  const Square x2 = product(x, x, n), x4 = product(x2, x2, n), x6 = product(x4, x2, n);
  // The even powers of one parity, x^6 (c[6] x^6 + c[5] x^4 + c[4] x^2) + c[3] x^6 + c[2] x^4 + c[1] x^2 + c[0], c[i] = kPade[2 i +
  // parity].
  const auto half = [&](std::size_t parity) {
    const auto c = [&](std::size_t i) { return kPade[2 * i + parity]; };
    Square high(n * n);
    for (std::size_t i = 0; i < n * n; ++i) high[i] = c(6) * x6[i] + c(5) * x4[i] + c(4) * x2[i];
    high = product(x6, high, n);
    for (std::size_t i = 0; i < n * n; ++i) high[i] += c(3) * x6[i] + c(2) * x4[i] + c(1) * x2[i];
    for (std::size_t i = 0; i < n; ++i) high[i * n + i] += c(0);
    return high;
  };
  const Square odd = product(x, half(1), n), even = half(0);
  Square below(n * n);
  for (std::size_t i = 0; i < n * n; ++i) {
    x[i] = even[i] + odd[i];
    below[i] = even[i] - odd[i];
  }
  std::vector<std::size_t> pivots(n);
  if (!lu(below, n, pivots)) return false;
  lu_solve(below, n, pivots, x, n);
  for (int i = 0; i < squarings; ++i) x = product(x, x, n);
  if (!std::all_of(x.begin(), x.end(), [](double v) { return std::isfinite(v); })) return false;
  std::copy(x.begin(), x.end(), out.begin());
  return true;
}

}  // namespace kizzasi::kernels
