#include "kizzasi/kernels/ridge.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi::kernels {
namespace {

constexpr std::size_t kRowsAtOnce = 8;  // so many rows go through one sweep over the sums

// sums[i][j] += x[r][i] y[r][j] for rows r in order and columns j >= first(i). Several rows a sweep save memory traffic; every sum still
// takes them one after another.
template <std::size_t Rows, typename First>
void add_rows(const double* x, const double* y, std::size_t n, std::size_t m, First first, double* sums) {
  for (std::size_t i = 0; i < n; ++i) {
    double* sum = sums + i * m;
    double factor[Rows];
    for (std::size_t r = 0; r < Rows; ++r) factor[r] = x[r * n + i];
    for (std::size_t j = first(i); j < m; ++j) {
      double total = sum[j];
      for (std::size_t r = 0; r < Rows; ++r) total += factor[r] * y[r * m + j];
      sum[j] = total;
    }
  }
}

template <typename First>
void add_products(std::span<const double> x, std::span<const double> y, std::size_t rows, std::size_t n, std::size_t m, First first,
                  double* sums) {
  std::size_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) add_rows<kRowsAtOnce>(x.data() + r * n, y.data() + r * m, n, m, first, sums);
  for (; r < rows; ++r) add_rows<1>(x.data() + r * n, y.data() + r * m, n, m, first, sums);
}

void add_to(std::vector<double>& sums, std::span<const double> terms) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
}

}  // namespace

RidgeSums::RidgeSums(std::size_t inputs, std::size_t outputs)
    : inputs_(inputs), outputs_(outputs), gram_(inputs * inputs), cross_(inputs * outputs), sum_x_(inputs), sum_y_(outputs) {}

void RidgeSums::add(std::span<const double> x, std::span<const double> y) {
  const std::size_t rows = inputs_ > 0 ? x.size() / inputs_ : y.size() / outputs_;
  add_products(x, x, rows, inputs_, inputs_, [](std::size_t i) { return i; }, gram_.data());
  add_products(x, y, rows, inputs_, outputs_, [](std::size_t) { return std::size_t{0}; }, cross_.data());
  for (std::size_t r = 0; r < rows; ++r) {
    add_to(sum_x_, x.subspan(r * inputs_, inputs_));
    add_to(sum_y_, y.subspan(r * outputs_, outputs_));
  }
  rows_ += rows;
}

void RidgeSums::add(const RidgeSums& other) {
  add_to(gram_, other.gram_);
  add_to(cross_, other.cross_);
  add_to(sum_x_, other.sum_x_);
  add_to(sum_y_, other.sum_y_);
  rows_ += other.rows_;
}

bool RidgeSums::solve(double lambda, std::span<double> weights, std::span<double> bias) const {
  if (rows_ == 0) return false;
  std::vector<double> a = gram_, b = cross_;
  const double centred = bias.empty() ? 0.0 : 1.0 / static_cast<double>(rows_);
  for (std::size_t i = 0; i < inputs_; ++i) {
    const double mean = sum_x_[i] * centred;
    for (std::size_t j = i; j < inputs_; ++j) a[i * inputs_ + j] -= mean * sum_x_[j];
    for (std::size_t j = 0; j < outputs_; ++j) b[i * outputs_ + j] -= mean * sum_y_[j];
    a[i * inputs_ + i] += lambda;
  }
  if (!cholesky(a, inputs_)) return false;
  cholesky_solve(a, inputs_, b, outputs_);
  std::copy(b.begin(), b.end(), weights.begin());
  for (std::size_t j = 0; j < bias.size(); ++j) {
    double value = sum_y_[j];
    for (std::size_t i = 0; i < inputs_; ++i) value -= sum_x_[i] * b[i * outputs_ + j];
    bias[j] = value / static_cast<double>(rows_);
  }
  return true;
}

bool cholesky(std::span<double> a, std::size_t n) {
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(a[i * n + i]));
  const double smallest = largest * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  for (std::size_t k = 0; k < n; ++k) {
    double* pivot = a.data() + k * n;
    if (!(pivot[k] > smallest) || !std::isfinite(pivot[k])) return false;
    const double root = std::sqrt(pivot[k]);
    for (std::size_t j = k; j < n; ++j) pivot[j] /= root;
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = pivot[i];
      double* row = a.data() + i * n;
      for (std::size_t j = i; j < n; ++j) row[j] -= factor * pivot[j];
    }
  }
  return true;
}

void cholesky_solve(std::span<const double> u, std::size_t n, std::span<double> b, std::size_t columns) {
  const auto take = [&](std::size_t from, std::size_t to, double factor) {
    const double* source = b.data() + from * columns;
    double* row = b.data() + to * columns;
    for (std::size_t c = 0; c < columns; ++c) row[c] -= factor * source[c];
  };
  const auto divide = [&](std::size_t k) {
    for (std::size_t c = 0; c < columns; ++c) b[k * columns + c] /= u[k * n + k];
  };
  for (std::size_t k = 0; k < n; ++k) {
    divide(k);
    for (std::size_t i = k + 1; i < n; ++i) take(k, i, u[k * n + i]);
  }
  for (std::size_t k = n; k-- > 0;) {
    divide(k);
    for (std::size_t i = 0; i < k; ++i) take(k, i, u[i * n + k]);
  }
}

}  // namespace kizzasi::kernels
