#include "kizzasi/data/season.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <numbers>
#include <set>

namespace kizzasi::data {
namespace {

constexpr std::size_t kMostRows = 40'000;  // of the latest rows
constexpr std::size_t kAllUpTo = 64;       // periods that are always tried
constexpr std::size_t kPeaks = 60;         // and this many peaks of the autocorrelation
constexpr std::size_t kMostChannels = 16;

using Complex = std::complex<double>;

// In place, length a power of two (Cooley and Tukey 1965).
void fourier(std::vector<Complex>& x) {
  const std::size_t n = x.size();
  for (std::size_t i = 1, j = 0; i < n; ++i) {
    std::size_t bit = n >> 1U;
    for (; j & bit; bit >>= 1U) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::size_t length = 2; length <= n; length <<= 1U) {
    std::vector<Complex> turn(length / 2);
    for (std::size_t k = 0; k < length / 2; ++k) {
      turn[k] = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length));
    }
    for (std::size_t i = 0; i < n; i += length) {
      for (std::size_t k = 0; k < length / 2; ++k) {
        const Complex u = x[i + k], v = x[i + k + length / 2] * turn[k];
        x[i + k] = u + v;
        x[i + k + length / 2] = u - v;
      }
    }
  }
}

// Autocovariance at lags 0..most by Wiener and Khinchin, corrected for the overlap; missing values count as the mean.
std::vector<double> autocovariance(std::span<const double> values, std::size_t most) {
  std::size_t length = 1;
  while (length < 2 * values.size()) length <<= 1U;
  std::vector<Complex> x(length);
  for (std::size_t i = 0; i < values.size(); ++i) x[i] = std::isnan(values[i]) ? 0.0 : values[i];
  fourier(x);
  for (Complex& c : x) c = std::norm(c);
  fourier(x);
  std::vector<double> out(most + 1);
  for (std::size_t k = 0; k <= most; ++k) out[k] = x[k].real() / static_cast<double>(length) / static_cast<double>(values.size() - k);
  return out;
}

// The straight line through the present values, taken off.
void remove_line(std::vector<double>& x) {
  double n = 0, st = 0, sx = 0, stt = 0, stx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    const auto t = static_cast<double>(i);
    n += 1;
    st += t;
    sx += x[i];
    stt += t * t;
    stx += t * x[i];
  }
  if (n < 2) return;
  const double slope = (n * stx - st * sx) / (n * stt - st * st), level = (sx - slope * st) / n;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] -= level + slope * static_cast<double>(i);
}

double power(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += std::isnan(value) ? 0 : value * value;
  return sum;
}

struct Score {
  double explained = 0;  // share of the variation around the moving mean that the other cycles predict
  double share = 0;      // of that variation in the whole
  double f = 0;          // explained against unexplained variance, each by its degrees of freedom
};

// How well each value is predicted by the mean of the values at the same place in all other cycles of `period`, after the centred moving
// mean of one period is taken off: what merely wanders is no season, since it predicts nothing.
Score score(std::span<const double> x, std::size_t period) {
  const std::size_t n = x.size();
  std::vector<double> sums(n + 1, 0), counts(n + 1, 0);
  for (std::size_t i = 0; i < n; ++i) {
    const bool present = !std::isnan(x[i]);
    sums[i + 1] = sums[i] + (present ? x[i] : 0);
    counts[i + 1] = counts[i] + (present ? 1 : 0);
  }
  const std::size_t half = period / 2;
  std::vector<double> d(n), phase_sum(period, 0), phase_count(period, 0);
  double total = 0, present = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t low = i >= half ? i - half : 0, high = std::min(n, i + half + 1);
    double sum = sums[high] - sums[low], count = counts[high] - counts[low];
    if (period % 2 == 0 && i >= half && i + half < n) {  // the two ends of an even window count half
      sum -= 0.5 * ((std::isnan(x[low]) ? 0 : x[low]) + (std::isnan(x[high - 1]) ? 0 : x[high - 1]));
      count -= 0.5 * ((std::isnan(x[low]) ? 0 : 1) + (std::isnan(x[high - 1]) ? 0 : 1));
    }
    d[i] = count > 0 ? x[i] - sum / count : std::numeric_limits<double>::quiet_NaN();
    if (std::isnan(d[i])) continue;
    total += d[i] * d[i];
    present += 1;
    phase_sum[i % period] += d[i];
    phase_count[i % period] += 1;
  }
  const double whole = power(x);
  if (!(total > 1e-9 * whole) || present <= static_cast<double>(period)) return {};
  double wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isnan(d[i])) continue;
    const std::size_t phase = i % period;
    const double others = phase_count[phase] > 1 ? (phase_sum[phase] - d[i]) / (phase_count[phase] - 1) : 0;
    wrong += (d[i] - others) * (d[i] - others);
  }
  Score out;
  out.explained = std::clamp(1 - wrong / total, 0.0, 0.99);  // beyond 99 % the shorter of two periods that both fit is the period
  out.share = std::min(1.0, total / whole);
  out.f = out.explained / static_cast<double>(period - 1) / ((1 - out.explained) / (present - static_cast<double>(period)));
  return out;
}

