#include "kizzasi/solve/projection.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kizzasi/base/compensated_sum.h"

namespace kizzasi::solve {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

bool finite(std::span<const double> values) {
  double sum = 0;
  for (const double v : values) sum += v * 0;
  return sum == 0;
}

double sum_of_products(std::span<const double> a, std::span<const double> x) {
  double sum = 0;
  for (std::size_t j = 0; j < a.size(); ++j) sum += a[j] * x[j];
  return sum;
}

double exact_sum_of_products(std::span<const double> a, std::span<const double> x) {
  CompensatedSum sum;
  for (std::size_t j = 0; j < a.size(); ++j) {
    const double product = a[j] * x[j];
    sum.add(product);
    sum.add(std::fma(a[j], x[j], -product));
  }
  return sum.value();
}

// Pulls x towards `inside` by whole roundings, doubling, until `obeys`.
template <typename Obeys>
bool pull_inside(std::span<double> x, std::span<const double> inside, Obeys obeys) {
  for (double by = kEpsilon; by < 1e-9; by *= 2) {
    if (obeys()) return true;
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double to = inside.empty() ? 0 : inside[j];
      x[j] = to + (x[j] - to) * (1 - by);
    }
  }
  return obeys();
}

// Two coordinates at a time: what the compilers here make of every baseline, and of none by themselves.
using Two = double __attribute__((vector_size(16)));
using TwoCounts = std::int64_t __attribute__((vector_size(16)));

Two load(const double* from) {
  Two two;
  std::memcpy(&two, from, sizeof two);
  return two;
}

struct RateArrays {
  const double *y, *lower, *upper, *previous, *rate;
  double* x;
};

struct RateCounts {  // below 0: a comparison that holds adds -1
  TwoCounts infinite = {0, 0}, right = {0, 0}, apart = {0, 0}, outside = {0, 0};
};

[[gnu::always_inline]] inline void check_two(const RateArrays& a, std::size_t j, RateCounts& counts) {
  const Two y = load(a.y + j), p = load(a.previous + j), zero = {0, 0};
  const Two finite = y * zero + p * zero;  // NaN where one is not finite
  const TwoCounts infinite = finite != finite;
  counts.infinite += infinite;
  const TwoCounts boxes = load(a.lower + j) <= load(a.upper + j), rates = load(a.rate + j) >= zero;
  counts.right += boxes + rates;
}

[[gnu::always_inline]] inline void move_two(const RateArrays& a, std::size_t j, RateCounts& counts) {
  const Two p = load(a.previous + j), r = load(a.rate + j), bottom = load(a.lower + j), top = load(a.upper + j), y = load(a.y + j);
  // p + r may round to where x - p > r: then one step inside, towards p from whichever side of 0.
  const Two high = p + r, low = p - r, zero = {0, 0};
  const Two high_size = high > zero ? high : -high, low_size = low > zero ? low : -low;
  const Two high_in = high - p > r ? high - high_size * kEpsilon : high, low_in = p - low > r ? low + low_size * kEpsilon : low;
  const Two from = low_in > bottom ? low_in : bottom, to = high_in < top ? high_in : top;
  const Two raised = y > from ? y : from, v = raised < to ? raised : to;
  const Two bound = p > top ? top : bottom;
  const Two x = from > to ? bound : v;
  const TwoCounts apart = from > to, above = x - p > r, below = p - x > r;
  counts.apart += apart;
  counts.outside += above + below;
  std::memcpy(a.x + j, &x, sizeof x);
}

}  // namespace

Status nearest_in_box(std::span<const double> y, std::span<const double> lower, std::span<const double> upper,
                      std::span<double> x) noexcept {
  const std::size_t n = y.size();
  if (lower.size() != n || upper.size() != n || x.size() != n || !finite(y)) return Status::kBadInput;
  bool nan = false, empty = false;
  for (std::size_t j = 0; j < n; ++j) {
    nan |= std::isnan(lower[j]) || std::isnan(upper[j]);
    empty |= lower[j] > upper[j] || lower[j] == kNoBound || upper[j] == -kNoBound;
  }
  if (nan) return Status::kBadInput;
  if (empty) return Status::kInfeasible;
  for (std::size_t j = 0; j < n; ++j) x[j] = std::min(std::max(y[j], lower[j]), upper[j]);
  return Status::kOptimal;
}

