// Losses that look at whole signals.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "kizzasi/autograd/rowwise.h"
#include "kizzasi/kernels/fft.h"
#include "kizzasi/train/losses.h"

namespace kizzasi::losses {
namespace {

constexpr double kLeastPower = 1e-8;  // of one bin of a spectrogram

// r[i][j] = |x_i - y_j|^2 + softmin(r[i-1][j-1], r[i-1][j], r[i][j-1]). Backwards e[i][j], the derivative by that distance, is the sum over
// the three cells that follow of their e times the weight of this one in their minimum.
template <typename T>
double warped(const T* x, const T* y, std::size_t n, std::size_t m, std::size_t d, double gamma, T* dx, T* dy) {
  const std::size_t width = m + 1;
  std::vector<double> r((n + 1) * width, std::numeric_limits<double>::infinity()), e((n + 2) * (m + 2), 0.0), weights(3 * n * m);
  r[0] = 0;
  const auto at = [](const T* from, std::size_t i) { return static_cast<double>(from[i]); };
  for (std::size_t i = 1; i <= n; ++i) {
    for (std::size_t j = 1; j <= m; ++j) {
      double distance = 0;
      for (std::size_t c = 0; c < d; ++c) distance += std::pow(at(x, (i - 1) * d + c) - at(y, (j - 1) * d + c), 2);
      const double from[] = {r[(i - 1) * width + j - 1], r[(i - 1) * width + j], r[i * width + j - 1]};
      const double least = std::min({from[0], from[1], from[2]});
      double* weight = &weights[3 * ((i - 1) * m + j - 1)];
      double total = 0;
      for (int k = 0; k < 3; ++k) total += weight[k] = std::exp((least - from[k]) / gamma);
      for (int k = 0; k < 3; ++k) weight[k] /= total;
      r[i * width + j] = distance + least - gamma * std::log(total);
    }
  }
  const auto share = [&](std::size_t i, std::size_t j, int from) {
    return weights[3 * ((i - 1) * m + j - 1) + static_cast<std::size_t>(from)];
  };
  e[n * (m + 2) + m] = 1;
  std::vector<double> to_x(n * d), to_y(m * d);
  for (std::size_t i = n; i >= 1; --i) {
    for (std::size_t j = m; j >= 1; --j) {
      double& own = e[i * (m + 2) + j];
      if (i < n && j < m) own += e[(i + 1) * (m + 2) + j + 1] * share(i + 1, j + 1, 0);
      if (i < n) own += e[(i + 1) * (m + 2) + j] * share(i + 1, j, 1);
      if (j < m) own += e[i * (m + 2) + j + 1] * share(i, j + 1, 2);
      for (std::size_t c = 0; c < d; ++c) {
        const double slope = 2 * own * (at(x, (i - 1) * d + c) - at(y, (j - 1) * d + c));
        to_x[(i - 1) * d + c] += slope;
        to_y[(j - 1) * d + c] -= slope;
      }
    }
  }
  std::transform(to_x.begin(), to_x.end(), dx, [](double v) { return static_cast<T>(v); });
  std::transform(to_y.begin(), to_y.end(), dy, [](double v) { return static_cast<T>(v); });
  return r[n * width + m];
}

// The frames of one signal, their spectra, and the way back of a derivative by the powers.
class Frames {
 public:
  Frames(const Spectrogram& form, std::size_t time)
      : form_(form), fft_(form.size), time_(time), count_(time / form.hop + 1), window_(form.size), re_(form.size), im_(form.size) {
    const std::size_t begin = (form.size - form.window) / 2;
    for (std::size_t i = 0; i < form.window; ++i) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(form.window);
      window_[begin + i] = 0.5 - 0.5 * std::cos(angle);
    }
  }
  std::size_t bins() const { return form_.size / 2 + 1; }
  std::size_t count() const { return count_; }

  // magnitudes: (count, bins)
  template <typename T>
  void magnitudes(const T* x, double* out) {
    for (std::size_t f = 0; f < count_; ++f) {
      transform(x, f);
      for (std::size_t k = 0; k < bins(); ++k) {
        const std::size_t at = fft_.place_of(k);
        out[f * bins() + k] = std::sqrt(std::max(kLeastPower, re_[at] * re_[at] + im_[at] * im_[at]));
      }
    }
  }

  // dx += of the derivatives by the magnitudes.
  template <typename T>
  void back(const T* x, const double* by_magnitude, double* dx) {
    for (std::size_t f = 0; f < count_; ++f) {
      transform(x, f);
      for (std::size_t k = 0; k < form_.size; ++k) {
        const std::size_t at = fft_.place_of(k);
        const double power = re_[at] * re_[at] + im_[at] * im_[at];
        // d|X| = Re(conj(X) dX) / |X|, of the bins that are seen once; none where the power is held at its floor.
        const double slope = k < bins() && power >= kLeastPower ? by_magnitude[f * bins() + k] / std::sqrt(power) : 0.0;
        re_[at] *= slope;
        im_[at] *= slope;
      }
      fft_.inverse(re_.data(), im_.data(), 1);
      for (std::size_t i = 0; i < form_.size; ++i) dx[source(f, i)] += re_[i] * window_[i];
    }
  }

