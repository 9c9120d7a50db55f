#include "kizzasi/logic/learned_relations.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace kizzasi::logic {
namespace {

constexpr int kSweeps = 60;
constexpr int kLargestDenominator = 12;
constexpr double kWorseBy = 1.05;   // standard deviation that whole numbers may leave, beside the fitted ones
constexpr double kNothing = 1e-12;  // of the size of terms: rounding

// Eigenvalues and vectors of a symmetric matrix (n, n), by Jacobi's rotations. `vectors` by columns.
void eigen(std::vector<double>& a, std::vector<double>& vectors, std::size_t n) {
  vectors.assign(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) vectors[i * n + i] = 1;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        const double apq = a[p * n + q];
        off += apq * apq;
        if (apq == 0) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1)), c = 1 / std::sqrt(t * t + 1), s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double kp = a[k * n + p], kq = a[k * n + q];
          a[k * n + p] = c * kp - s * kq;
          a[k * n + q] = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double pk = a[p * n + k], qk = a[q * n + k];
          a[p * n + k] = c * pk - s * qk;
          a[q * n + k] = s * pk + c * qk;
          const double vp = vectors[k * n + p], vq = vectors[k * n + q];
          vectors[k * n + p] = c * vp - s * vq;
          vectors[k * n + q] = s * vp + c * vq;
        }
      }
    }
    if (off < 1e-32) break;
  }
}

class Finder {
 public:
  Finder(std::span<const double> rows, std::size_t columns) : rows_(rows), n_(columns), count_(rows.size() / columns) {
    mean_.assign(n_, 0);
    spread_.assign(n_, 0);
    for (std::size_t i = 0; i < n_; ++i) {
      double squares = 0, size = 0;
      for (std::size_t r = 0; r < count_; ++r) {
        const double by = at(r, i) - mean_[i];
        mean_[i] += by / static_cast<double>(r + 1);
        squares += by * (at(r, i) - mean_[i]);
        size = std::max(size, std::abs(at(r, i)));
      }
      spread_[i] = std::sqrt(squares / static_cast<double>(count_));
      if (spread_[i] > kNothing * size) moving_.push_back(i);
    }
  }