std::set<std::size_t> candidates(std::span<const double> x) {
  const std::size_t longest = x.size() / 3;  // three cycles at least
  std::set<std::size_t> periods;
  for (std::size_t p = 2; p <= std::min(longest, kAllUpTo); ++p) periods.insert(p);
  for (const std::size_t usual : {24U, 48U, 96U, 144U, 168U, 288U, 336U, 365U, 672U, 1008U, 1440U, 2016U, 10080U}) {
    if (usual <= longest) periods.insert(usual);
  }
  if (longest <= kAllUpTo) return periods;
  const std::vector<double> r = autocovariance(x, longest + 1);
  std::vector<std::pair<double, std::size_t>> peaks;
  for (std::size_t p = 2; p <= longest; ++p) {
    if (r[p] > r[p - 1] && r[p] >= r[p + 1] && r[p] > 0.05 * r[0]) peaks.emplace_back(r[p], p);
  }
  std::sort(peaks.rbegin(), peaks.rend());
  for (std::size_t i = 0; i < std::min(peaks.size(), kPeaks); ++i) {
    for (std::size_t p = peaks[i].second - 1; p <= std::min(longest, peaks[i].second + 1); ++p) periods.insert(p);
  }
  return periods;
}

void remove_profile(std::vector<double>& x, std::size_t period) {
  std::vector<double> sum(period, 0), count(period, 0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) continue;
    sum[i % period] += x[i];
    count[i % period] += 1;
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (count[i % period] > 0) x[i] -= sum[i % period] / count[i % period];
  }
}

}  // namespace

std::vector<Season> find_seasons(std::span<const double> values, std::size_t most) {
  if (values.size() > kMostRows) values = values.last(kMostRows);
  std::vector<double> x(values.begin(), values.end());
  double size = 0;
  std::size_t present = 0;
  for (const double value : x) {
    size += std::isnan(value) ? 0 : value * value;
    present += std::isnan(value) ? 0 : 1;
  }
  std::vector<Season> found;
  if (present < 8) return found;
  remove_line(x);
  const double whole = power(x);
  if (!(whole > 1e-20 * size)) return found;
  while (found.size() < most) {
    Season best;
    double evidence = 0;
    const double left = power(x) / whole;
    for (const std::size_t period : candidates(x)) {
      const Score now = score(x, period);
      if (now.explained < 0.2 || now.explained * now.share * left < 0.02 || now.f < 1.5 + 40.0 / static_cast<double>(period) ||
          now.f <= evidence)
        continue;
      evidence = now.f;
      best = {period, now.explained * now.share * left};
    }
    if (best.period == 1) break;
    found.push_back(best);
    remove_profile(x, best.period);
  }
  return found;
}

std::vector<Season> find_seasons(std::span<const Series> series, std::size_t most) {
  std::map<std::size_t, std::pair<double, std::size_t>> seen;  // period -> sum of strengths, columns
  std::size_t looked_at = 0;
  std::vector<double> column;
  const std::size_t apart = std::max<std::size_t>(1, series.size() / kMostChannels);
  for (std::size_t s = 0; s < series.size(); s += apart) {
    for (const std::size_t channel : series[s].schema.with_role(Role::kTarget)) {
      if (looked_at >= kMostChannels) break;
      ++looked_at;
      column.resize(series[s].rows());
      for (std::size_t row = 0; row < column.size(); ++row) column[row] = series[s].at(row, channel);
      for (const Season& season : find_seasons(column, most)) {
        // Neighbouring lengths of a long season are one season; a year or a week, where one is near, is what is meant.
        std::size_t period = season.period;
        for (const std::size_t usual : calendar_periods(series[s].schema.step_ns)) {
          if (std::fabs(static_cast<double>(usual) - static_cast<double>(period)) <= 0.02 * static_cast<double>(usual)) period = usual;
        }
        for (const auto& [known, sums] : seen) {
          if (std::fabs(static_cast<double>(known) - static_cast<double>(period)) <= 0.02 * static_cast<double>(known)) period = known;
        }
        seen[period].first += season.strength;
        ++seen[period].second;
      }
    }
  }
  std::vector<Season> all;
  for (const auto& [period, sums] : seen) {
    if (5 * sums.second >= looked_at) all.push_back({period, sums.first / static_cast<double>(looked_at)});
  }
  std::sort(all.begin(), all.end(), [](const Season& a, const Season& b) { return a.strength > b.strength; });
  if (all.size() > most) all.resize(most);
  std::sort(all.begin(), all.end(), [](const Season& a, const Season& b) { return a.period < b.period; });
  return all;
}

std::vector<Season> find_seasons(const Series& series, std::size_t most) { return find_seasons(std::span(&series, 1), most); }

std::vector<std::size_t> calendar_periods(std::int64_t step_ns) {
  constexpr std::int64_t kMinute = 60'000'000'000, kDay = 1440 * kMinute;
  std::vector<std::size_t> periods;
  if (step_ns <= 0) return periods;
  const auto add = [&](std::int64_t length) {
    if (length % step_ns == 0 && length / step_ns > 1 && length / step_ns <= 20'000)
      periods.push_back(static_cast<std::size_t>(length / step_ns));
  };
  if (step_ns < kDay) {
    add(kDay);
    add(7 * kDay);
  } else if (step_ns == kDay) {
    periods = {7, 365};
  } else if (step_ns == 7 * kDay) {
    periods = {52};
  } else if (step_ns >= 28 * kDay && step_ns <= 31 * kDay) {
    periods = {12};
  } else if (step_ns >= 89 * kDay && step_ns <= 92 * kDay) {
    periods = {4};
  }
  return periods;
}

}  // namespace kizzasi::data
