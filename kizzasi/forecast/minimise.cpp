#include "kizzasi/forecast/minimise.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kDifference = 6e-6;  // cube root of the rounding error: best for central differences
constexpr double kSufficient = 1e-4;  // share of the promised fall that a step must bring (Armijo)

class Descent {
 public:
  Descent(const std::function<double(std::span<const double>)>& f, std::vector<double>& x) : f_(f), x_(x), n_(x.size()) {
    value_ = at(x_);
    gradient_ = gradient();
    reset();
  }

  double value() const { return value_; }

  // One step along the direction of the current curvature; false where none goes down.
  bool step() {
    std::vector<double> direction(n_);
    double slope = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) direction[i] -= inverse_[i * n_ + j] * gradient_[j];
    }
    for (std::size_t i = 0; i < n_; ++i) slope += direction[i] * gradient_[i];
    if (!(slope < 0)) return false;
    double longest = 0;
    for (const double d : direction) longest = std::max(longest, std::abs(d));
    std::vector<double> next(n_);
    for (double length = std::min(1.0, 2.0 / longest); length * longest > 1e-12; length /= 2) {
      for (std::size_t i = 0; i < n_; ++i) next[i] = x_[i] + length * direction[i];
      const double there = at(next);
      if (there <= value_ + kSufficient * length * slope) {
        move_to(next, there);
        return true;
      }
    }
    return false;
  }

  // Forgets the curvature.
  void reset() {
    inverse_.assign(n_ * n_, 0);
    double size = 0;
    for (const double g : gradient_) size = std::max(size, std::abs(g));
    for (std::size_t i = 0; i < n_; ++i) inverse_[i * n_ + i] = size > 0 ? std::min(1.0, 0.1 / size) : 1;
  }

 private:
  double at(std::span<const double> x) const {
    const double value = f_(x);
    return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
  }

  std::vector<double> gradient() const {
    std::vector<double> slopes(n_), there = x_;
    for (std::size_t i = 0; i < n_; ++i) {
      const double step = kDifference * std::max(1.0, std::abs(x_[i]));
      there[i] = x_[i] + step;
      const double above = at(there);
      there[i] = x_[i] - step;
      const double below = at(there);
      there[i] = x_[i];
      slopes[i] = std::isfinite(above) && std::isfinite(below) ? (above - below) / (2 * step) : 0;
    }
    return slopes;
  }

  void move_to(const std::vector<double>& next, double there) {
    std::vector<double> moved(n_), before = gradient_, turned(n_), scaled(n_);
    for (std::size_t i = 0; i < n_; ++i) moved[i] = next[i] - x_[i];
    x_ = next;
    value_ = there;
    gradient_ = gradient();
    double along = 0, curve = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      turned[i] = gradient_[i] - before[i];
      along += turned[i] * moved[i];
    }
    if (!(along > 1e-14)) return;  // no curvature to learn from here
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) scaled[i] += inverse_[i * n_ + j] * turned[j];
      curve += scaled[i] * turned[i];
    }
    const double own = (1 + curve / along) / along;
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
        inverse_[i * n_ + j] += own * moved[i] * moved[j] - (scaled[i] * moved[j] + moved[i] * scaled[j]) / along;
      }
    }
  }

  const std::function<double(std::span<const double>)>& f_;
  std::vector<double>& x_;
  std::size_t n_;
  double value_ = 0;
  std::vector<double> gradient_, inverse_;  // (n), (n, n)
};

}  // namespace

double minimise(const std::function<double(std::span<const double>)>& f, std::vector<double>& x, const MinimiseOptions& options) {
  Descent descent(f, x);
  bool fresh = true;  // the curvature was just forgotten: a second failure in a row is the end
  for (std::size_t i = 0; i < options.iterations; ++i) {
    const double before = descent.value();
    const bool moved = descent.step();
    const bool gained = moved && before - descent.value() > options.tolerance * std::max(1.0, std::abs(before));
    if (!gained && fresh) break;
    if (!gained) descent.reset();
    fresh = !gained;
  }
  return descent.value();
}

double minimise_on_line(const std::function<double(double)>& f, double low, double high, std::size_t grid) {
  double best = low, least = f(low);
  const double step = (high - low) / static_cast<double>(grid);
  for (std::size_t i = 1; i <= grid; ++i) {
    const double at = i == grid ? high : low + step * static_cast<double>(i);
    const double value = f(at);
    if (value < least) {
      least = value;
      best = at;
    }
  }
  constexpr double kGolden = 0.6180339887498949;
  double a = std::max(low, best - step), b = std::min(high, best + step);
  while (b - a > 1e-10 * (high - low)) {
    const double left = b - kGolden * (b - a), right = a + kGolden * (b - a);
    if (f(left) < f(right)) {
      b = right;
    } else {
      a = left;
    }
  }
  const double middle = (a + b) / 2;
  return f(middle) < least ? middle : best;  // the best may stand on the edge of the range
}

}  // namespace kizzasi