  std::vector<Relation> run(double noise) {
    const std::size_t m = moving_.size();
    if (m < 2) return {};
    std::vector<double> correlation(m * m, 0), vectors;
    for (std::size_t r = 0; r < count_; ++r) {
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = 0; j <= i; ++j) correlation[i * m + j] += scaled(r, i) * scaled(r, j) / static_cast<double>(count_);
      }
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = i + 1; j < m; ++j) correlation[i * m + j] = correlation[j * m + i];
    }
    eigen(correlation, vectors, m);
    std::vector<std::vector<double>> basis;
    for (std::size_t k = 0; k < m; ++k) {
      if (!(correlation[k * m + k] <= noise * noise)) continue;
      std::vector<double> v(m);
      for (std::size_t i = 0; i < m; ++i) v[i] = vectors[i * m + k];
      basis.push_back(std::move(v));
    }
    to_echelon(basis, m);
    std::vector<Relation> relations;
    for (const auto& v : basis) {
      if (auto relation = spelled(v, noise); !relation.factors.empty()) relations.push_back(std::move(relation));
    }
    std::sort(relations.begin(), relations.end(), [](const Relation& a, const Relation& b) {
      const auto first = [](const Relation& r) {
        return std::find_if(r.factors.begin(), r.factors.end(), [](double f) { return f != 0; }) - r.factors.begin();
      };
      return first(a) < first(b);
    });
    return relations;
  }

 private:
  double at(std::size_t row, std::size_t column) const { return rows_[row * n_ + column]; }
  double scaled(std::size_t row, std::size_t i) const { return (at(row, moving_[i]) - mean_[moving_[i]]) / spread_[moving_[i]]; }

  // Each pivot column in one row alone, so that every relation stands with as few columns as its pivots allow.
  static void to_echelon(std::vector<std::vector<double>>& basis, std::size_t m) {
    std::vector<std::uint8_t> used(m, 0);
    for (std::size_t row = 0; row < basis.size(); ++row) {
      std::size_t pivot_row = row, pivot = 0;
      double most = -1;
      for (std::size_t r = row; r < basis.size(); ++r) {
        for (std::size_t i = 0; i < m; ++i) {
          if (used[i] == 0 && std::abs(basis[r][i]) > most) most = std::abs(basis[r][i]), pivot_row = r, pivot = i;
        }
      }
      std::swap(basis[row], basis[pivot_row]);
      used[pivot] = 1;
      const double by = basis[row][pivot];
      for (double& v : basis[row]) v /= by;
      for (std::size_t r = 0; r < basis.size(); ++r) {
        if (r == row) continue;
        const double factor = basis[r][pivot];
        for (std::size_t i = 0; i < m; ++i) basis[r][i] -= factor * basis[row][i];
      }
    }
  }

  // Mean and standard deviation of what a combination leaves.
  std::pair<double, double> rest(const std::vector<double>& factors) const {
    double mean = 0, squares = 0;
    for (std::size_t r = 0; r < count_; ++r) {
      double sum = 0;
      for (std::size_t i = 0; i < n_; ++i) sum += factors[i] * at(r, i);
      const double by = sum - mean;
      mean += by / static_cast<double>(r + 1);
      squares += by * (sum - mean);
    }
    return {mean, std::sqrt(squares / static_cast<double>(count_))};
  }

  // `v` over scaled columns. Nothing where what is left is more than noise.
  Relation spelled(const std::vector<double>& v, double noise) const {
    std::vector<double> factors(n_, 0);
    double most = 0;
    for (std::size_t i = 0; i < v.size(); ++i) most = std::max(most, std::abs(v[i]));
    for (std::size_t i = 0; i < v.size(); ++i) {
      if (std::abs(v[i]) > noise * most) factors[moving_[i]] = v[i] / spread_[moving_[i]];
    }
    std::size_t first = 0;
    while (first < n_ && factors[first] == 0) ++first;
    if (std::count_if(factors.begin(), factors.end(), [](double f) { return f != 0; }) < 2) return {};
    // In units of the smallest factor that a plain ratio can have: the largest stands for 1 first.
    double largest = 0;
    for (const double f : factors) largest = std::max(largest, std::abs(f));
    const double by = factors[first] < 0 ? -largest : largest;
    for (double& f : factors) f /= by;
    double size = 0;
    for (std::size_t i = 0; i < n_; ++i) size += std::abs(factors[i]) * (std::abs(mean_[i]) + spread_[i]);
    const double left = rest(factors).second;
    std::vector<double> chosen;
    for (int q = 1; q <= kLargestDenominator && chosen.empty(); ++q) {
      std::vector<double> whole(n_, 0);
      bool all = true;
      for (std::size_t i = 0; i < n_; ++i) {
        whole[i] = std::round(q * factors[i]);
        all = all && (whole[i] != 0) == (factors[i] != 0);
      }
      if (all && rest(whole).second / q <= kWorseBy * left + kNothing * size) chosen = whole;
    }
    if (chosen.empty()) {
      chosen = factors;
      for (double& f : chosen) f = f == 0 ? 0 : rounded(f, std::max(std::abs(f), 1e-6), f > 0);
    }
    const auto [mean, deviation] = rest(chosen);
    double widest = 0;
    for (std::size_t i = 0; i < n_; ++i) widest = std::max(widest, std::abs(chosen[i]) * spread_[i]);
    if (!(deviation <= noise * widest * 2)) return {};  // one more check: dropped and rounded factors
    Relation relation{chosen, 0};
    const double error = 4 * deviation / std::sqrt(static_cast<double>(count_));
    const double unsure = std::max(error, 1e-9 * std::max(widest, 1e-300));
    relation.constant = std::abs(mean) <= unsure ? 0 : rounded(mean, std::max(unsure, 1e-300) * 10, mean > 0);
    return relation;
  }

  std::span<const double> rows_;
  std::size_t n_, count_;
  std::vector<double> mean_, spread_;
  std::vector<std::size_t> moving_;
};

}  // namespace

std::vector<Relation> find_relations(std::span<const double> rows, std::size_t columns, double noise) {
  return Finder(rows, columns).run(noise);
}

double rounded(double value, double width, bool up) {
  constexpr int kDigits = 4;
  if (!(width > 0) || !std::isfinite(value) || !std::isfinite(width)) return value;
  const int decimals = kDigits - 1 - static_cast<int>(std::floor(std::log10(width)));
  if (decimals < -12 || decimals > 15) return value;
  const double step = std::pow(10.0, -decimals);
  double steps = up ? std::ceil(value / step) : std::floor(value / step);
  const std::string text = fmt::format("{:.{}f}", steps * step, std::max(decimals, 0));
  double out = value;
  std::from_chars(text.data(), text.data() + text.size(), out);
  if (up ? out < value : out > value) return value;  // the step is below what a double tells apart
  return out == 0 ? 0 : out;
}

}  // namespace kizzasi::logic
