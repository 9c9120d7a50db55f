// The optimisers that look at a tensor as a whole: LAMB (You et al. 2020), Adafactor (Shazeer and Stern 2018), Muon (Jordan et al. 2024).
// Norms and products are taken in double, in one order.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kizzasi/train/optimizer.h"

namespace kizzasi {
namespace {

constexpr double kLongestWeights = 10;                    // lamb: what the norm of a tensor counts at most
constexpr double kLeastSquare = 1e-30;                    // adafactor: added to every squared gradient
constexpr double kLeastScale = 1e-3;                      // adafactor: of a tensor near zero
constexpr double kForgetting = -0.8;                      // adafactor: power of the step
constexpr double kQuintic[] = {3.4445, -4.7750, 2.0315};  // muon: a x + b x^3 + c x^5 of every singular value, five times
constexpr int kIterations = 5;
constexpr double kLeastNorm = 1e-7;

template <typename V>
double norm_of(const V* values, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(sum);
}

// The matrices of a tensor of two axes or more: how many, and their rows and columns. No rows: it has none.
struct Matrices {
  std::size_t count = 0, rows = 0, cols = 0;
};
Matrices matrices_of(const Shape& shape) {
  if (shape.size() < 2) return {};
  const std::size_t rows = shape[shape.size() - 2], cols = shape.back();
  return {elements(shape) / std::max<std::size_t>(1, rows * cols), rows, cols};
}

// out (n, m) = a (n, k) b (k, m)
std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t n, std::size_t k, std::size_t m) {
  std::vector<double> out(n * m);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < k; ++j) {
      const double left = a[i * k + j];
      for (std::size_t c = 0; c < m; ++c) out[i * m + c] += left * b[j * m + c];
    }
  }
  return out;
}

std::vector<double> transposed(const std::vector<double>& a, std::size_t rows, std::size_t cols) {
  std::vector<double> out(a.size());
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) out[c * rows + r] = a[r * cols + c];
  }
  return out;
}

// The nearest matrix with all singular values near 1: u v^T of u s v^T, by a Newton-Schulz iteration on the shorter side.
std::vector<double> orthogonal(std::vector<double> x, std::size_t rows, std::size_t cols) {
  const bool tall = rows > cols;
  if (tall) x = transposed(x, rows, cols);
  const std::size_t n = std::min(rows, cols), m = std::max(rows, cols);
  const double length = std::max(norm_of(x.data(), x.size()), kLeastNorm);
  for (double& each : x) each /= length;
  for (int step = 0; step < kIterations; ++step) {
    const std::vector<double> gram = product(x, transposed(x, n, m), n, m, n);
    std::vector<double> factor = product(gram, gram, n, n, n);
    for (std::size_t i = 0; i < factor.size(); ++i) factor[i] = kQuintic[1] * gram[i] + kQuintic[2] * factor[i];
    std::vector<double> next = product(factor, x, n, n, m);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] += kQuintic[0] * x[i];
    x = std::move(next);
  }
  return tall ? transposed(x, n, m) : x;
}

}  // namespace

// Adam's step, scaled to the size of the tensor. With bias correction as pytorch-optimizer has it, without as torch-optimizer and the
// paper's third version.
void Optimizer::update_lamb(float* p, const float* gradient, const ParameterLayout::Entry& entry, double rate, double decay,
                            double momentum) {
  float *m = slot(0, entry.offset), *v = slot(1, entry.offset);
  std::vector<double> step(entry.count);
  const bool corrected = config_.bias_correction;
  const double keep = corrected ? 1 - rate * decay : 1, inside = corrected ? 0 : decay;
  const double length = norm_of(p, entry.count) * keep;
  for (std::size_t i = 0; i < entry.count; ++i) {
    const double g = static_cast<double>(gradient[i]);
    m[i] = static_cast<float>(momentum * static_cast<double>(m[i]) + (1 - momentum) * g);
    v[i] = static_cast<float>(config_.beta2 * static_cast<double>(v[i]) + (1 - config_.beta2) * g * g);
    step[i] = static_cast<double>(m[i]) / (std::sqrt(static_cast<double>(v[i])) + config_.epsilon) + inside * static_cast<double>(p[i]);
  }
  const double weights = std::min(length, kLongestWeights), change = norm_of(step.data(), step.size());
  const double trust = weights == 0 || change == 0 ? 1 : weights / (corrected ? change + config_.epsilon : change);
  const double size = trust * (corrected ? rate / (1 - std::pow(momentum, static_cast<double>(steps_))) : rate);
  for (std::size_t i = 0; i < entry.count; ++i) p[i] = static_cast<float>(static_cast<double>(p[i]) * keep - size * step[i]);
}