Status nearest_in_box_and_rate(std::span<const double> y, std::span<const double> lower, std::span<const double> upper,
                               std::span<const double> previous, std::span<const double> rate, std::span<double> x) noexcept {
  const std::size_t n = y.size();
  if (lower.size() != n || upper.size() != n || previous.size() != n || rate.size() != n || x.size() != n) return Status::kBadInput;
  RateCounts counts;
  const RateArrays arrays{y.data(), lower.data(), upper.data(), previous.data(), rate.data(), x.data()};
  std::size_t j0 = 0;
  for (; j0 + 2 <= n; j0 += 2) check_two(arrays, j0, counts);
  if (j0 < n) {
    counts.infinite[0] -= !(std::isfinite(y[j0]) && std::isfinite(previous[j0]));
    counts.right[0] -= static_cast<std::int64_t>(lower[j0] <= upper[j0]) + static_cast<std::int64_t>(rate[j0] >= 0);
  }
  if ((counts.infinite[0] | counts.infinite[1]) != 0) return Status::kBadInput;
  if (counts.right[0] + counts.right[1] != -2 * static_cast<std::int64_t>(n)) {
    for (std::size_t j = 0; j < n; ++j) {
      if (std::isnan(lower[j]) || std::isnan(upper[j]) || !(rate[j] >= 0)) return Status::kBadInput;
    }
    return Status::kInfeasible;  // an empty box: nothing wins
  }
  for (j0 = 0; j0 + 2 <= n; j0 += 2) move_two(arrays, j0, counts);
  if (j0 < n) {  // the last one alone, beside a free neighbour
    const double in[5][2] = {{y[j0], 0}, {lower[j0], 0}, {upper[j0], 0}, {previous[j0], 0}, {rate[j0], 0}};
    double one[2];
    move_two({in[0], in[1], in[2], in[3], in[4], one}, 0, counts);
    x[j0] = one[0];
  }
  const std::int64_t apart = counts.apart[0] + counts.apart[1], outside = counts.outside[0] + counts.outside[1];
  for (std::size_t j = 0; j < n && outside != apart; ++j) {  // denormals, and steps too small for |high| eps
    const double p = previous[j];
    if (x[j] > upper[j] || x[j] < lower[j]) continue;
    while (x[j] - p > rate[j] && std::nextafter(x[j], p) >= lower[j] && p <= upper[j] + rate[j]) x[j] = std::nextafter(x[j], p);
    while (p - x[j] > rate[j] && std::nextafter(x[j], p) <= upper[j] && p >= lower[j] - rate[j]) x[j] = std::nextafter(x[j], p);
  }
  return apart == 0 ? Status::kOptimal : Status::kInfeasible;
}

