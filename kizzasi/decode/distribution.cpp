#include "kizzasi/decode/distribution.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kizzasi/decode/mixture.h"
#include "kizzasi/decode/quantile_curve.h"
#include "kizzasi/decode/standard_laws.h"

namespace kizzasi {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kScaleFloor = 1e-4;  // as in HeadConfig

double softplus(double x) noexcept { return x > 30 ? x : std::log1p(std::exp(x)); }

}  // namespace

Result<DistributionFamily> DistributionFamily::of(const HeadConfig& head) {
  if (auto good = head.check(); !good) return fail(good.error());
  DistributionFamily family;
  family.kind_ = head.which();
  family.parameters_ = head.parameters();
  if (family.kind_ == HeadKind::kMixture) family.components_ = static_cast<std::size_t>(head.components);
  if (family.kind_ == HeadKind::kQuantiles) {
    family.levels_ = head.levels;
    const auto middle = std::find(head.levels.begin(), head.levels.end(), 0.5);
    if (middle == head.levels.end()) {
      return fail({Fault::kBadUse, "the levels of a quantile head lack the median", "field 'levels'", "0.5 among them", ""});
    }
    family.middle_ = static_cast<std::size_t>(middle - head.levels.begin());
  }
  return family;
}

void DistributionFamily::decode(std::span<const float> raw, double scale, double offset, std::span<double> member) const noexcept {
  const auto place = [&](double x) { return x * scale + offset; };
  switch (kind_) {
    case HeadKind::kPoint:
      member[0] = place(raw[0]);
      return;
    case HeadKind::kStudentT:
      member[2] = 2 + softplus(raw[2]);
      [[fallthrough]];
    case HeadKind::kGaussian:
      member[0] = place(raw[0]);
      member[1] = (softplus(raw[1]) + kScaleFloor) * scale;
      return;
    case HeadKind::kMixture: {
      const std::size_t k = components_;
      double top = -kInfinity, sum = 0;
      for (std::size_t i = 0; i < k; ++i) top = std::max(top, double{raw[i]});
      for (std::size_t i = 0; i < k; ++i) sum += member[i] = std::exp(raw[i] - top);
      for (std::size_t i = 0; i < k; ++i) {
        member[i] /= sum;
        member[k + i] = place(raw[k + i]);
        member[2 * k + i] = (softplus(raw[2 * k + i]) + kScaleFloor) * scale;
      }
      return;
    }
    case HeadKind::kQuantiles: {
      // The median first, then the steps of the levels above it, rising, then of those below it, falling.
      const std::size_t n = levels_.size();
      double value = raw[0];
      member[middle_] = place(value);
      for (std::size_t i = middle_ + 1; i < n; ++i) member[i] = place(value += softplus(raw[i - middle_]));
      value = raw[0];
      for (std::size_t i = middle_; i-- > 0;) member[i] = place(value -= softplus(raw[n - 1 - i]));
      return;
    }
  }
}

bool DistributionFamily::finite(std::span<const double> member) noexcept {
  return std::all_of(member.begin(), member.end(), [](double x) { return std::isfinite(x); });
}

double DistributionFamily::quantile(std::span<const double> m, double p) const noexcept {
  switch (kind_) {
    case HeadKind::kPoint:
      return p >= 0 && p <= 1 ? m[0] : kNan;
    case HeadKind::kGaussian:
      return m[0] + m[1] * normal_quantile(p);
    case HeadKind::kStudentT:
      return m[0] + m[1] * student_t_quantile(p, m[2]);
    case HeadKind::kMixture:
      return NormalMixture(m).quantile(p);
    case HeadKind::kQuantiles:
      return QuantileCurve(levels_, m).quantile(p);
  }
  return kNan;
}

void DistributionFamily::quantiles(std::span<const double> m, std::span<const double> levels, std::span<double> out) const noexcept {
  double last = -kInfinity;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double value = quantile(m, levels[i]);
    last = out[i] = value < last ? last : value;  // a value that is not a number is shown as such
  }
}

double DistributionFamily::mean(std::span<const double> m) const noexcept {
  if (kind_ == HeadKind::kMixture) return NormalMixture(m).mean();
  if (kind_ == HeadKind::kQuantiles) return QuantileCurve(levels_, m).mean();
  return m[0];
}

double DistributionFamily::cdf(std::span<const double> m, double x) const noexcept {
  switch (kind_) {
    case HeadKind::kPoint:
      return std::isnan(x) || std::isnan(m[0]) ? kNan : (x < m[0] ? 0 : 1);
    case HeadKind::kGaussian:
      return normal_cdf((x - m[0]) / m[1]);
    case HeadKind::kStudentT:
      return student_t_cdf((x - m[0]) / m[1], m[2]);
    case HeadKind::kMixture:
      return NormalMixture(m).cdf(x);
    case HeadKind::kQuantiles:
      return QuantileCurve(levels_, m).cdf(x);
  }
  return kNan;
}

double DistributionFamily::log_density(std::span<const double> m, double x) const noexcept {
  switch (kind_) {
    case HeadKind::kPoint:
      return kNan;
    case HeadKind::kGaussian:
      return normal_log_density((x - m[0]) / m[1]) - std::log(m[1]);
    case HeadKind::kStudentT:
      return student_t_log_density((x - m[0]) / m[1], m[2]) - std::log(m[1]);
    case HeadKind::kMixture:
      return NormalMixture(m).log_density(x);
    case HeadKind::kQuantiles:
      return QuantileCurve(levels_, m).log_density(x);
  }
  return kNan;
}

double DistributionFamily::sample(std::span<const double> m, Rng& rng, double temperature) const noexcept {
  double draw = 0;
  switch (kind_) {
    case HeadKind::kPoint:
      return m[0];
    case HeadKind::kGaussian:
      return m[0] + temperature * (m[1] * rng.normal());
    case HeadKind::kStudentT: {
      const double z = rng.normal(), chi_square = 2 * rng.gamma(0.5 * m[2]);
      return m[0] + temperature * (m[1] * z / std::sqrt(chi_square / m[2]));
    }
    case HeadKind::kMixture:
      draw = NormalMixture(m).sample(rng);
      break;
    case HeadKind::kQuantiles: {
      double u = rng.uniform();
      while (u == 0) u = rng.uniform();
      draw = QuantileCurve(levels_, m).quantile(u);
      break;
    }
  }
  if (temperature == 1) return draw;
  const double middle = median(m);
  return middle + temperature * (draw - middle);
}

}  // namespace kizzasi