// The second moments of a matrix are kept as the means of its rows and columns, at the front of the tensor's own place.
void Optimizer::update_adafactor(float* p, const float* gradient, const ParameterLayout::Entry& entry, double rate, double decay) {
  const double t = static_cast<double>(steps_), share = std::pow(t, kForgetting), root = 1 / std::sqrt(t);
  double size = config_.rate_form == "relative" ? std::min(1e-6 * t, root) : config_.rate_form == "plain" ? rate : std::min(rate, root);
  if (config_.scale_by_weights) {
    size *= std::max(kLeastScale, norm_of(p, entry.count) / std::sqrt(static_cast<double>(std::max<std::size_t>(1, entry.count))));
  }
  const double keep = 1 - (config_.rate_form == "capped" ? rate : size) * decay;
  float* v = slot(0, entry.offset);
  std::vector<double> step(entry.count);
  const auto square = [&](std::size_t i) { return static_cast<double>(gradient[i]) * static_cast<double>(gradient[i]) + kLeastSquare; };
  const auto into = [share](float& mean, double value) {
    mean = static_cast<float>(static_cast<double>(mean) + share * (value - static_cast<double>(mean)));
  };
  const Matrices all = matrices_of(entry.shape);
  // A row or column alone has no room for both means, and no use for them.
  const bool factored = all.rows > 1 && all.cols > 1;
  for (std::size_t k = 0; factored && k < all.count; ++k) {
    const std::size_t at = k * all.rows * all.cols;
    float *rows = v + at, *cols = rows + all.rows;
    double mean = 0;
    for (std::size_t r = 0; r < all.rows; ++r) {
      double sum = 0;
      for (std::size_t c = 0; c < all.cols; ++c) sum += square(at + r * all.cols + c);
      into(rows[r], sum / static_cast<double>(all.cols));
      mean += static_cast<double>(rows[r]) / static_cast<double>(all.rows);
    }
    for (std::size_t c = 0; c < all.cols; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < all.rows; ++r) sum += square(at + r * all.cols + c);
      into(cols[c], sum / static_cast<double>(all.rows));
    }
    for (std::size_t r = 0; r < all.rows; ++r) {
      for (std::size_t c = 0; c < all.cols; ++c) {
        const double second = static_cast<double>(rows[r]) / mean * static_cast<double>(cols[c]);
        step[at + r * all.cols + c] = static_cast<double>(gradient[at + r * all.cols + c]) / std::sqrt(second);
      }
    }
  }
  for (std::size_t i = 0; !factored && i < entry.count; ++i) {
    into(v[i], square(i));
    step[i] = static_cast<double>(gradient[i]) / std::sqrt(static_cast<double>(v[i]));
  }
  const double rms = norm_of(step.data(), step.size()) / std::sqrt(static_cast<double>(std::max<std::size_t>(1, entry.count)));
  for (std::size_t i = 0; i < entry.count; ++i) {
    p[i] = static_cast<float>(static_cast<double>(p[i]) * keep - size / std::max(1.0, rms) * step[i]);
  }
}

// Matrices move by the orthogonal part of their momentum; tensors that are none as adamw moves them.
void Optimizer::update_muon(float* p, const float* gradient, const ParameterLayout::Entry& entry, double rate, double decay,
                            double momentum) {
  const Matrices all = matrices_of(entry.shape);
  if (all.rows < 2 || all.cols < 2) {
    return update(OptimizerKind::kAdamW, p, gradient, entry.offset, entry.count, rate, decay, config_.beta1);
  }
  float* m = slot(0, entry.offset);
  const double tall = static_cast<double>(all.rows) / static_cast<double>(all.cols);
  const double ratio =
      config_.match_adamw ? 0.2 * std::sqrt(static_cast<double>(std::max(all.rows, all.cols))) : std::sqrt(std::max(1.0, tall));
  for (std::size_t k = 0; k < all.count; ++k) {
    const std::size_t at = k * all.rows * all.cols, count = all.rows * all.cols;
    std::vector<double> direction(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double g = static_cast<double>(gradient[at + i]), old = static_cast<double>(m[at + i]);
      const double mean = old + (1 - momentum) * (g - old);
      m[at + i] = static_cast<float>(mean);
      direction[i] = config_.nesterov ? g + momentum * (mean - g) : mean;
    }
    direction = orthogonal(std::move(direction), all.rows, all.cols);
    for (std::size_t i = 0; i < count; ++i) {
      p[at + i] = static_cast<float>(static_cast<double>(p[at + i]) * (1 - rate * decay) - rate * ratio * direction[i]);
    }
  }
}

}  // namespace kizzasi