 private:
  // Sample i of frame f, mirrored at the ends without repeating them.
  std::size_t source(std::size_t f, std::size_t i) const {
    const auto last = static_cast<std::ptrdiff_t>(time_) - 1;
    std::ptrdiff_t at = static_cast<std::ptrdiff_t>(f * form_.hop + i) - static_cast<std::ptrdiff_t>(form_.size / 2);
    at = std::abs(at);
    return static_cast<std::size_t>(at > last ? 2 * last - at : at);
  }
  template <typename T>
  void transform(const T* x, std::size_t f) {
    for (std::size_t i = 0; i < form_.size; ++i) {
      re_[i] = static_cast<double>(x[source(f, i)]) * window_[i];
      im_[i] = 0;
    }
    fft_.forward(re_.data(), im_.data(), 1);
  }

  Spectrogram form_;
  kernels::Fft<double> fft_;
  std::size_t time_, count_;
  std::vector<double> window_, re_, im_;
};

// One resolution over all rows; adds its share to the derivatives.
template <typename T>
double spectral(const Spectrogram& form, const T* x, const T* y, std::size_t rows, std::size_t time, double share, double* dx, double* dy) {
  Frames frames(form, time);
  const std::size_t each = frames.count() * frames.bins(), all = rows * each;
  std::vector<double> a(all), b(all), da(all), db(all);
  for (std::size_t row = 0; row < rows; ++row) {
    frames.magnitudes(x + row * time, a.data() + row * each);
    frames.magnitudes(y + row * time, b.data() + row * each);
  }
  double apart = 0, size = 0, logs = 0;
  for (std::size_t i = 0; i < all; ++i) {
    apart += (b[i] - a[i]) * (b[i] - a[i]);
    size += b[i] * b[i];
    logs += std::abs(std::log(a[i] / b[i]));
  }
  apart = std::sqrt(apart), size = std::sqrt(size);
  const double count = static_cast<double>(all);
  for (std::size_t i = 0; i < all; ++i) {
    const double sign = (a[i] > b[i]) - (a[i] < b[i]);
    const double of_distance = apart > 0 ? (a[i] - b[i]) / (apart * size) : 0.0;
    da[i] = share * (of_distance + sign / (a[i] * count));
    db[i] = share * (-of_distance - apart * b[i] / (size * size * size) - sign / (b[i] * count));
  }
  for (std::size_t row = 0; row < rows; ++row) {
    frames.back(x + row * time, da.data() + row * each, dx + row * time);
    frames.back(y + row * time, db.data() + row * each, dy + row * time);
  }
  return apart / size + logs / count;
}

}  // namespace

template <typename T>
Var<T> soft_dtw(Var<T> x, Var<T> y, double gamma) {
  const autograd::Dims &a = x.dims(), &b = y.dims();
  assert(a.size() == 3 && b.size() == 3 && a[0] == b[0] && a[2] == b[2] && a[1] > 0 && b[1] > 0 && gamma > 0);
  return rowwise<T, 2>({a[0]}, {x, y}, [n = a[1], m = b[1], d = a[2], gamma](const auto& in, const auto& out) {
    return warped(in[0], in[1], n, m, d, gamma, out[0], out[1]);
  });
}

template <typename T>
Var<T> stft(Var<T> input, Var<T> target, std::span<const Spectrogram> resolutions) {
  assert(input.dims() == target.dims() && !input.dims().empty() && !resolutions.empty());
  const std::size_t time = input.dims().back(), rows = input.value().size() / time;
  const std::vector<Spectrogram> forms(resolutions.begin(), resolutions.end());
  for ([[maybe_unused]] const Spectrogram& form : forms) assert(form.window <= form.size && form.hop > 0 && time > form.size / 2);
  return rowwise<T, 2>({1}, {input, target}, [=](const auto& in, const auto& out) {
    std::vector<double> dx(rows * time), dy(rows * time);
    const double share = 1 / static_cast<double>(forms.size());
    double loss = 0;
    for (const Spectrogram& form : forms) loss += share * spectral(form, in[0], in[1], rows, time, share, dx.data(), dy.data());
    std::transform(dx.begin(), dx.end(), out[0], [](double v) { return static_cast<T>(v); });
    std::transform(dy.begin(), dy.end(), out[1], [](double v) { return static_cast<T>(v); });
    return loss;
  });
}

template Var<float> soft_dtw(Var<float>, Var<float>, double);
template Var<double> soft_dtw(Var<double>, Var<double>, double);
template Var<float> stft(Var<float>, Var<float>, std::span<const Spectrogram>);
template Var<double> stft(Var<double>, Var<double>, std::span<const Spectrogram>);

}  // namespace kizzasi::losses