Status nearest_in_slab(std::span<const double> y, std::span<const double> a, double lo, double hi, std::span<const double> weight,
                       std::span<double> x, double& multiplier) noexcept {
  const std::size_t n = y.size();
  multiplier = 0;
  if (a.size() != n || x.size() != n || (!weight.empty() && weight.size() != n) || !finite(y) || !finite(a) || std::isnan(lo) ||
      std::isnan(hi)) {
    return Status::kBadInput;
  }
  double length2 = 0;
  for (std::size_t j = 0; j < n; ++j) {
    if (!weight.empty() && !(weight[j] > 0 && weight[j] < kNoBound)) return Status::kBadInput;
    length2 += a[j] * a[j] / (weight.empty() ? 1 : weight[j]);
  }
  if (lo > hi || lo == kNoBound || hi == -kNoBound) return Status::kInfeasible;
  if (length2 == 0) {
    if (lo > 0 || hi < 0) return Status::kInfeasible;
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  const bool equality = lo == hi;
  const auto rounding = [&](std::span<const double> at) {
    double size = std::isfinite(lo) ? std::abs(lo) : std::abs(hi);
    for (std::size_t j = 0; j < n; ++j) size += std::abs(a[j] * at[j]);
    return kEpsilon * size;
  };
  const auto obeys = [&](std::span<const double> at) {
    const double value = sum_of_products(a, at);
    return equality ? std::abs(value - lo) <= 8 * rounding(at) : value >= lo && value <= hi;
  };
  const double exact = exact_sum_of_products(a, y);
  if (obeys(y) || (exact >= lo && exact <= hi)) {
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  // A plane to land on, and a few roundings more where that was not enough.
  const double target = exact > hi ? hi : lo, side = exact > hi ? -1 : 1;
  for (double more = 0; more < 1e6; more = more == 0 ? 4 : 2 * more) {
    const double aim = target + side * more * rounding(y) * (equality ? 0 : 1);
    multiplier = (exact - aim) / length2;
    double step = multiplier;
    for (std::size_t j = 0; j < n; ++j) x[j] = y[j] - step * a[j] / (weight.empty() ? 1 : weight[j]);
    step = (exact_sum_of_products(a, x) - aim) / length2;  // what rounding left of the way
    for (std::size_t j = 0; j < n; ++j) x[j] -= step * a[j] / (weight.empty() ? 1 : weight[j]);
    if (obeys(x)) return Status::kOptimal;
  }
  return Status::kIterationLimit;
}

Status nearest_in_simplex(std::span<const double> y, double total, std::span<double> x, std::span<double> scratch) noexcept {
  const std::size_t n = y.size();
  if (n == 0 || x.size() != n || scratch.size() < n || !finite(y) || std::isnan(total) || std::isinf(total)) return Status::kBadInput;
  if (total < 0) return Status::kInfeasible;
  bool inside = true;
  CompensatedSum sum;
  for (const double v : y) {
    inside = inside && v >= 0;
    sum.add(v);
  }
  if (inside && std::abs(sum.value() - total) <= 8 * kEpsilon * (sum.value() + total)) {
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  // The largest k coordinates stay above tau = (their sum - total) / k (Held, Wolfe and Crowder 1974).
  const auto sorted = scratch.first(n);
  std::copy(y.begin(), y.end(), sorted.begin());
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  CompensatedSum head;
  double tau = sorted[0] - total;
  for (std::size_t k = 0; k < n; ++k) {
    head.add(sorted[k]);
    const double next = (head.value() - total) / static_cast<double>(k + 1);
    if (k > 0 && !(sorted[k] > next)) break;
    tau = next;
  }
  std::size_t largest = 0;
  CompensatedSum reached;
  for (std::size_t j = 0; j < n; ++j) {
    x[j] = std::max(0.0, y[j] - tau);
    reached.add(x[j]);
    if (x[j] > x[largest]) largest = j;
  }
  x[largest] = std::max(0.0, x[largest] + (total - reached.value()));  // what rounding left
  return Status::kOptimal;
}

double norm_of(std::span<const double> x, std::span<const double> centre, Norm norm) noexcept {
  double sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double d = centre.empty() ? x[j] : x[j] - centre[j];
    if (norm == Norm::kL1) sum += std::abs(d);
    if (norm == Norm::kL2) sum += d * d;
    if (norm == Norm::kLInf) sum = std::max(sum, std::abs(d));
  }
  return norm == Norm::kL2 ? std::sqrt(sum) : sum;
}

Status nearest_in_ball(std::span<const double> y, std::span<const double> centre, double radius, Norm norm, std::span<double> x,
                       std::span<double> scratch, double& multiplier) noexcept {
  const std::size_t n = y.size();
  multiplier = 0;
  if (x.size() != n || (!centre.empty() && centre.size() != n) || !finite(y) || !finite(centre) || std::isnan(radius)) {
    return Status::kBadInput;
  }
  if (norm == Norm::kL1 && scratch.size() < 2 * n) return Status::kBadInput;
  if (radius < 0) return Status::kInfeasible;
  const auto c = [&](std::size_t j) { return centre.empty() ? 0 : centre[j]; };
  const double distance = norm_of(y, centre, norm);
  if (distance <= radius) {
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  if (norm == Norm::kL2) {
    multiplier = (distance - radius) / radius;
    for (std::size_t j = 0; j < n; ++j) x[j] = c(j) + (y[j] - c(j)) * (radius / distance);
  } else if (norm == Norm::kLInf) {
    for (std::size_t j = 0; j < n; ++j) x[j] = std::min(std::max(y[j], c(j) - radius), c(j) + radius);
  } else {
    const auto size = scratch.first(n), sorted = scratch.subspan(n, n);
    for (std::size_t j = 0; j < n; ++j) size[j] = std::abs(y[j] - c(j));
    nearest_in_simplex(size, radius, size, sorted);
    for (std::size_t j = 0; j < n; ++j) x[j] = c(j) + std::copysign(size[j], y[j] - c(j));
  }
  return pull_inside(x, centre, [&] { return norm_of(x, centre, norm) <= radius; }) ? Status::kOptimal : Status::kIterationLimit;
}

Status nearest_in_cone(std::span<const double> y, double slope, std::span<double> x) noexcept {
  const std::size_t n = y.size();
  if (n == 0 || x.size() != n || !finite(y) || !(slope > 0 && slope < kNoBound)) return Status::kBadInput;
  const double height = y[0], side = norm_of(y.subspan(1), {}, Norm::kL2);
  if (side <= slope * height) {
    std::copy(y.begin(), y.end(), x.begin());
    return Status::kOptimal;
  }
  if (slope * side <= -height) {  // in the polar cone
    std::fill(x.begin(), x.end(), 0.0);
    return Status::kOptimal;
  }
  const double up = (height + slope * side) / (1 + slope * slope);
  x[0] = up;
  for (std::size_t j = 1; j < n; ++j) x[j] = y[j] * (slope * up / side);
  for (double by = kEpsilon; norm_of(x.subspan(1), {}, Norm::kL2) > slope * x[0] && by < 1e-9; by *= 2) {
    for (std::size_t j = 1; j < n; ++j) x[j] *= 1 - by;
  }
  return norm_of(x.subspan(1), {}, Norm::kL2) <= slope * x[0] ? Status::kOptimal : Status::kIterationLimit;
}

}  // namespace kizzasi::solve
