#include "kizzasi/forecast/theta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kizzasi/forecast/minimise.h"

namespace kizzasi {
namespace {

constexpr double kLeastAlpha = 0.1, kMostAlpha = 0.99, kMostTheta = 1e10;
constexpr double kLeastIndex = 0.01;  // below it a multiplicative season would blow values up
constexpr double kNormal95 = 1.645;   // two-sided 90 %
constexpr std::size_t kWarmUp = 3;    // errors that the criterion leaves out
constexpr std::size_t kShortestSeason = 4;

// Least-squares line of the values seen so far on 1, 2, ...
class RunningLine {
 public:
  void add(double y) {
    ++n_;
    sum_ += y;
    moment_ += static_cast<double>(n_) * y;
  }
  double slope() const {
    const auto n = static_cast<double>(n_);
    return n_ < 2 ? 0 : 12 * (moment_ - sum_ * (n + 1) / 2) / (n * (n * n - 1));
  }
  double intercept() const {
    const auto n = static_cast<double>(n_);
    return sum_ / n - slope() * (n + 1) / 2;
  }

 private:
  std::size_t n_ = 0;
  double sum_ = 0, moment_ = 0;
};

// Gives mu_t - l_t for every t: w * tilt. For stm and otm the line of all values, for dotm of those before t.
class Tilt {
 public:
  Tilt(ThetaKind kind, double alpha, std::span<const double> y) : dynamic_(kind == ThetaKind::kDynamicOptimised), alpha_(alpha) {
    if (dynamic_) return;
    for (const double v : y) line_.add(v);
  }
  double next() {
    const double value = line_.intercept() * power_ + line_.slope() * (1 - power_ * (1 - alpha_)) / alpha_;
    power_ *= 1 - alpha_;
    return value;
  }
  void saw(double y) {
    if (dynamic_) line_.add(y);
  }
  bool dynamic() const { return dynamic_; }

