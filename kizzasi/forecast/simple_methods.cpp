#include "kizzasi/forecast/simple_methods.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kizzasi {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();

struct Mean {
  double sum = 0;
  std::size_t terms = 0;
  void add(double value) {
    if (std::isnan(value)) return;
    sum += value;
    ++terms;
  }
  double value() const { return terms > 0 ? sum / static_cast<double>(terms) : kMissing; }
};

// Root of the mean squared difference between values `lag` apart.
double root_mean_square_step(std::span<const double> past, std::size_t lag) {
  Mean squares;
  for (std::size_t i = lag; i < past.size(); ++i) squares.add((past[i] - past[i - lag]) * (past[i] - past[i - lag]));
  return std::sqrt(squares.value());
}

struct Line {
  double last = kMissing, slope = kMissing;
  double steps = 0;  // between the first and the last value
};

Line ends(std::span<const double> past) {
  const auto present = [](double v) { return !std::isnan(v); };
  const auto first = std::find_if(past.begin(), past.end(), present);
  const auto last = std::find_if(past.rbegin(), past.rend(), present);
  if (first == past.end()) return {};
  const auto first_at = static_cast<double>(first - past.begin());
  const auto last_at = static_cast<double>(past.rend() - last - 1);
  return {*last, last_at > first_at ? (*last - *first) / (last_at - first_at) : kMissing, last_at - first_at};
}

}  // namespace

void naive(std::span<const double> past, std::span<double> out) noexcept { std::fill(out.begin(), out.end(), ends(past).last); }

void seasonal_naive(std::span<const double> past, std::size_t season, std::span<double> out) noexcept {
  for (std::size_t h = 0; h < out.size(); ++h) {
    out[h] = kMissing;
    for (std::size_t back = season - h % season; back <= past.size() && std::isnan(out[h]); back += season) {
      out[h] = past[past.size() - back];
    }
  }
}

void drift(std::span<const double> past, std::span<double> out) noexcept {
  const Line line = ends(past);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = line.last + static_cast<double>(h + 1) * line.slope;
}

void mean(std::span<const double> past, std::span<double> out) noexcept { window_average(past, past.size(), out); }

void window_average(std::span<const double> past, std::size_t window, std::span<double> out) noexcept {
  Mean average;
  for (const double value : past.last(std::min(window, past.size()))) average.add(value);
  std::fill(out.begin(), out.end(), average.value());
}

void seasonal_mean(std::span<const double> past, std::size_t season, std::size_t seasons, std::span<double> out) noexcept {
  for (std::size_t h = 0; h < out.size(); ++h) {
    Mean average;
    for (std::size_t k = 0; k < seasons; ++k) {
      const std::size_t back = season - h % season + k * season;
      if (back <= past.size()) average.add(past[past.size() - back]);
    }
    out[h] = average.value();
  }
}

void naive_deviation(std::span<const double> past, std::span<double> out) noexcept {
  const double s = root_mean_square_step(past, 1);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = s * std::sqrt(static_cast<double>(h + 1));
}

void seasonal_naive_deviation(std::span<const double> past, std::size_t season, std::span<double> out) noexcept {
  const double s = root_mean_square_step(past, season);
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = s * std::sqrt(static_cast<double>(h / season + 1));
}

void drift_deviation(std::span<const double> past, std::span<double> out) noexcept {
  const Line line = ends(past);
  Mean squares;
  for (std::size_t i = 1; i < past.size(); ++i) squares.add(std::pow(past[i] - past[i - 1] - line.slope, 2));
  const double s = std::sqrt(squares.value());
  for (std::size_t h = 0; h < out.size(); ++h) {
    const auto steps = static_cast<double>(h + 1);
    out[h] = s * std::sqrt(steps * (1 + steps / line.steps));
  }
}

void mean_deviation(std::span<const double> past, std::span<double> out) noexcept {
  Mean average, squares;
  for (const double value : past) average.add(value);
  for (const double value : past) squares.add(std::pow(value - average.value(), 2));
  const auto n = static_cast<double>(squares.terms);
  std::fill(out.begin(), out.end(), squares.terms > 1 ? std::sqrt(squares.sum / (n - 1) * (1 + 1 / n)) : kMissing);
}

}  // namespace kizzasi