 private:
  bool dynamic_;
  double alpha_, power_ = 1;  // (1 - alpha)^t
  RunningLine line_;
};

// Calls see(t, mu) for every value and step beyond; the values beyond are the means themselves.
template <typename See>
void recurse(const ThetaModel& model, std::span<const double> y, std::size_t beyond, See see) {
  Tilt tilt(model.kind, model.alpha, y);
  const double weight = 1 - 1 / model.theta;
  double level = model.level;
  for (std::size_t t = 0; t < y.size() + beyond; ++t) {
    double mu = 0;
    if (tilt.dynamic() && t == 0) {  // no line yet
      Tilt first = tilt;
      mu = y[0];
      tilt.saw(y[0]);
      first.saw(y[0]);
      first.next();
      tilt = first;
    } else {
      mu = level + weight * tilt.next();
      tilt.saw(t < y.size() ? y[t] : mu);
    }
    see(t, mu);
    level = model.alpha * (t < y.size() ? y[t] : mu) + (1 - model.alpha) * level;
  }
}

std::vector<double> without_season(const ThetaModel& model, std::span<const double> y) {
  std::vector<double> plain(y.begin(), y.end());
  for (std::size_t t = 0; t < plain.size() && !model.season.empty(); ++t) {
    const double index = model.season[t % model.season.size()];
    plain[t] = model.multiplicative ? plain[t] / index : plain[t] - index;
  }
  return plain;
}

double mean_size(std::span<const double> y) {
  double sum = 0;
  for (const double v : y) sum += std::abs(v);
  return sum / static_cast<double>(y.size());
}

double squares_of(const ThetaModel& model, std::span<const double> plain) {
  double squares = 0;
  recurse(model, plain, 0, [&](std::size_t t, double mu) {
    if (t >= kWarmUp) squares += (plain[t] - mu) * (plain[t] - mu);
  });
  return squares;
}

// At a given alpha the one-step mean is linear in the first level (by (1-a)^t) and in w (by the tilt): least squares tell both.
void best_level_and_theta(ThetaModel& model, std::span<const double> plain) {
  model.level = 0;
  model.theta = 1;
  std::vector<double> rest(plain.size());  // what level 0 and w = 0 leave
  recurse(model, plain, 0, [&](std::size_t t, double mu) { rest[t] = plain[t] - mu; });
  Tilt tilt(model.kind, model.alpha, plain);
  if (tilt.dynamic()) tilt.saw(plain[0]);
  double pp = 0, pt = 0, tt = 0, pr = 0, tr = 0, power = 1;
  for (std::size_t t = 0; t < plain.size(); ++t) {
    const double p = power, q = tilt.next();
    power *= 1 - model.alpha;
    if (t > 0) tilt.saw(plain[t]);
    if (t < kWarmUp) continue;
    pp += p * p;
    pt += p * q;
    tt += q * q;
    pr += p * rest[t];
    tr += q * rest[t];
  }
  double weight = 1 - 1 / 2.0;
  if (model.kind != ThetaKind::kStandard) {
    const double determinant = pp * tt - pt * pt;
    weight = determinant > 0 ? (pp * tr - pt * pr) / determinant : 0;
    weight = std::clamp(weight, 0.0, 1 - 1 / kMostTheta);
  }
  model.theta = 1 / (1 - weight);
  model.level = pp > 0 ? (pr - weight * pt) / pp : plain[0];
}

// Is the autocorrelation at the lag of the season beyond what noise with the shorter correlations gives (Bartlett's formula)?
bool is_seasonal(std::span<const double> y, std::size_t season) {
  if (season < kShortestSeason || y.size() < 2 * season) return false;
  const double mean = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(y.size());
  const auto covariance = [&](std::size_t lag) {
    double sum = 0;
    for (std::size_t t = lag; t < y.size(); ++t) sum += (y[t] - mean) * (y[t - lag] - mean);
    return sum;
  };
  const double variance = covariance(0);
  if (!(variance > 0)) return false;
  double shorter = 0;
  for (std::size_t lag = 1; lag < season; ++lag) shorter += std::pow(covariance(lag) / variance, 2);
  const double bound = kNormal95 * std::sqrt((1 + 2 * shorter) / static_cast<double>(y.size()));
  return std::abs(covariance(season) / variance) > bound;
}

}  // namespace

const char* to_string(ThetaKind kind) {
  switch (kind) {
    case ThetaKind::kStandard:
      return "theta_stm";
    case ThetaKind::kOptimised:
      return "theta_otm";
    case ThetaKind::kDynamicOptimised:
      return "theta_dotm";
  }
  return "theta_stm";
}

void theta_forecast(const ThetaModel& model, std::span<const double> y, std::span<double> out) {
  const std::size_t n = y.size();
  recurse(model, without_season(model, y), out.size(), [&](std::size_t t, double mu) {
    if (t < n) return;
    out[t - n] = mu;
    if (model.season.empty()) return;
    const double index = model.season[t % model.season.size()];
    out[t - n] = model.multiplicative ? mu * index : mu + index;
  });
}

double theta_criterion(const ThetaModel& model, std::span<const double> y) {
  const auto plain = without_season(model, y);
  return squares_of(model, plain) / mean_size(plain);
}

Result<ThetaModel> theta_fit(ThetaKind kind, std::span<const double> y, std::size_t season) {
  const bool whole = std::all_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); });
  if (y.size() <= kWarmUp || !whole) {
    return fail({Fault::kBadInput, y.size() <= kWarmUp ? fmt::format("{} values are too few", y.size()) : "a value is missing",
                 to_string(kind), "at least 4 values, none missing", ""});
  }
  ThetaModel model;
  model.kind = kind;
  if (is_seasonal(y, season)) {
    model.multiplicative = std::all_of(y.begin(), y.end(), [](double v) { return v > 0; });
    model.season = seasonal_indices(y, season, model.multiplicative);
    if (model.multiplicative && *std::min_element(model.season.begin(), model.season.end()) < kLeastIndex) {
      model.multiplicative = false;
      model.season = seasonal_indices(y, season, false);
    }
  }
  const auto plain = without_season(model, y);
  model.alpha = minimise_on_line(
      [&](double alpha) {
        model.alpha = alpha;
        best_level_and_theta(model, plain);
        return squares_of(model, plain);
      },
      kLeastAlpha, kMostAlpha);
  best_level_and_theta(model, plain);
  return model;
}

std::vector<double> seasonal_indices(std::span<const double> y, std::size_t season, bool multiplicative) {
  const std::size_t half = season / 2;
  std::vector<double> sums(season), terms(season);
  for (std::size_t t = half; t + half < y.size(); ++t) {
    double average = season % 2 == 0 ? (y[t - half] + y[t + half]) / 2 : y[t - half] + y[t + half];
    for (std::size_t k = t - half + 1; k < t + half; ++k) average += y[k];
    average /= static_cast<double>(season);
    sums[t % season] += multiplicative ? y[t] / average : y[t] - average;
    terms[t % season] += 1;
  }
  double centre = 0;
  for (std::size_t s = 0; s < season; ++s) centre += (sums[s] /= terms[s]) / static_cast<double>(season);
  for (double& s : sums) s = multiplicative ? s / centre : s - centre;
  return sums;
}

void theta_classic(std::span<const double> y, double alpha, double slope, std::span<double> out) noexcept {
  double level = y[0];
  for (const double v : y) level = alpha * v + (1 - alpha) * level;
  const double forgotten = (1 - std::pow(1 - alpha, static_cast<double>(y.size()))) / alpha;
  for (std::size_t h = 0; h < out.size(); ++h) out[h] = level + slope / 2 * (static_cast<double>(h) + forgotten);
}

double slope_on_time(std::span<const double> y) noexcept {
  RunningLine line;
  for (const double v : y) line.add(v);
  return line.slope();
}

double smoothing_weight(std::span<const double> y) {
  return minimise_on_line(
      [&](double alpha) {
        double level = y[0], squares = 0;
        for (const double v : y) {
          squares += (v - level) * (v - level);
          level = alpha * v + (1 - alpha) * level;
        }
        return squares;
      },
      1e-4, 0.9999);
}

}  // namespace kizzasi
